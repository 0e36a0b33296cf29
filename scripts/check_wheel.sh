#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel and tries it in an environment of its own, outside the
# source tree: the device, a trip there and back, a compiled function.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh environment
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo '==> building the wheel'
TORCH_DEVICE_BACKEND_AUTOLOAD=0 .venv/bin/python -m pip wheel . --no-deps \
  --no-build-isolation --disable-pip-version-check --wheel-dir "$folder/dist"
echo '==> installing it into a second environment'
.venv/bin/python -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check \
  --progress-bar off "$folder"/dist/torch_spyre-*.whl
echo '==> trying it'
cp scripts/try_installed.py "$folder/"
cd "$folder"
SPYRE_CACHE_DIR="$folder/cache" venv/bin/python try_installed.py "$folder/venv"
