#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog exec` with real ranks under several launchers: what makes a process a
# rank, and what is refused.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086,SC2206,SC2016 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1 SUNDOG_TIMEOUT=30
shallow="--order 2 --steps 6 --dx 2400 --dt 15 --friction 0"
split=(--device host --split H --view shard)

pieces() { # N
  "$clients/scene" "$bathymetry" 91 60 .
  for file in level depth; do run 0 "$sundog" split -n "$1" $file.npy; done
  # The same words as for `sundog exec`.
  solver=("$clients/shallow" --in 'level.{rank}.npy' --depth
    'depth.{rank}.npy' --out 'out.{rank}.npy' $shallow)
}
same_file() {
  LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
    --out whole.npy $shallow
  run 0 "$sundog" join joined.npy 'out.{rank}.npy'
  run 0 "$sundog" diff joined.npy whole.npy
}
# torchrun N COMMAND...: starts ranks like torchrun; returns the largest status.
torchrun() {
  local size=$1 worst=0 status r pids=()
  shift
  for ((r = 0; r < size; r++)); do
    RANK=$r WORLD_SIZE=$size LOCAL_RANK=$r LOCAL_WORLD_SIZE=$size \
      GROUP_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
      TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 \
      "$@" >"out$r" 2>"err$r" </dev/null &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    status=0
    wait "$pid" || status=$?
    [ $status -le $worst ] || worst=$status
  done
  return $worst
}

torchruns_ranks_give_one_ranks_file() {
  pieces 3
  torchrun 3 "$sundog" exec "${split[@]}" -- "${solver[@]}"
  lacks err0 SDG-
  says err0 'sundog: [rank 0] H 91 = 31+30+30 over ranks=3, view shard'
  same_file
}
ranks_that_scripts_start_meet() {
  local r
  echo '"$@"; exit $?' >inner
  echo 'sh inner "$@"; exit $?' >script
  torchrun 3 sh script "$sundog" exec "${split[@]}" -- \
    sh -c "echo \"\$SUNDOG_RENDEZVOUS\"; $matched"
  for r in 0 1 2; do [ -s out$r ] && cmp out$r out0; done
}
# As in a container whose environment numbers the machines.
a_launcher_may_have_the_numbers_of_a_rank() {
  pieces 3
  export -f torchrun
  RANK=0 WORLD_SIZE=3 bash -c 'torchrun 3 "$@"; exit $?' - \
    "$sundog" exec "${split[@]}" -- "${solver[@]}"
  lacks err0 SDG-
  same_file
}
# two_ranks STATUS WORDS-OF-0 WORDS-OF-1: options of `sundog exec` for two ranks
# that end with the status; sets err0, err1.
two_ranks() {
  local r pid status expected=$1 pids=()
  shift
  for r in 0 1; do
    SUNDOG_RANK=$r SUNDOG_SIZE=2 "$sundog" exec --device host --view shard $1 \
      -- "${solver[@]}" >/dev/null 2>err$r &
    pids+=($!)
    shift
  done
  for pid in "${pids[@]}"; do
    status=0
    wait "$pid" || status=$?
    [ $status = "$expected" ] || return
  done
}
ranks_with_other_rules_are_refused() {
  pieces 2
  local start=$SECONDS words
  for words in '--wrap H' '--parts 46,45' '--piece-values local'; do
    two_ranks 1 '--split H' "--split H $words"
    says err0 SDG-301
    says err0 'rank 0 and rank 1 were given different rules'
    says err1 SDG-301
  done
  printf '[extents]\nrows = %d\n[shard a]\nmatch = N C H>=rows W\nsplit = H\n' \
    8 >a.ini
  sed 's/8/800/' a.ini >b.ini
  two_ranks 1 '--rules a.ini' '--rules b.ini'
  says err0 'rank 0 and rank 1 were given different rules'
  # Where a comment or the strategy differs, the rules are the same.
  printf '[shard a]\nmatch = N C H W\nsplit = H\n' >a.ini
  printf '# a comment\n[shard b]\n\nmatch=N C H W\nsplit=H\nstrategy=extend' >b.ini
  two_ranks 0 '--rules a.ini' '--rules b.ini'
  lacks err0 SDG-
  same_file
  [ $((SECONDS - start)) -lt 20 ]
}
recording=(exec --device host --split replicated --record kept)
# recorder_start: rank 0, which records until `end` exists, or this case has
# failed. Sets `first`.
recorder_start() {
  SUNDOG_RANK=0 SUNDOG_SIZE=2 "$sundog" "${recording[@]}" -- sh -c \
    'touch begun; until [ -e end ] || [ ! -e begun ]; do sleep 0.05; done' \
    >/dev/null 2>&1 &
  first=$!
  trap 'rm -f "$work/begun"' EXIT
  until [ -e begun ]; do kill -0 "$first" && sleep 0.05; done
  export SUNDOG_RANK=1 SUNDOG_SIZE=2
}
# As on machines that reach rank 0 by different networks.
ranks_with_different_addresses_of_rank_0_record_into_one_folder() {
  export SUNDOG_SECRET=0123456789abcdef0123456789abcdef
  SUNDOG_RENDEZVOUS=tcp://127.0.0.2:29471 recorder_start
  export SUNDOG_RENDEZVOUS=tcp://localhost:29471
  run 0 "$sundog" "${recording[@]}" -- true
  SUNDOG_SECRET=another-secret-of-others run 125 "$sundog" "${recording[@]}" -- true
  says err SDG-739
  SUNDOG_RENDEZVOUS=tcp://localhost:29472 run 125 "$sundog" "${recording[@]}" -- true
  says err SDG-739
  touch end
  wait "$first"
}
ranks_on_a_full_disk_are_not_refused() {
  cat >full.c <<'END'
#include <errno.h>
#include <unistd.h>
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
  errno = ENOSPC;
  return -1;
}
END
  "${CC:-cc}" -D_FILE_OFFSET_BITS=64 -shared -fPIC full.c -o full.so
  export LD_PRELOAD=$PWD/full.so
  recorder_start
  run 0 "$sundog" "${recording[@]}" -- true
  touch end
  wait "$first"
}
fewer_ranks_than_were_said_end_within_the_time_limit() {
  pieces 3
  local start=$SECONDS status=0
  for r in 0 1; do
    SUNDOG_RANK=$r SUNDOG_SIZE=3 SUNDOG_TIMEOUT=2 "$sundog" exec \
      "${split[@]}" -- "${solver[@]}" >/dev/null 2>err$r &
  done
  wait || status=$?
  [ $((SECONDS - start)) -lt 120 ] # not the default of 600
  for r in 0 1; do
    says err$r SDG-203
    says err$r 'rank 2 of 3'
  done
  [ ! -e out.0.npy ]
}
# Rank 2 never starts. Each rank is killed while it waits, or only its command.
a_job_that_is_killed_leaves_no_files() {
  pieces 3
  mkdir -m 700 runtime
  export XDG_RUNTIME_DIR=$work/runtime
  local signal try pids
  for signal in TERM KILL; do
    pids=()
    for r in 0 1; do
      SUNDOG_RANK=$r SUNDOG_SIZE=3 "$sundog" exec "${split[@]}" -- \
        "${solver[@]}" >/dev/null 2>&1 &
      pids+=($!)
    done
    try=0
    until [ -n "$(find runtime/sundog -type s 2>/dev/null)" ]; do
      [ $((try += 1)) -lt 3000 ]
      sleep 0.02
    done
    kill -$signal "${pids[@]}"
    wait || :
    try=0
    until [ -z "$(find runtime -mindepth 1 ! -name sundog)" ]; do
      [ $((try += 1)) -lt 3000 ] || { find runtime; return 1; }
      sleep 0.02
    done
  done
}
a_run_within_a_rank_is_refused() {
  run 0 "$sundog" run -n 2 --device host --split H --view shard -- sh -c \
    "'$sundog' run -n 2 --split H --view shard -- touch started 2>>inner || :
     $matched"
  says inner SDG-71
  rm inner
  torchrun 2 "$sundog" exec "${split[@]}" -- sh -c \
    "'$sundog' run -n 2 --split H --view shard -- touch started 2>>inner || :
     $matched"
  says inner SDG-71
  says inner SUNDOG_RANK
  [ ! -e started ]
}
# Starts a second process of the rank at the same time, not as a child of the
# first. Both run long enough to overlap; the script ends with status 0.
siblings() {
  pieces 2
  solver[-7]=2000
  cat >program <<'END'
"$@" &
first=$!
while [ ! -e "trace.$SUNDOG_RANK" ] && kill -0 $first 2>/dev/null; do
  sleep 0.02
done
"$CLIENTS/shallow" --in level.npy --depth depth.npy \
  --out "second.$SUNDOG_RANK.npy" $SHALLOW
echo "second $?"
wait $first
END
  export CLIENTS=$clients
  export SHALLOW="--order 2 --steps 6 --dx 2400 --dt 15 --friction 0"
}
only_the_first_process_of_a_rank_joins() {
  siblings
  local status=0
  torchrun 2 "$sundog" exec "${split[@]}" --trace 'trace.%r' -- \
    sh program "${solver[@]}" || status=$?
  [ $status = 125 ]
  for r in 0 1; do
    says err$r SDG-201
    says err$r "SDG-721 [rank $r]"
    says err$r '1 process could not join, and sundog refused calls'
    says err$r 'did not start process'
    lacks out$r 'second 0'
    [ ! -e second.$r.npy ]
    [ -e out.$r.npy ]
  done
}
a_run_in_which_a_process_was_no_rank_fails() {
  siblings
  run 125 "$sundog" run -n 2 "${split[@]}" --trace 'trace.%r' -- \
    sh program "${solver[@]}"
  says err SDG-201
  says err 'SDG-721'
  says err '2 processes could not join, and sundog refused calls'
}
earlier_preloads_stay_in_front() {
  local first=$top/build/interpose/first.so
  cp "$library_built" "$first"
  LD_PRELOAD=$first torchrun 2 "$sundog" exec "${split[@]}" -- \
    sh -c 'echo "$LD_PRELOAD";'"$matched"
  for r in 0 1; do
    [ "$(cat out$r)" = "$first:$top/build/interpose/libsundog.so" ]
  done
}
the_gpu_is_that_of_the_local_rank() {
  for visible in '' 4,5,6 GPU-a; do
    RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=8 \
      CUDA_VISIBLE_DEVICES=$visible "$sundog" exec --device cuda --split H \
      --view shard -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"' >out 2>err || {
      says err 'no NVIDIA driver' # then test_launch has the rest
      return 0
    }
    case $visible in
    '') [ "$(cat out)" = 1 ] ;;
    4*) [ "$(cat out)" = 5 ] ;;
    *) [ "$(cat out)" = GPU-a ] ;;
    esac
  done
  RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=8 CUDA_VISIBLE_DEVICES=4,5,6 \
    "$sundog" exec --bind none --device cuda --split H --view shard -- \
    sh -c 'echo "$CUDA_VISIBLE_DEVICES"' >out
  [ "$(cat out)" = 4,5,6 ]
}

cases torchruns_ranks_give_one_ranks_file ranks_that_scripts_start_meet \
  a_launcher_may_have_the_numbers_of_a_rank \
  ranks_with_other_rules_are_refused \
  ranks_with_different_addresses_of_rank_0_record_into_one_folder \
  ranks_on_a_full_disk_are_not_refused \
  fewer_ranks_than_were_said_end_within_the_time_limit \
  a_job_that_is_killed_leaves_no_files \
  a_run_within_a_rank_is_refused only_the_first_process_of_a_rank_joins \
  a_run_in_which_a_process_was_no_rank_fails \
  earlier_preloads_stay_in_front the_gpu_is_that_of_the_local_rank
