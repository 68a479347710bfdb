#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# If nothing was split, the run reports the true reason.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(realpath "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") op_case=$(realpath "$5") linked=$(realpath "$6")
bathymetry=$here/../clients/bathymetry.npy
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

# solver STATUS WORDS...: runs the solver on two ranks with these words.
solver() {
  local status=$1
  shift
  "$clients/scene" "$bathymetry" 20 24 .
  run "$status" "$sundog" run -n 2 --device host "$@" -- "$clients/shallow" \
    --in level.npy --depth depth.npy --out 'out.{rank}.npy' --order 2 --steps 2 --dx 2400 \
    --dt 15 --friction 0
}
rules() { printf '%s\n' "$@" >net.rules; }

the_nearest_tensor_is_named() {
  # No rank joins, because no call depends on other ranks.
  rules '[shard x]' 'match = N C>=7 H' 'split = H' 'view = whole'
  solver 125 --rules net.rules
  says err 'SDG-717'
  says err 'calls were seen'
  grep -qE "nearest: cudnn[A-Za-z0-9]+, [a-z]+ 1x1x[0-9x]+, for section 'x': C>=7 is required, it is 1" err
  lacks err 'exit functions called cuDNN'
  # Ranks join, because a rank alone does not know the whole extent of a split
  # dimension.
  rules '[shard x]' 'match = N C H>=9999' 'split = H' 'view = shard' '[local]'
  solver 125 --rules net.rules
  says err 'H>=9999 is required, this rank has 20 of it'
  rules '[shard x]' 'match = N C D H' 'split = D' 'view = shard' '[local]'
  solver 125 --rules net.rules
  says err 'it has no D'
  rules '[shard x]' 'op = softmax' 'split = H' 'view = shard' '[local]'
  solver 125 --rules net.rules
  says err 'it is for another op'
}
products_are_seen_where_rules_are_about_them() {
  {
    printf 'case\nmemory a 120\nmemory b 240\nmemory c 288\n'
    echo "call matmul_lt a=a b=b c=c ta=N tb=T type=float ctype=float" \
      "alpha=1 beta=0 follow=relu rows=0 ondevice=0 halves=0 m=6 n=12 k=5" \
      "batch=0 lda=6 sa=0 ldb=12 sb=0 ldc=6 sc=0"
    echo run
  } >script
  head -c 648 /dev/zero >memory
  rules '[shard p]' 'match = M=7 N K' 'split = M' 'view = whole'
  run 125 "$sundog" run -n 2 --device host --rules net.rules -- "$op_case" \
    script memory 'o{rank}'
  says err "for section 'p': M=7 is required, it is 6"
  rules '[shard p]' 'split = H' 'view = whole'
  run 125 "$sundog" run -n 2 --device host --rules net.rules -- "$op_case" \
    script memory 'o{rank}'
  says err "cublasLtMatmul, product 6x12x5x1, for section 'p': it has no H"
}
a_program_without_cudnn_is_told_from_others() {
  rules '[shard p]' 'split = H' 'view = whole'
  run 125 "$sundog" run -n 2 --device host --rules net.rules -- true
  says err 'exit functions called cuDNN'
  lacks err 'nearest'
}
static_libraries_get_a_remedy() {
  run 3 "$sundog" run -n 1 --device host -- "$linked" 3
  says err "the CUDA runtime is linked into $linked, and sundog refuses its calls (SDG-733); link it to the shared one (nvcc --cudart shared)"
  run 125 "$sundog" run -n 2 --device host --split H --view whole -- "$linked" 0
  says err SDG-717
  says err 'nvcc --cudart shared'
  run 0 "$sundog" run -n 1 --device host -- "$linked" 0
  silent err
}
calls_in_full_are_told() {
  # Every rank carries out an op on other tensors in full.
  rules '[shard x]' 'match = N C H W' 'split = W' 'view = whole'
  solver 0 --rules net.rules
  lacks err 'ran in full'
  cat >prog <<'X'
#!/bin/sh
printf '{"rank":%s,"matched":4,"in_full":%s,"calls":[]}' $SUNDOG_RANK $1 >"$SUNDOG_REPORT/rank-$SUNDOG_RANK.json"
X
  chmod +x prog
  run 0 "$sundog" run -n 2 --device host --split H --view whole -- ./prog 4
  says err 'every tagged call (8 of all ranks) ran in full on each rank'
  run 0 "$sundog" run -n 2 --device host --split H --view whole -- ./prog 3
  silent err
}

cases the_nearest_tensor_is_named products_are_seen_where_rules_are_about_them \
  a_program_without_cudnn_is_told_from_others static_libraries_get_a_remedy \
  calls_in_full_are_told
