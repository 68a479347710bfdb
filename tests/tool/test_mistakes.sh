#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Mistakes in the command line, made in every example of every --help: each ends
# with the status of a wrong command line and prints what to write instead.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"
verbs=(run exec options explain split join diff doctor inspect verify rules)

# Sets `lines` to the examples of a command, without comments.
examples() {
  "$sundog" "$1" --help | sed -n "s/^ *sundog \($1 .*\)$/\1/p" >lines
}
# wrong WORD...: checks that a wrong command line ends with a message.
wrong() {
  run 64 "$sundog" "$@"
  silent out
  grep -q 'sundog' err
}
typos_of_verbs_have_a_nearest() {
  local verb
  for verb in "${verbs[@]}"; do
    wrong "${verb}x"
    says err "nearest: $verb"
    wrong "${verb^}"
    says err 'nearest: '
  done
  wrong --hlep
  says err 'nearest: --help'
  wrong ''
}
typos_of_options_have_a_nearest() {
  local verb words index option wrong count=0
  for verb in "${verbs[@]}"; do
    examples "$verb"
    while read -ra words; do
      for index in "${!words[@]}"; do
        option=${words[$index]}
        [ "$option" != -- ] || break
        [[ $option == --* ]] || continue
        wrong=("${words[@]}")
        wrong[index]="--${option:3:1}${option:2:1}${option:4}"
        [ "${wrong[$index]}" != "$option" ] || continue
        wrong "${wrong[@]}"
        says err "nearest: ${option%%=*}"
        count=$((count + 1))
      done
    done <lines
  done
  [ "$count" -gt 10 ]
}
numbers_of_ranks_that_cannot_be() {
  local verb words index number wrong count=0
  for verb in "${verbs[@]}"; do
    examples "$verb"
    while read -ra words; do
      for index in "${!words[@]}"; do
        [ "${words[$index]}" = -n ] || continue
        for number in 0 -1 99999 99999999999999999999 x 2x ''; do
          wrong=("${words[@]}")
          wrong[index + 1]=$number
          wrong "${wrong[@]}"
          says err '1024'
          count=$((count + 1))
        done
      done
    done <lines
  done
  [ "$count" -gt 20 ]
}
empty_words() {
  local verb
  for verb in run exec inspect; do
    wrong "$verb" ''
    says err 'must be a program'
    wrong "$verb" -- '' x
  done
  wrong verify -n 2 --calls 3 -- ''
  for verb in explain split doctor; do
    wrong "$verb" ''
    says err 'is empty'
  done
  wrong join '' a.npy
  wrong join a.npy ''
  wrong diff a.npy ''
  wrong rules --check ''
  wrong split --dim '' -n 2 a.npy
  says err '--dim takes DIM'
  wrong split --dim= -n 2 a.npy
  wrong split -d '' -n 2 a.npy
  wrong split -n 2 -o '' a.npy
  wrong run -n 2 --rules '' -- true
  wrong run -n 2 --split H --view whole --ranks-output '' -- true
  wrong inspect -o '' -- true
  wrong verify -n 2 --output '' --split H --view whole -- true
}
options_behind_the_program() {
  local verb
  for verb in run inspect; do
    wrong "$verb" true --split H --view whole
    says err "sundog $verb --split ... -- true"
    wrong "$verb" true --mesh=y=2
  done
  wrong run -n 2 ./solver --rules r.ini
  # It is clear whose option it is: it is before the program, or -- is given, or
  # no program runs.
  run 0 "$sundog" run -- true --split H
  SUNDOG_ON_ERROR=ignore run 125 "$sundog" run --split H --view whole true \
    --split H
  says err SDG-717
}
words_where_there_are_none() {
  wrong options SUNDOG_SPLIT
  says err "takes no arguments, but got 'SUNDOG_SPLIT'"
}
folders_and_files_that_are_not_there() {
  mkdir folder
  wrong inspect -o folder -- true
  says err 'folder is a folder'
  local words
  for words in 'split -n 2' 'join o.npy' 'diff folder' 'rules --check'; do
    # shellcheck disable=SC2086 # words
    run 74 "$sundog" $words nowhere.npy
    grep -qE 'nowhere.npy: No such file|folder is not a regular' err
    # shellcheck disable=SC2086 # words
    run 74 "$sundog" $words folder
    says err 'not a regular file'
  done
  run 127 "$sundog" run ./nowhere
  says err './nowhere: No such file'
}
pieces_for_more_ranks_are_said() {
  touch f.0 f.1 f.2 out.2
  # shellcheck disable=SC2016 # words of a shell
  run 0 "$sundog" run -n 2 --split replicated -- true 'f.{rank}' 'out.{rank}'
  says err 'f.2 exists, but the last rank is 1 of 2'
  [ "$(grep -c 'exists, but' err)" = 1 ]
  run 0 "$sundog" run -n 2 --split replicated -- true '--in=f.{rank}'
  says err 'f.2 exists'
  run 0 "$sundog" run -n 3 --split replicated -- true 'f.{rank}' 'out.{rank}' f.2
  silent err
  SUNDOG_RANK=0 SUNDOG_SIZE=2 run 0 "$sundog" exec --split replicated -- \
    true 'f.{rank}'
  says err 'f.2 exists'
  SUNDOG_RANK=1 SUNDOG_SIZE=2 run 0 "$sundog" exec --split replicated -- \
    true 'f.{rank}'
  silent err
}
a_run_that_a_launcher_starts_several_times_is_said() {
  local outer=(env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK)
  run 0 "${outer[@]}=0" "$sundog" run -n 2 --split replicated -- true
  says err 'this command is started 2 times (OMPI_COMM_WORLD_SIZE)'
  says err 'sundog exec'
  run 0 "${outer[@]}=1" "$sundog" run -n 2 --split replicated -- true
  silent err
  run 0 env OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 "$sundog" run -n 2 \
    --split replicated -- true
  silent err
  # salloc's interactive step is one task of an allocation for several.
  local step=(env SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_NTASKS=2)
  run 0 "${step[@]}" SLURM_STEP_NUM_TASKS=1 "$sundog" run -n 2 \
    --split replicated -- true
  silent err
  run 0 "${step[@]}" SLURM_STEP_NUM_TASKS=2 "$sundog" run -n 2 \
    --split replicated -- true
  says err 'this command is started 2 times (SLURM_STEP_NUM_TASKS)'
}
programs_that_are_forgotten() {
  local verb
  for verb in run exec inspect 'run -n 2 --split H --view whole' 'run --' \
    'verify -n 2 --calls 3'; do
    # shellcheck disable=SC2086 # words
    wrong $verb
    says err 'no program'
  done
}

cases typos_of_verbs_have_a_nearest typos_of_options_have_a_nearest \
  numbers_of_ranks_that_cannot_be empty_words options_behind_the_program \
  words_where_there_are_none folders_and_files_that_are_not_there \
  programs_that_are_forgotten pieces_for_more_ranks_are_said \
  a_run_that_a_launcher_starts_several_times_is_said
