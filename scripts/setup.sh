#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing and nothing else: distribution packages, .venv, the
# build, the editable installation of the package. A run that finds everything
# in place costs a fraction of a second.
#
# usage: scripts/setup.sh environment | sanitizers | products | all | docs | wheel | models
#   environment  packages and .venv
#   sanitizers   the same and the runtimes of clang's sanitizers
#   products     and build the tools and the extension, install the package
#   all          and build the tests
#   docs         packages and .venv, MkDocs, the site of the documentation
#   wheel        packages and .venv, auditwheel
#   models       products, and the libraries of models
#
# PYTHON chooses the interpreter for .venv (Python 3.10 to 3.13 with headers and venv).
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  clang-22 clang-format-22 clang-tidy-22 lld-22
  cmake ninja-build ccache nlohmann-json3-dev libgtest-dev
)
# What the sanitized builds link; no other build needs it.
SANITIZER_PACKAGES=(libclang-rt-22-dev)
# Needed where the system's Python is the one that is used.
PYTHON_PACKAGES=(python3.11 python3.11-venv python3.11-dev)

say() { printf '==> %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# logged <log> <command...>: output into the log, a line every 10 seconds on
# the terminal, the end of the log if the command fails.
logged() {
  local log=$1 start=$SECONDS pid status=0 last
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    for _ in {1..50}; do
      sleep 0.2
      kill -0 "$pid" 2>/dev/null || break 2
    done
    last=$(tail -n 1 "$log" | tr -d '\r' | cut -c 1-100)
    printf '    %4d s  %s\n' $((SECONDS - start)) "$last"
  done
  wait "$pid" || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 30 "$log" >&2
    die "failed with status $status: $* (the whole output is in $log)"
  fi
}

# --- distribution packages ---------------------------------------------------

missing_packages() {
  local package
  for package in "$@"; do
    case $'\n'$installed$'\n' in
      *$'\n'"$package"$'\n'*) ;;
      *) echo "$package" ;;
    esac
  done
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null; }

# The missing ones of these, as root, and what it is that would install them.
install_packages() {
  local missing installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p')
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    die "these distribution packages are missing: $missing
Install them as root (apt-get install $missing) and run the command again."
  fi
  say "installing distribution packages: $missing"
  # The package lists of a bare system are empty or old.
  logged build/logs/apt-update.log apt_get update
  # shellcheck disable=SC2086  # a list of words
  logged build/logs/apt-install.log apt_get install --no-install-recommends $missing
}

# The packages that making .venv waits for: none, if there is a Python for it.
python_packages() {
  if [ -x .venv/bin/python ] || found_python ||
      ! command -v dpkg-query >/dev/null; then
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then  # names all that are missing
    install_packages "${PACKAGES[@]}" "${PYTHON_PACKAGES[@]}"
  fi
  install_packages "${PYTHON_PACKAGES[@]}"
}

packages() {
  if ! command -v dpkg-query >/dev/null; then
    local tool
    for tool in cmake ninja clang++-22 llvm-config-22 mlir-tblgen-22; do
      command -v "$tool" >/dev/null ||
        die "not a Debian system, and $tool is not on the PATH; needed are what" \
            "these Debian packages contain: ${PACKAGES[*]} ${PYTHON_PACKAGES[*]}"
    done
    return
  fi
  install_packages "${PACKAGES[@]}"
}

# --- .venv -------------------------------------------------------------------

# The first Python that can make environments and build extensions: the distribution's
# first. It is compiled with a profile. With one that is not (pyenv's, if nobody asks for
# it), tests that compile models take an eighth longer.
usable_python() {
  local python
  for python in ${PYTHON:-} /usr/bin/python3.11 python3.11 python3 \
      python3.13 python3.12 python3.10; do
    if "$python" - 2>/dev/null <<'PY'
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
sys.exit(not (3, 10) <= sys.version_info < (3, 14) or not os.path.exists(header))
PY
    then
      echo "$python"
      return
    fi
  done
  return 1
}

# The usable one, once found: all that may be one are asked only once.
python=
found_python() {
  [ -n "$python" ] || python=$(usable_python)
}

python_environment() {
  local stamp=.venv/.setup-stamp wanted
  wanted=$(cksum pyproject.toml)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  if ! [ -x .venv/bin/python ]; then
    found_python ||
      die "no Python 3.10 to 3.13 with venv and headers; set PYTHON to one"
    say "making .venv with $("$python" -V)"
    "$python" -m venv .venv
  fi
  say "installing Python packages into .venv"
  export TORCH_DEVICE_BACKEND_AUTOLOAD=0
  local requirements
  mapfile -t requirements < <(.venv/bin/python scripts/requirements.py)
  logged build/logs/pip.log .venv/bin/python -m pip install \
    --disable-pip-version-check --progress-bar off "${requirements[@]}"
  echo "$wanted" >"$stamp"
}

# Distribution packages and .venv, side by side: neither keeps two cores busy.
environment() {
  local jobs=() job failed=
  python_packages
  packages & jobs+=($!)
  python_environment & jobs+=($!)
  for job in "${jobs[@]}"; do
    wait "$job" || failed=yes
  done
  [ -z "$failed" ] || exit 1
}

# The packages of a dependency group or an extra that one purpose alone needs.
group_packages() {
  local group=$1 stamp=.venv/.$1-stamp requirements wanted
  mapfile -t requirements < <(.venv/bin/python scripts/requirements.py "$group")
  wanted="${requirements[*]}"
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  say "installing into .venv: $wanted"
  logged "build/logs/pip-$group.log" .venv/bin/python -m pip install \
    --disable-pip-version-check --progress-bar off "${requirements[@]}"
  echo "$wanted" >"$stamp"
}

# --- build -------------------------------------------------------------------

build() {
  export TORCH_DEVICE_BACKEND_AUTOLOAD=0
  if ! [ -f build/build.ninja ]; then
    say "configuring build/"
    logged build/logs/cmake.log cmake -G Ninja -S . -B build \
      -DCMAKE_BUILD_TYPE=Release "-DPython3_EXECUTABLE=$PWD/.venv/bin/python"
  fi
  say "building $*"
  NINJA_STATUS='[%f/%t %es] ' ninja -C build "$@"
}

# A link that leads nowhere is an error.
site() {
  NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --quiet
  say "open build/site/index.html"
}

install_package() {
  .venv/bin/python scripts/install_editable.py
}

case "${1:-}" in
  environment) environment ;;
  sanitizers) PACKAGES+=("${SANITIZER_PACKAGES[@]}"); environment ;;
  products) environment; build products; install_package ;;
  all) environment; build all; install_package ;;
  docs) environment; group_packages docs; build docs; site ;;
  wheel) environment; group_packages wheel ;;
  models)
    environment; group_packages models; .venv/bin/python scripts/mend_torchvision.py
    build products; install_package ;;
  *) sed -n 's/^# \?//; 3,16p' "$0" >&2; exit 2 ;;
esac
