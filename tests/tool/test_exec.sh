#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog exec`: one rank inside a launcher, which stays in charge.
# shellcheck disable=SC2016,SC2154,SC2317,SC1091 # text for other shells
. "$(dirname "$0")/harness.sh"

split=(--split H --view shard)

the_process_becomes_the_program() {
  "$sundog" exec --alone -- sh -c 'echo $$' >out &
  local pid=$!
  wait "$pid"
  [ "$(cat out)" = "$pid" ]
}
the_launchers_numbers_replace_placeholders() {
  SUNDOG_RANK=1 SUNDOG_SIZE=3 run 0 "$sundog" exec "${split[@]}" -- \
    echo '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 1/3/1 ]
  RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 run 0 "$sundog" exec "${split[@]}" -- \
    echo '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 2/4/0 ]
  OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 \
    run 0 "$sundog" exec "${split[@]}" -- echo '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 3/8/1 ]
  FLUX_TASK_RANK=3 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_ID=99 \
    FLUX_JOB_NNODES=1 run 0 "$sundog" exec "${split[@]}" -- \
    echo '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 3/4/1 ]
  PALS_RANKID=3 PALS_LOCAL_RANKID=1 PMI_SIZE=4 PALS_LOCAL_SIZE=4 run 0 \
    "$sundog" exec "${split[@]}" -- echo '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 3/4/1 ]
}
without_a_launcher_nothing_is_started() {
  local name
  run 125 "$sundog" exec "${split[@]}" -- touch started
  says err 'SDG-209'
  for name in SUNDOG_RANK RANK WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_RANK \
    PALS_RANKID PMI_SIZE FLUX_TASK_RANK FLUX_JOB_SIZE PMIX_RANK SLURM_PROCID \
    SLURM_NTASKS; do
    says err "$name"
  done
  # Shells of an allocation have a size, and are no rank.
  SLURM_NTASKS=4 SLURM_JOB_ID=7 run 125 "$sundog" exec "${split[@]}" -- \
    touch started
  FLUX_JOB_SIZE=4 run 125 "$sundog" exec "${split[@]}" -- touch started
  run 125 "$sundog" exec -- touch started
  [ ! -e started ]
}
one_rank_may_be_alone() {
  run 0 "$sundog" exec --alone "${split[@]}" -- \
    sh -c 'echo {rank}/{size} $SUNDOG_RANK/$SUNDOG_SIZE'
  [ "$(cat out)" = '0/1 0/1' ]
  RANK=0 WORLD_SIZE=1 run 0 "$sundog" exec --alone -- true
  RANK=1 WORLD_SIZE=2 run 0 "$sundog" exec --alone "${split[@]}" -- \
    echo '{rank}/{size}'
  [ "$(cat out)" = 0/1 ]
}
numbers_left_over_in_a_shell_make_nobody_alone() {
  export SUNDOG_RANK=0 SUNDOG_SIZE=1
  SLURM_PROCID=2 SLURM_NTASKS=4 run 125 "$sundog" exec "${split[@]}" -- \
    touch started
  says err 'SDG-202'
  says err 'one rank by SUNDOG_RANK/SUNDOG_SIZE, but SLURM_PROCID=2 of SLURM_NTASKS=4'
  unset SUNDOG_RANK SUNDOG_SIZE
  RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 run 125 \
    "$sundog" exec "${split[@]}" -- touch started
  [ ! -e started ]
  # Where that is meant, the program has to know.
  SUNDOG_RANK=0 SUNDOG_SIZE=1 SLURM_PROCID=2 SLURM_NTASKS=4 run 0 "$sundog" \
    exec --alone "${split[@]}" -- sh -c 'echo $SUNDOG_LAUNCH'
  [ "$(cat out)" = 'alone, SLURM_PROCID=2 of SLURM_NTASKS=4' ]
  # A shell that is alone is not yet what it starts.
  run 0 "$sundog" exec --alone "${split[@]}" -- sh -c "
    '$sundog' exec -- echo again
    SLURM_PROCID=1 SLURM_NTASKS=2 '$sundog' exec -- touch started || :"
  says out again
  says err SDG-202
  [ ! -e started ]
}
the_status_is_the_programs() {
  run 42 "$sundog" exec --alone -- sh -c 'exit 42'
  run 127 "$sundog" exec --alone -- ./nowhere
  says err SDG-715
  run 126 "$sundog" exec --alone -- /etc/passwd
  run 64 "$sundog" exec
}
the_environment_is_set() {
  local first=$top/build/interpose/first.so
  cp "$library_built" "$first"
  export LD_PRELOAD=$first LD_LIBRARY_PATH=/elsewhere
  run 0 "$sundog" exec --alone --device host "${split[@]}" -- sh -c \
    'echo $LD_PRELOAD; echo $LD_LIBRARY_PATH; echo $SUNDOG_SPLIT $SUNDOG_VIEW'
  [ "$(cat out)" = "$first:$top/build/interpose/libsundog.so
$top/build/src/host/lib:/elsewhere
H shard" ]
}
arguments_arrive_as_they_are() {
  run 0 "$sundog" exec --alone -- printf '[%s]' 'a b' '' '*' '--' -n
  [ "$(cat out)" = '[a b][][*][--][-n]' ]
}
wrong_configurations_start_nothing() {
  RANK=1 WORLD_SIZE=2 run 125 "$sundog" exec -- touch started
  says err SDG-711
  RANK=1 run 125 "$sundog" exec -- touch started
  RANK=4 WORLD_SIZE=2 run 125 "$sundog" exec "${split[@]}" -- touch started
  run 125 env SUNDOG_SPILT=H "$sundog" exec -- touch started
  says err 'nearest: SUNDOG_SPLIT'
  [ ! -e started ]
}
a_folder_with_spaces_is_reached_through_a_link() {
  layout "$work/a b"
  mkdir -m 700 runtime
  for _ in first second; do
    XDG_RUNTIME_DIR=$PWD/runtime run 0 "$work/a b/tools/sundog" exec --alone \
      "${split[@]}" -- sh -c 'readlink "$LD_PRELOAD"'
    [ "$(cat out)" = "$work/a b/interpose/libsundog.so" ]
  done
}
a_command_without_its_library_says_so() {
  mkdir -p alone
  cp "$sundog" alone/sundog
  run 125 alone/sundog exec -- touch started
  says err 'no libsundog.so beside'
  [ ! -e started ]
}

cases the_process_becomes_the_program \
  the_launchers_numbers_replace_placeholders \
  without_a_launcher_nothing_is_started one_rank_may_be_alone \
  numbers_left_over_in_a_shell_make_nobody_alone the_status_is_the_programs \
  the_environment_is_set arguments_arrive_as_they_are \
  wrong_configurations_start_nothing \
  a_folder_with_spaces_is_reached_through_a_link \
  a_command_without_its_library_says_so
