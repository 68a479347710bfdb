#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the shard view sundog says if all ranks have written their pieces to one
# file, and blames no other file.
# shellcheck disable=SC2016,SC2154,SC2317,SC1091 # text for other shells; harness.sh
. "$(dirname "$0")/../harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

scene() { # a level and a depth, in two pieces each
  "$clients/scene" "$here/../../clients/bathymetry.npy" 91 120 .
  run 0 "$sundog" split -n 2 level.npy
  run 0 "$sundog" split -n 2 depth.npy
}
run_options=(--split H --view shard) before=() ranks=2
# solved OUT WORDS...: `before` are words in front of the solver.
solved() {
  run 0 "$sundog" run -n $ranks --device host "${run_options[@]}" -- \
    "${before[@]}" "$clients/shallow" --in "$work/level.{rank}.npy" \
    --depth "$work/depth.{rank}.npy" --out "$@" --order 4 --steps 2 \
    --dx 2400 --dt 15 --friction 0
}

one_name_for_all_pieces_is_said() {
  scene
  solved out.npy
  says err 'SDG-740'
  says err "out.npy was written, and all 2 ranks were given this name"
  says err "'out.{rank}.npy'"
  [ "$(grep -c SDG-740 err)" = 1 ]
  # An older result does not hide it.
  solved out.npy
  says err 'SDG-740'
  mkdir results.d
  solved results.d/out
  says err "'results.d/out.{rank}'"
  run 0 "$sundog" run -n 2 --device host "${run_options[@]}" -- \
    "$clients/shallow" '--in=level.{rank}.npy' '--depth=depth.{rank}.npy' \
    --out=./.out.npy --order 4 --steps 2 --dx 2400 --dt 15 --friction 0
  says err "'--out=./.out.{rank}.npy'"
}
pieces_of_different_sizes_are_said() {
  scene
  run 0 "$sundog" split --parts 30,61 level.npy
  run 0 "$sundog" split --parts 30,61 depth.npy
  solved out.npy
  says err 'SDG-740'
}
names_with_the_rank_are_not_spoken_of() {
  scene
  solved 'out.{rank}.npy'
  lacks err SDG-740
  run_options+=(--ranks-folder 'folder-{rank}')
  before=(sh -c '"$@" && cp out.npy ..' sh) # another file
  solved out.npy
  lacks err SDG-740
}
the_same_result_of_all_ranks_is_not_spoken_of() {
  scene
  run_options=(--split H --view whole)
  for file in level depth; do
    cp $file.npy $file.0.npy
    cp $file.npy $file.1.npy
  done
  solved out.npy
  lacks err SDG-740
  run_options=(--split replicated)
  solved out.npy
  lacks err SDG-740
  ranks=1 run_options=(--split H --view shard)
  solved out.npy
  lacks err SDG-740
  ranks=2 run_options=(--split H --view whole)
  export SUNDOG_ON_ERROR=ignore
  solved out.npy
  lacks err SDG-740
}
files_that_are_read_are_not_spoken_of() {
  scene
  echo words >notes.txt
  before=(sh -c 'cat notes.txt && "$@"' notes.txt)
  solved 'out.{rank}.npy'
  lacks err SDG-740
}
a_file_of_one_rank_is_not_spoken_of() {
  scene
  # The word tells the program its rank.
  before=(sh -c 'if [ "$1" = 1 ]; then seq 1000 9999 >more; else seq 1000 9999 >log; fi
    shift 2; "$@"' sh '{rank}' log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
  # Or the environment does.
  before=(sh -c 'if [ $SUNDOG_RANK = 1 ]; then seq 1000 9999 >more
    else seq 1000 9999 >log; fi; shift; "$@"' sh log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
  printf '#!/bin/sh\n%s\n' "${before[2]}" >ranked
  before=(sh ranked log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
  chmod +x ranked
  PATH=$PATH:$PWD before=(ranked log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
  # The file of a module is not among the words.
  cat >own.py <<'END'
import os, subprocess, sys
name = "log" if os.environ["SUNDOG_RANK"] == "0" else "more"
open(name, "w").writelines(str(i) for i in range(9999))
sys.exit(subprocess.call(sys.argv[2:]))
END
  before=(python3 -B -m own log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
  # Nobody sees how the program knows, but other ranks write less.
  before=(sh -c '[ $(env | sed -n s/^SUNDOG_R[A]NK=//p) = 1 ] || seq 1000 9999 >log
    shift; "$@"' sh log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
}
a_file_that_ranks_append_to_is_not_spoken_of() {
  scene
  # The ranks print more than they append.
  before=(sh -c 'echo "a line of a log" >>log; seq 99; shift; "$@"' sh log)
  solved 'out.{rank}.npy'
  lacks err SDG-740
  echo "what was there" >log
  before[2]='echo $$ >>log; seq 99; shift; "$@"'
  solved 'out.{rank}.npy'
  lacks err SDG-740
  rm log
  before[2]='seq $$ $(($$ + 999)) >>log; shift; "$@"'
  solved 'out.{rank}.npy'
  lacks err SDG-740
}
the_output_of_the_command_is_not_spoken_of() {
  scene
  # shellcheck disable=SC2094 # a word
  "$sundog" run -n 2 --device host "${run_options[@]}" -- sh -c \
    'echo $$; seq 1000 9999 >/dev/null; shift; "$@"' sh ./log "$clients/shallow" --in 'level.{rank}.npy' \
    --depth 'depth.{rank}.npy' --out 'out.{rank}.npy' --order 4 --steps 2 \
    --dx 2400 --dt 15 --friction 0 >log 2>err
  lacks err SDG-740
}
a_run_that_fails_says_its_failure_alone() {
  scene
  run 3 "$sundog" run -n 2 --device host "${run_options[@]}" -- sh -c \
    '"$@"; exit 3' sh "$clients/shallow" --in 'level.{rank}.npy' \
    --depth 'depth.{rank}.npy' --out out.npy --order 4 --steps 2 \
    --dx 2400 --dt 15 --friction 0
  lacks err SDG-740
}

cases one_name_for_all_pieces_is_said pieces_of_different_sizes_are_said \
  names_with_the_rank_are_not_spoken_of \
  the_same_result_of_all_ranks_is_not_spoken_of \
  files_that_are_read_are_not_spoken_of a_file_of_one_rank_is_not_spoken_of \
  a_file_that_ranks_append_to_is_not_spoken_of \
  the_output_of_the_command_is_not_spoken_of \
  a_run_that_fails_says_its_failure_alone
