#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda12.sh SOURCE SUNDOG FOLDER COMPILER...: a program of CUDA 12 that finds no
# libraries by itself runs on the host device, with those of 12.
set -eu
source=$1 sundog=$2 folder=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$@" "$source" -o "$scratch/program" "$folder"/libcudart.so.12 \
  "$folder"/libcublas.so.12 "$folder"/libcudnn.so.9 "$folder"/libnccl.so.2 \
  -Wl,-rpath-link,"$folder"
unset LD_LIBRARY_PATH LD_PRELOAD
if readelf -d "$scratch/program" | grep -q 'R.*PATH'; then
  echo "the program has a path to its libraries"
  exit 1
fi
# Its library may be the one that needs them.
"$@" -shared -fPIC "$source" -Dmain=library_main -o "$scratch/libinner.so" \
  "$folder"/libcudart.so.12 "$folder"/libcublas.so.12 "$folder"/libcudnn.so.9 \
  "$folder"/libnccl.so.2 -Wl,-rpath-link,"$folder"
echo 'int library_main(void); int main(void) { return library_main(); }' \
  >"$scratch/outer.c"
"$@" "$scratch/outer.c" -o "$scratch/outer" -L"$scratch" -linner \
  -Wl,-rpath,"$scratch" -Wl,-rpath-link,"$folder"
"$sundog" run -n 1 --device host -- "$scratch/outer" |
  grep -qx 'sundog host device'
LD_BIND_NOW=1 "$sundog" run -n 1 --device host -- "$scratch/program" \
  >"$scratch/output"
cat "$scratch/output"
grep -qx 'sundog host device' "$scratch/output"
