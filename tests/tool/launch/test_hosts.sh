#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on two machines (machines.sh).
# shellcheck disable=SC2154,SC2317,SC1091,SC2086,SC2034 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 2 --dx 2400 --dt 15 --friction 0"

. "$here/machines.sh"
trap 'hosts_end; rm -rf "$top"' EXIT
if [ "$(id -u)" != 0 ]; then
  echo '1..0 # SKIP needs root, to make network namespaces'
  exit 0
fi
if ! hosts_begin 2>"$top/why"; then
  echo '1..0 # SKIP this machine lets nobody make network namespaces or wires'
  sed 's/^/# /' "$top/why"
  exit 0
fi

pieces() {
  "$clients/scene" "$bathymetry" 90 64 .
  for file in level depth; do run 0 "$sundog" split -n 4 $file.npy; done
}
# rank R STEPS: starts rank R of 4, two on each machine, like torchrun.
# Environment: rendezvous, secret (of machine 1, if it differs), limit.
rank() {
  local machine=$(($1 / 2)) mine=$secret
  [ "$machine" = 0 ] || mine=${other_secret:-$secret}
  (umask 077 && mkdir -p "$work/run$machine")
  on $machine env XDG_RUNTIME_DIR="$work/run$machine" RANK="$1" WORLD_SIZE=4 \
    LOCAL_RANK=$(($1 % 2)) LOCAL_WORLD_SIZE=2 SUNDOG_SECRET="$mine" \
    SUNDOG_RENDEZVOUS="$rendezvous" SUNDOG_TIMEOUT="${limit:-60}" \
    timeout 100 "$sundog" exec --device host --split H --view $view \
    --trace 'trace.%r' -- "$clients/shallow" --in "level$mine_of.npy" \
    --depth "depth$mine_of.npy" --out 'out.{rank}.npy' $shallow \
    --steps "$2" >"out$1" 2>"err$1" &
  pids[$1]=$!
}
pids=() view=shard mine_of='.{rank}'
secret=0123456789abcdef0123456789abcdef
rendezvous=tcp://192.0.2.1:29400
all_start() { for r in 0 1 2 3; do rank $r "$1"; done; }
# all_end STATUS...: checks the statuses in the order of ranks; "x" is any but
# 0.
all_end() {
  local r status
  for r in 0 1 2 3; do
    status=0
    wait "${pids[$r]}" || status=$?
    [ "$1" = "$status" ] || { [ "$1" = x ] && [ $status != 0 ]; } || {
      echo "# rank $r: status $status, not $1"
      tail -n 5 err?
      return 1
    }
    shift
  done
  rmdir run?/sundog run? # and nothing in them
}
# Waits until the program of rank R makes calls.
at_work() {
  local try=0
  until [ -s "trace.$1" ]; do
    [ $((try += 1)) -lt 3000 ] || return 1
    sleep 0.01
  done
  sleep 0.3
}

the_wire_is_all_they_share() {
  on 0 ip -o link | grep -q sundog0
  if on 1 ping -c 1 -W 1 203.0.113.1 >/dev/null 2>&1; then
    echo '# a machine has another way out'
    return 1
  fi
  [ "$(on 0 readlink /proc/self/ns/ipc)" != "$(on 1 readlink /proc/self/ns/ipc)" ]
  [ "$(on 0 readlink /proc/self/ns/net)" != "$(on 1 readlink /proc/self/ns/net)" ]
}
two_machines_give_the_file_of_one() {
  pieces
  for rendezvous in tcp://192.0.2.1:29400 'tcp://[2001:db8::1]:29400'; do
    all_start 30
    all_end 0 0 0 0
    for r in 0 1 2 3; do lacks err$r SDG-; done
    run 0 "$sundog" join joined.npy 'out.{rank}.npy'
    run 0 "$sundog" run -n 4 --device host --split H --view shard -- \
      "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
      --out 'here.{rank}.npy' $shallow --steps 30
    for r in 0 1 2 3; do cmp out.$r.npy here.$r.npy; done
    LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
      --out whole.npy $shallow --steps 30
    run 0 "$sundog" diff joined.npy whole.npy
    rm out.?.npy here.?.npy joined.npy
  done
}
programs_that_hold_the_whole_give_the_file_of_one() {
  "$clients/scene" "$bathymetry" 90 64 .
  view=whole mine_of=
  all_start 10
  all_end 0 0 0 0
  LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
    --out whole.npy $shallow --steps 10
  for r in 0 1 2 3; do run 0 "$sundog" diff out.$r.npy whole.npy; done
}
a_killed_rank_is_named_on_both_machines() {
  pieces
  all_start 1000000
  for r in 0 1 2 3; do at_work $r; done
  local start=$SECONDS
  # nsenter's child is timeout; the program is timeout's child.
  pkill -KILL -P "$(pgrep -P "${pids[2]}" || echo "${pids[2]}")" ||
    kill -KILL "${pids[2]}"
  all_end x x x x
  [ $((SECONDS - start)) -lt 100 ]
  for r in 0 1 3; do says err$r 'rank 2 '; done
}
names() { # RANKS PATTERN: what one of these ranks said has it
  cat err$1 | grep -Eq -- "$2" && return 0 # a glob
  echo "# no '$2' from rank $1:"
  sed 's/^/#   /' err$1
  return 1
}
a_cut_wire_ends_in_an_error_within_the_time_limit() {
  pieces
  limit=6
  all_start 1000000
  for r in 0 1 2 3; do at_work $r; done
  local start=$SECONDS
  on 1 ip link set sundog0 down
  all_end x x x x
  on 1 ip address add 2001:db8::2/64 dev sundog0 nodad 2>/dev/null || :
  on 1 ip link set sundog0 up
  local others=0123 took=$((SECONDS - start))
  [ $took -lt 60 ] || { echo "# it took $took s"; return 1; }
  # Each rank names one on the other machine, or its neighbour on its own
  # machine if that ended first for the same reason.
  for r in 0 1 2 3; do names $r "rank [${others/$r/}] "; done
  names '[01]' 'rank [23] '
  names '[23]' 'rank [01] '
}
another_secret_is_refused_and_the_missing_ranks_are_named() {
  pieces
  limit=3
  other_secret=another_secret_of_many_letters
  all_start 1
  all_end x x x x
  for r in 2 3; do says err$r SDG-207; done
  for r in 0 1; do says err$r 'ranks are missing: ranks 2, 3 of 4'; done
}
without_a_rendezvous_nothing_is_started() {
  RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 run 125 "$sundog" exec \
    --device host --split H --view shard -- touch started
  says err SUNDOG_RENDEZVOUS=tcp://
  SUNDOG_RENDEZVOUS=$rendezvous RANK=0 WORLD_SIZE=4 run 125 "$sundog" exec \
    --device host --split H --view shard -- touch started
  says err SDG-207
  [ ! -e started ]
}

cases the_wire_is_all_they_share two_machines_give_the_file_of_one \
  programs_that_hold_the_whole_give_the_file_of_one \
  a_killed_rank_is_named_on_both_machines \
  a_cut_wire_ends_in_an_error_within_the_time_limit \
  another_secret_is_refused_and_the_missing_ranks_are_named \
  without_a_rendezvous_nothing_is_started
