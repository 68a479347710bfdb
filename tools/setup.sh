#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs all that is missing and builds build/: Debian packages, CUDA's
# headers and libraries, meson, ninja. tools/demo and tools/test call it.
#
#   tools/setup.sh [--test] [--fetch-toolkit]
#
#   --test           also the packages that only tools/test needs; warnings of
#                    the compiler are errors
#   --fetch-toolkit  take NVIDIA's wheels even where a toolkit is installed
#
# May be called again at any time; it does only what is missing.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
. tools/shell/progress.sh

# The versions of NVIDIA's wheels that sundog is tested with.
wheels=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
  nvidia-cuda-cccl==13.0.85 nvidia-cuda-profiler-api==13.0.85
  nvidia-cublas==13.1.0.3 nvidia-cudnn-cu13==9.19.0.56
  nvidia-nccl-cu13==2.28.9)

groups=build
werror=false
fetch=no
for word in "$@"; do
  case $word in
  --test) groups='build|test' werror=true ;;
  --fetch-toolkit) fetch=yes ;;
  *)
    echo "setup: unknown option $word" >&2
    exit 2
    ;;
  esac
done

say() { printf 'setup: %s\n' "$*"; }

# packages_install LINE: updates the list of packages, then installs,
# because an old list names files that no longer exist.
packages_install() {
  { apt-get update -qq && $1 -qq; } </dev/null >build/apt.log 2>&1
}

# need_packages GROUPS: installs what is missing, or says how to.
need_packages() {
  local missing=() name
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: the counterparts of tools/packages must be there"
    return
  fi
  for name in $(awk -v g="^($1)\$" '!/^#/ && $2 ~ g { print $1 }' tools/packages); do
    dpkg-query -W -f='${db:Status-Abbrev}' "$name" 2>/dev/null |
      grep -q '^ii' || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local line="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    say "these Debian packages are missing; as root, run"
    echo "  $line"
    exit 1
  fi
  say "$line"
  export DEBIAN_FRONTEND=noninteractive
  progress "setup: installing ${#missing[@]} Debian packages" true \
    packages_install "$line" || {
    tail -n 20 build/apt.log >&2
    say "apt-get failed; its output is in build/apt.log"
    exit 1
  }
}

# defined HEADER NAME MAJOR MINOR: the header is of this version or a later one
# of the same major number.
defined() {
  awk -v major="$2_MAJOR" -v minor="$2_MINOR" -v m="$3" -v n="$4" '
    $1 == "#define" && $2 == major { good = $3 == m }
    $1 == "#define" && $2 == minor { late = $3 >= n }
    END { exit !(good && late) }' "$1" 2>/dev/null
}

# Prints why sundog cannot be built with the toolkit in a folder; nothing if it
# can.
toolkit_fault() {
  local header
  for header in cuda_runtime_api.h cuda_profiler_api.h cublas_v2.h cudnn.h \
    nccl.h; do
    [ -e "$1/include/$header" ] || {
      echo "no include/$header"
      return
    }
  done
  grep -Eq '#define +CUDART_VERSION +13' "$1/include/cuda_runtime_api.h" ||
    echo "not CUDA 13"
  defined "$1/include/cudnn_version.h" CUDNN 9 18 || echo "not cuDNN 9.18 or later"
  defined "$1/include/nccl.h" NCCL 2 27 || echo "not NCCL 2.27 or later"
}

stamp=$root/build/wheels/stamp
wheels_there() { [ "$(cat "$stamp" 2>/dev/null)" = "${wheels[*]}" ]; }

wheels_mb=1000 # about, of all of them
wheels_status() {
  printf ', %d of about %d MB' \
    "$(du -sm build/wheels 2>/dev/null | cut -f 1)" $wheels_mb
}
wheels_download() {
  # A virtual environment, because Debian's python3 refuses packages from pip.
  python3 -m venv --clear build/wheels/venv &&
    TMPDIR=$root/build/wheels build/wheels/venv/bin/python -m pip download \
      --quiet --no-deps --no-cache-dir --disable-pip-version-check \
      --dest build/wheels "${wheels[@]}"
}
wheels_unpack() {
  for file in build/wheels/*.whl; do
    python3 -m zipfile -e "$file" "$1" || return
  done
}

# NVIDIA's wheels, as a tree of links that looks like a toolkit: build/cuda.
fetch_toolkit() {
  local site=$root/build/wheels/site file
  if ! wheels_there; then
    say "NVIDIA's wheels: ${wheels[*]}"
    mkdir -p build/wheels
    progress "setup: fetching the wheels from PyPI into build/wheels" \
      wheels_status wheels_download || {
      say "the wheels cannot be fetched; install CUDA 13 with cuDNN 9 and NCCL,"
      say "and name its folder in CUDA_HOME"
      exit 1
    }
    rm -rf "$site"
    progress "setup: unpacking the wheels" true wheels_unpack "$site"
    rm -rf build/wheels/*.whl build/wheels/venv
    echo "${wheels[*]}" >"$stamp"
  fi
  rm -rf build/cuda
  mkdir -p build/cuda/include build/cuda/lib64
  # Wheels of CUDA 13 share nvidia/cu13; cuDNN and NCCL have their own folders.
  for file in "$site"/nvidia/*/include/*; do
    [ "${file##*/}" = __init__.py ] || ln -sfn "$file" build/cuda/include/
  done
  # cuda_fp16.h wants <nv/target>, which nvcc would find in cccl/.
  [ -e build/cuda/include/nv ] || ln -s cccl/nv build/cuda/include/nv
  for file in "$site"/nvidia/*/lib/*.so*; do
    ln -sfn "$file" build/cuda/lib64/
  done
  # Programs are linked with -lcudnn: the names without a version.
  for file in build/cuda/lib64/*.so.*; do
    ln -sfn "${file##*/}" "${file%%.so.*}.so"
  done
  local fault
  fault=$(toolkit_fault build/cuda)
  [ -z "$fault" ] || {
    say "the wheels are not as expected: $fault"
    exit 1
  }
}

mkdir -p build

toolkit=
if [ $fetch = no ]; then
  for dir in "${CUDA_HOME:-}" /usr/local/cuda; do
    [ -n "$dir" ] || continue
    fault=$(toolkit_fault "$dir")
    if [ -z "$fault" ]; then
      toolkit=$dir
      break
    fi
    say "$dir: ${fault//$'\n'/, }"
  done
  [ -n "$toolkit" ] || say "no CUDA 13 toolkit with cuDNN 9 and NCCL found"
fi
# One line names all that is missing.
[ -n "$toolkit" ] || wheels_there || groups="$groups|wheels"
need_packages "$groups"
if [ -z "$toolkit" ]; then
  fetch_toolkit
  toolkit=$root/build/cuda
fi
say "CUDA toolkit: $toolkit"

# Never set back to false: otherwise a demo after a test would rebuild all.
options=(-Dtoolkit="$toolkit")
[ $werror = false ] || options+=(-Dwerror=true)
if [ ! -e build/meson-private/coredata.dat ]; then
  meson setup build "${options[@]}" >build/setup.log 2>&1
elif ! meson configure build "${options[@]}" >build/setup.log 2>&1; then
  # Left by a moved checkout or another meson. The wheels stay.
  rm -rf build/meson-private build/meson-info build/build.ninja
  meson setup build "${options[@]}" >build/setup.log 2>&1
fi || {
  tail -n 20 build/setup.log >&2
  say "meson failed; its output is in build/setup.log"
  exit 1
}
# The steps that ninja will do, a line each.
steps=$(ninja -C build -n 2>/dev/null | grep -c '^\[' || true)
# A step takes about 0.15 s of one core; few take longer.
text="setup: building"
[ "$steps" -lt 40 ] ||
  text="$text, $(about $((steps * 15 / 100 / $(nproc) + 1)))"
ninja_status() {
  grep -o '^\[[0-9]*/[0-9]*\]' build/ninja.log 2>/dev/null | tail -n 1 |
    sed 's,\[\(.*\)/\(.*\)\],; \1 of \2,'
}
build() { ninja -C build >build/ninja.log 2>&1; }
if ! progress "$text" ninja_status build; then
  grep -E 'FAILED|error|warning' build/ninja.log | head -n 40 >&2 ||
    tail -n 20 build/ninja.log >&2
  say "the build failed; its output is in build/ninja.log"
  exit 1
fi
say "built in build/"
