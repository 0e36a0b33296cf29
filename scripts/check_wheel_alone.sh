#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries a wheel on a Debian 12 that has Python and nothing else: no LLVM, no
# compiler, no network. Needs root and takes minutes, so .ci/run leaves it out.
#
# usage: scripts/check_wheel_alone.sh <wheel>
#   The wheel is one for Python 3.11, which Debian 12 has. MIRROR names another
#   mirror of Debian; pip's configuration says where torch comes from.
set -euo pipefail
[ $# = 1 ] || { sed -n 's/^# \?//; 3,8p' "$0" >&2; exit 2; }
wheel=$(realpath "$1")
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo 'check_wheel_alone: run as root' >&2; exit 1; }
command -v mmdebstrap >/dev/null || apt-get install -y --no-install-recommends mmdebstrap

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/debian

echo '==> installing Debian with Python'
mmdebstrap --quiet --variant=minbase --include=python3,python3-venv bookworm "$root" \
  ${MIRROR:+"$MIRROR"}
echo '==> fetching torch and what it needs'
mkdir "$root/wheels"
scripts/setup.sh environment
.venv/bin/python -m pip download -q --disable-pip-version-check --progress-bar off \
  --python-version 3.11 --only-binary :all: --dest "$root/wheels" "$wheel"
cp scripts/try_installed.py scripts/measure_import.py "$root/root/"

cat >"$root/root/try.sh" <<'SH'
set -euo pipefail
cd /root
if find / -xdev \( -name 'libLLVM*' -o -name 'libMLIR*' \) | grep .; then
  echo 'check_wheel_alone: expected a system without LLVM' >&2
  exit 1
fi
python3 -m venv venv
venv/bin/python -m pip install -q --no-index --find-links /wheels /wheels/torch_spyre-*.whl
venv/bin/python -c "import torch; print(torch.ones(3, device='spyre'))"
venv/bin/python try_installed.py venv
venv/bin/python measure_import.py
SH
echo '==> trying the wheel'
unshare --mount --net bash -c '
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  exec chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    bash /root/try.sh' - "$root"
echo "==> $(basename "$wheel") needs no LLVM"
