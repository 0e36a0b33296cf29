#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a wheel for the Python of .venv. It has to need nothing but torch and
# what every Linux with glibc 2.35 has: auditwheel checks that and says so in the
# wheel's name.
#
# usage: scripts/build_wheel.sh <folder>
set -euo pipefail
[ $# = 1 ] || { sed -n 's/^# \?//; 3,7p' "$0" >&2; exit 2; }
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

scripts/setup.sh wheel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

TORCH_DEVICE_BACKEND_AUTOLOAD=0 .venv/bin/python -m pip wheel . --no-deps \
  --no-build-isolation --disable-pip-version-check --wheel-dir "$work"

# torch's libraries come with torch.
PATH=$PWD/.venv/bin:$PATH .venv/bin/python -m auditwheel repair \
  --plat "manylinux_2_35_$(uname -m)" \
  --exclude 'libtorch*.so' --exclude 'libc10.so' \
  --wheel-dir "$work/audited" "$work"/torch_spyre-*.whl
wheel=$(echo "$work"/audited/*.whl)
# auditwheel copies what it does not expect into a folder of this name.
if .venv/bin/python -m zipfile -l "$wheel" | grep '\.libs/'; then
  echo "build_wheel: the wheel needs the libraries above, which are not its own;" \
    "link their archives, or do without" >&2
  exit 1
fi
mv "$wheel" "$to/"
echo "==> $to/$(basename "$wheel")"
