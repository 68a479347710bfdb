#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda12.sh SOURCE BATCHES REAL SUNDOG FOLDER COMPILER...: a program of CUDA 12 that
# finds no libraries by itself runs on the host device, with those of 12.
set -eu
source=$1 batches=$2 real=$3 sundog=$(realpath -s "$4") folder=$5
shift 5
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
# Copies in batches have one parameter more in CUDA 12. The host device has none;
# in other programs they are those of SOURCE REAL. What calls them is the program,
# or, in the last one, a library of cuDNN's, which sundog does not follow.
cd "$scratch"
"$@" -shared -fPIC "$real" -o libbatch.so
"$@" -shared -fPIC "$batches" -DCALLER -o libcaller.so
cp libcaller.so libcudnn_caller.so
"$@" -c "$batches" -o batch.o
for words in "batch libcaller.so" "passed libcaller.so libbatch.so" \
  "foreign libcudnn_caller.so libbatch.so"; do
  # shellcheck disable=SC2086 # libraries
  "$@" batch.o ${words#* } "$folder"/libcudart.so.12 "$folder"/libcudnn.so.9 \
    -Wl,-rpath,"$scratch" -Wl,-rpath-link,"$folder" -o "${words%% *}"
done
# The whole view, which would take one for another, refuses them by name.
status=0
"$sundog" run -n 2 --device host --view whole --split H -- "$scratch/batch" \
  >output 2>&1 || status=$?
cat output
[ $status = 125 ]
for entry in cudaMemcpyBatchAsync cudaMemcpy3DBatchAsync; do
  grep -q "SDG-610.*$entry" output
done
# They reach the runtime otherwise: error 801, the host device has none.
"$sundog" run -n 1 --device host -- "$scratch/batch" >output
grep -qx 'batch 801' output
# passes PROGRAM VIEW [ARGUMENT]: the runtime gets all of their arguments. The
# model "any" wants no workspace.
passes() {
  SUNDOG_HOST_MODEL=any "$sundog" run -n 2 --device host --split H --view "$2" \
    -- "$scratch/$1" ${3+"$3"} >output 2>&1 || :
  cat output
  for copy in batch '3-D batch'; do
    grep -qx "$copy 0" output
    if grep -x "$copy [^0].*" output; then exit 1; fi
  done
}
passes passed shard
passes passed shard convolve
passes foreign shard convolve
passes foreign whole convolve
