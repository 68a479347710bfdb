#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog explain CALL` prints what a recorded run did with a call, and why.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 4 --steps 10 --dx 2400 --dt 15 --friction 0"

# recorded WORDS...: runs the solver on three ranks; records into the folder
# kept.
recorded() {
  "$clients/scene" "$bathymetry" 91 120 .
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  run 0 "$sundog" run -n 3 --device host "$@" --record kept -- \
    "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'out.{rank}.npy' $shallow
}
# first ENTRY RANK: prints the number of the first call of the entry.
first() {
  sed -n "s/^{\"call\":\([0-9]*\),.*\"$1\".*/\1/p" "kept/rank-$2" | head -n 1
}
explain() { run 0 "$sundog" explain --record kept "$@"; }

a_call_is_explained() {
  printf '\n[shard field]\nmatch = H>=32 W>=64\nsplit = H\n' >r.rules
  printf 'view = shard\n' >>r.rules
  recorded --rules r.rules
  explain --rank 1 "$(first cudnnConvolutionForward 1)"
  says out 'of rank 1: cudnnConvolutionForward'
  says out '[shard field] of '
  says out '/r.rules, line 2:'
  says out '1x1x41x120 here, of 1x1x91x120: H 91 = 30+41+20 over ranks=3'
  says out 'begins at (0, 0, 30, 0)'
  says out 'strategy  repair; auto: '
  # A row of 120 floats from each neighbour.
  says out 'halo      960 bytes from other ranks'
  says out 'receives 480 bytes from rank 0'
  says out 'sends 480 bytes to rank 2'
  says out 'calls     2 of the vendor'
  explain --rank 0 "$(first cudnnConvolutionForward 0)"
  says out 'halo      480 bytes from other ranks'
  explain "$(first cudnnOpTensor 0)"
  says out 'strategy  literal; '
  [ "$(stat -c %a kept kept/rank-0 | tr '\n' ' ')" = '700 600 ' ]
}
calls_are_listed_without_a_number() {
  printf '[shard field]\nmatch = H>=32 W>=64\nsplit = H\nview = shard\n' >r.rules
  recorded --rules r.rules
  explain --rank 1
  says out "$(grep -c '^{"call"' kept/rank-1) calls of rank 1"
  # Each call has one line; its first number can be given to explain.
  awk 'NR > 2 { sum += $2 } NR == 1 { all = $1 } END { exit sum != all }' out
  line=$(grep ' repair  *field  *cudnnConvolutionForward' out | head -n 1)
  [ "$(awk '{ print $1 }' <<<"$line")" = "$(first cudnnConvolutionForward 1)" ]
  [ "$(awk 'length > most { most = length } END { print most }' out)" -le 80 ]
  # A record may lack some facts about a call.
  printf '{"call":1,"thread":0,"entry":"f","by":9}\n{"call":2,"thread":0}\n' \
    >kept/rank-0
  printf '{"call":3,"thread":0,"entry":"g","failed":"why"}\n' >>kept/rank-0
  explain
  says out '3 calls of rank 0'
  grep -q '^ *3  *1 failed  *-  *g$' out
}
a_strategy_that_was_asked_for_is_told() {
  recorded --split H --view shard --strategy extend
  explain --rank 2 "$(first cudnnConvolutionForward 2)"
  says out '[shard split] of SUNDOG_SPLIT:'
  says out "strategy  extend; asked for"
}
auto_takes_what_costs_less() {
  # Copies that cost nothing; copies of a byte in a second.
  SUNDOG_COST=1e30,0,7 recorded --split H --view shard
  explain --rank 2 "$(first cudnnConvolutionForward 2)"
  says out 'strategy  extend; auto: beside the call itself extend costs the'
  says out 'slowest rank 0 us, repair 7 us (SUNDOG_COST=1e+30,0,7,0)'
  says out 'calls     1 of the vendor'
  mkdir first && mv out.*.npy first
  SUNDOG_COST=1,0,7,64 recorded --split H --view shard
  explain --rank 2 "$(first cudnnConvolutionForward 2)"
  says out 'strategy  repair; auto: beside the call itself repair costs the'
  says out '(SUNDOG_COST=1,0,7,64)'
  for rank in 0 1 2; do cmp first/out.$rank.npy out.$rank.npy; done
}
ranks_with_unlike_numbers_choose_alike() {
  "$clients/scene" "$bathymetry" 91 120 .
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  # The ranks alone would extend, repair and repair.
  printf '%s\n' '#!/bin/sh' \
    'costs="1e30,0,7 1,0,8,16 1e30,0,0,2"' \
    'rank=$1; shift' \
    'SUNDOG_COST=$(echo $costs | cut -d" " -f$((rank + 1))) exec "$@"' >unlike
  chmod +x unlike
  run 0 "$sundog" run -n 3 --device host --split H --view shard --record kept \
    -- ./unlike '{rank}' "$clients/shallow" --in 'level.{rank}.npy' \
    --depth 'depth.{rank}.npy' --out 'out.{rank}.npy' $shallow
  for rank in 0 1 2; do
    explain --rank $rank "$(first cudnnConvolutionForward $rank)"
    says out 'strategy  repair; auto: '
    says out '(SUNDOG_COST=1,0,8,16)'
  done
}
bytes_sent_to_owners_of_a_gradient_are_shown() {
  run 0 "$sundog" run -n 2 --device host --split H --view whole --record kept -- \
    "$clients/unet" --steps 2
  plan=$(sed -n 's/^{"plan":\([0-9]*\),.*"adjoint".*/\1/p' kept/rank-1)
  explain --rank 1 \
    "$(sed -n "s/^{\"call\":\([0-9]*\),.*\"by\":$plan}/\1/p" kept/rank-1 |
      head -n 1)"
  says out 'of rank 1: cudnnConvolutionBackwardData'
  says out 'strategy  adjoint; auto: '
}
an_output_of_the_whole_view_is_where_its_parts_are() {
  run 0 "$sundog" run -n 3 --device host --split M --view whole --record kept -- \
    "$clients/linear" --steps 1
  explain --rank 1 1
  says out 'product   16x60x12 here, of 16x60x12: M 16 = 6+5+5 over ranks=3'
  says out 'c         60x16 here, of 60x16: M 16 = 6+5+5 over ranks=3'
  says out 'begins at (0, 6), output'
  says out 'strategy  part; each rank has all addends'
}
sums_over_ranks_are_shown() {
  run 0 "$sundog" run -n 3 --device host --split N --view shard --record kept -- \
    "$clients/batches"
  explain --rank 1 "$(first cudnnReduceTensor 1)"
  says out 'halo      0 bytes from other ranks'
  says out 'sums      4 bytes, made over the ranks'
}
a_record_changes_nothing() {
  recorded --split H --view shard
  mkdir first && mv out.*.npy first
  run 0 "$sundog" run -n 3 --device host --split H --view shard -- \
    "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'out.{rank}.npy' $shallow
  for rank in 0 1 2; do cmp first/out.$rank.npy out.$rank.npy; done
}
missing_records_and_calls_are_reported() {
  recorded --split H --view shard
  run 64 "$sundog" explain --record kept 100000
  says err 'has no call 100000'
  run 74 "$sundog" explain --record kept --rank 7 1
  says err 'SDG-700'
  run 64 "$sundog" explain --record kept SDG-204
  run 64 "$sundog" explain --record kept ''
  run 64 "$sundog" explain --record kept --thread 3
  says err 'no call of thread 3'
  run 74 "$sundog" explain --record kept --rank 7
  printf '{"call":3\nxx\n[]\n{"call":1,"thread":0,"by":9}\n' >kept/rank-0
  explain 1
  says out 'untagged'
}
a_record_that_cannot_be_written_harms_nothing() {
  mkdir kept
  ln -s /dev/full kept/rank-0
  recorded --split H --view shard
  says err SDG-003
  explain --rank 1 "$(first cudnnConvolutionForward 1)"
}

cases a_call_is_explained calls_are_listed_without_a_number \
  a_strategy_that_was_asked_for_is_told auto_takes_what_costs_less \
  ranks_with_unlike_numbers_choose_alike \
  bytes_sent_to_owners_of_a_gradient_are_shown \
  an_output_of_the_whole_view_is_where_its_parts_are \
  sums_over_ranks_are_shown \
  a_record_changes_nothing missing_records_and_calls_are_reported \
  a_record_that_cannot_be_written_harms_nothing
