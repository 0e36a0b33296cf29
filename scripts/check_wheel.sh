#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel and the source distribution into a folder. Tries the wheel in an
# environment of its own, outside the source tree: the device, a trip there and back,
# compiled functions, the tools, all of it beside another LLVM too.
# scripts/check_wheel_alone.sh tries it on a system without LLVM.
#
# usage: scripts/check_wheel.sh <folder>
set -euo pipefail
[ $# = 1 ] || { sed -n 's/^# \?//; 3,8p' "$0" >&2; exit 2; }
mkdir -p "$1"
dist=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
MOST_MEGABYTES=80
MOST_IMPORT_MILLISECONDS=150

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { printf 'check_wheel: %s\n' "$*" >&2; exit 1; }

echo '==> building the wheel'
start=$SECONDS
scripts/build_wheel.sh "$folder/dist"
wheel=$(echo "$folder"/dist/*.whl)
bytes=$(stat -c %s "$wheel")
echo "==> $bytes bytes, built in $((SECONDS - start)) s"
[ "$bytes" -lt "${MOST_MEGABYTES}000000" ] ||
  fail "expected a wheel below $MOST_MEGABYTES MB, found $bytes bytes"

echo '==> the source distribution has what git has'
.venv/bin/python scripts/check_sdist.py "$folder/dist"

echo '==> installing the wheel into a second environment'
.venv/bin/python -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check \
  --progress-bar off "$wheel"
cp scripts/try_installed.py scripts/measure_import.py "$folder/"
mkdir -p "$dist"
mv "$folder"/dist/* "$dist/"
cd "$folder"
export SPYRE_CACHE_DIR="$folder/cache"
echo '==> trying it'
venv/bin/python try_installed.py venv
echo '==> trying it beside the LLVM of the system'
venv/bin/python try_installed.py venv "$(llvm-config-22 --libdir)/libMLIR.so"
echo '==> measuring its import'
venv/bin/python measure_import.py "$MOST_IMPORT_MILLISECONDS"
echo "==> $dist/$(basename "$wheel") works"
