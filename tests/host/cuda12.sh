#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda12.sh SOURCE BATCHES SUNDOG FOLDER COMPILER...: a program of CUDA 12 that
# finds no libraries by itself runs on the host device, with those of 12.
set -eu
source=$1 batches=$2 sundog=$3 folder=$4
shift 4
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
# Copies in batches have other parameters in CUDA 12: the whole view, which
# would take one for another, refuses them by name.
"$@" "$batches" -o "$scratch/batch" "$folder"/libcudart.so.12 \
  -Wl,-rpath-link,"$folder"
status=0
"$sundog" run -n 2 --device host --view whole --split H -- "$scratch/batch" \
  >"$scratch/output" 2>&1 || status=$?
cat "$scratch/output"
[ $status = 125 ]
for entry in cudaMemcpyBatchAsync cudaMemcpy3DBatchAsync; do
  grep -q "SDG-610.*$entry" "$scratch/output"
done
# They reach the runtime otherwise: error 801, the host device has none.
"$sundog" run -n 1 --device host -- "$scratch/batch" >"$scratch/output"
grep -qx 'batch 801' "$scratch/output"
