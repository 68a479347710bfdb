#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog exec` starts one rank; a launcher stays in control.
# shellcheck disable=SC2016,SC2154,SC2317,SC1091 # text for other shells
. "$(dirname "$0")/harness.sh"

split=(--split H --view shard)

# A program that prints its words and counts as a rank that matched.
shows=(sh -c "echo \"\$@\"; $matched" sh)

# waits_for FILE [TEXT]: waits until the file exists and has the text.
waits_for() {
  for _ in $(seq 500); do
    if [ -e "$1" ] && { [ -z "${2-}" ] || grep -q "$2" "$1"; }; then
      return 0
    fi
    sleep 0.02
  done
  echo "# no '${2-}' in $1"
  return 1
}
# is STATE PID: whether the process has this state (ps).
is() {
  for _ in $(seq 500); do
    case $(sed 's/.*) //' "/proc/$2/stat") in "$1"*) return 0 ;; esac
    sleep 0.02
  done
  echo "# process $2 is not in state $1"
  return 1
}

the_program_is_a_child_in_the_same_group_and_session() {
  "$sundog" exec --alone -- sh -c \
    'echo $PPID; cut -d" " -f5,6,7 /proc/$$/stat /proc/$PPID/stat' >out &
  local pid=$!
  wait "$pid"
  [ "$(sed -n 1p out)" = "$pid" ]
  [ -n "$(sed -n 2p out)" ]
  [ "$(sed -n 2p out)" = "$(sed -n 3p out)" ]
}
descriptors_and_environment_are_inherited() {
  PMI_FD=7 run 0 "$sundog" exec --alone -- \
    sh -c 'echo "$PMI_FD" >&7; read -r line <&8; echo "$line"' 7>seven 8<<<word
  [ "$(cat seven)" = 7 ]
  [ "$(cat out)" = word ]
}
descriptors_that_the_program_closes_are_closed() {
  "$sundog" exec --alone -- sh -c 'exec >&- 7>&-; waits=0
    until [ -e read ] || [ $waits = 500 ]; do
      sleep 0.02; waits=$((waits + 1)); done; [ -e read ] && : >passed' 7>&1 |
    { cat; : >read; }
  [ -e passed ]
}
signals_reach_the_program_once() {
  local status=0 name pid
  cat >program <<'END'
for name in HUP INT QUIT USR1 USR2 ALRM TERM; do
  trap "echo $name >>got" $name
done
trap 'echo END >>got; exit 3' RTMIN
: >ready
while [ -e ready ]; do sleep 0.05; done # until the test removes its folder
END
  env --default-signal=HUP,INT,QUIT "$sundog" exec --alone -- bash program &
  pid=$!
  waits_for ready
  for name in HUP INT QUIT USR1 USR2 ALRM TERM; do
    kill -$name $pid
    waits_for got $name
  done
  kill -RTMIN $pid
  wait $pid || status=$?
  [ $status = 3 ]
  [ "$(tr '\n' ' ' <got)" = 'HUP INT QUIT USR1 USR2 ALRM TERM END ' ]
}
signals_from_the_program_to_its_group_are_not_sent_again() {
  cat >program <<'END'
trap 'echo USR1 >>got' USR1
kill -USR1 0
sleep 0.3
END
  run 0 setsid --wait "$sundog" exec --alone -- bash program
  [ "$(cat got)" = USR1 ]
}
a_timer_of_the_caller_is_the_programs() {
  local status=0
  python3 -c 'import os, signal, sys
signal.alarm(1)
os.execv(sys.argv[1], sys.argv[1:])' "$sundog" exec --alone -- \
    bash -c "trap 'exit 9' ALRM; while :; do sleep 0.05; done" || status=$?
  [ $status = 9 ]
}
it_stops_and_goes_on_with_the_program() {
  local status=0 exec program
  cat >program <<'END'
echo $$ >pid
until [ -e end ]; do sleep 0.05; done
exit 5
END
  set -m # a group of its own
  "$sundog" exec --alone -- bash program &
  exec=$!
  set +m
  waits_for pid .
  program=$(cat pid)
  kill -TSTP -- -$exec
  is T "$program"
  is T "$exec"
  kill -CONT -- -$exec
  is S "$exec"
  # A signal to the program alone concerns only the program.
  kill -STOP "$program"
  is T "$program"
  is S "$exec"
  kill -CONT "$program"
  is S "$program"
  # A signal to the command alone is passed on.
  kill -TSTP "$exec"
  is T "$program"
  is T "$exec"
  kill -CONT "$exec"
  is S "$program"
  : >end
  wait "$exec" || status=$?
  [ $status = 5 ]
}
the_program_dies_with_the_command() {
  "$sundog" exec --alone -- bash -c 'echo $$ >pid; while :; do sleep 1; done' &
  local exec=$!
  disown $exec
  waits_for pid .
  kill -KILL $exec
  for _ in $(seq 200); do
    kill -0 "$(cat pid)" 2>/dev/null || break
    sleep 0.02
  done
  gone "$(cat pid)"
  for _ in $(seq 200); do
    [ -n "$(ls tmp)" ] || break # the folder of the command
    sleep 0.02
  done
}
# A launcher kills all ranks when one of them fails, at any time.
a_command_that_is_killed_while_it_makes_its_folder_leaves_none() {
  local status=0
  cat >killed.c <<'END'
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
char *mkdtemp(char *template) {
  char *(*real)(char *) = (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp");
  char *made = real(template);
  kill(atoi(getenv("COMMAND")), SIGKILL);
  return made;
}
END
  "${CC:-cc}" -D_GNU_SOURCE -shared -fPIC killed.c -o killed.so
  sh -c 'COMMAND=$$ LD_PRELOAD=./killed.so exec "$0" exec --alone -- \
    touch started' "$sundog" || status=$?
  [ $status = 137 ]
  for _ in $(seq 200); do
    [ -n "$(ls tmp)" ] || break
    sleep 0.02
  done
  [ ! -e started ]
}
it_ends_by_the_signal_that_ended_the_program() {
  cat >check.py <<'END'
import subprocess, sys
for number in (6, 9, 11, 15):
    ended = subprocess.run(sys.argv[1:] + ["exec", "--alone", "--", "sh", "-c",
                                           f"kill -{number} $$"])
    assert ended.returncode == -number, ended
END
  run 0 python3 check.py "$sundog"
}
processes_that_the_program_leaves_behind_are_ended() {
  run 3 "$sundog" exec --alone -- sh -c \
    'sleep 100 & echo $! >pid; setsid sleep 100 & exit 3'
  gone "$(cat pid)"
}
a_program_that_ignores_its_errors_fails() {
  local failed='echo text >"$SUNDOG_REPORT/failed-$$"'
  run 125 "$sundog" exec --alone "${split[@]}" -- sh -c "$failed; $matched"
  says err 'SDG-721 [rank 0]'
  says err '1 process could not join, and sundog refused calls of theirs: text'
  RANK=1 WORLD_SIZE=2 run 125 "$sundog" exec "${split[@]}" -- sh -c \
    'printf "{\"rank\":1,\"matched\":3,\"refused\":2,\"calls\":[]}" \
       >"$SUNDOG_REPORT/rank-1.json"'
  says err 'SDG-721 [rank 1]'
  says err '2 calls'
  # The command adds no message to a failure.
  run 7 "$sundog" exec --alone "${split[@]}" -- sh -c "$failed; exit 7"
  silent err
}
a_split_of_nothing_fails() {
  RANK=1 WORLD_SIZE=2 run 125 "$sundog" exec "${split[@]}" -- true
  says err 'SDG-717 [rank 1]'
  run 0 "$sundog" exec --alone -- true
  silent err
}
within_another_command_it_is_part_of_that() {
  run 0 "$sundog" run -n 2 "${split[@]}" -- "$sundog" exec -- sh -c "$matched"
  run 0 "$sundog" exec --alone "${split[@]}" -- \
    "$sundog" exec -- sh -c "$matched"
  cat >program <<END
"$sundog" exec -- sh -c 'echo no >"\$SUNDOG_REPORT/failed-1"'
$matched
END
  run 125 "$sundog" exec --alone "${split[@]}" -- sh program
  says err 'refused calls of theirs: no'
  mkdir kept
  for _ in first second; do
    SUNDOG_REPORT=$PWD/kept run 0 "$sundog" exec --alone "${split[@]}" -- \
      sh -c "$matched"
  done
  cmp kept/rank-0.json kept/rank-0-2.json
}
the_launchers_numbers_replace_placeholders() {
  SUNDOG_RANK=1 SUNDOG_SIZE=3 run 0 "$sundog" exec "${split[@]}" -- \
    "${shows[@]}" '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 1/3/1 ]
  RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 run 0 "$sundog" exec "${split[@]}" -- \
    "${shows[@]}" '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 2/4/0 ]
  OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 \
    run 0 "$sundog" exec "${split[@]}" -- "${shows[@]}" \
    '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 3/8/1 ]
  FLUX_TASK_RANK=3 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_ID=99 \
    FLUX_JOB_NNODES=1 run 0 "$sundog" exec "${split[@]}" -- \
    "${shows[@]}" '{rank}/{size}/{local_rank}'
  [ "$(cat out)" = 3/4/1 ]
  PALS_RANKID=3 PALS_LOCAL_RANKID=1 PMI_SIZE=4 PALS_LOCAL_SIZE=4 run 0 \
    "$sundog" exec "${split[@]}" -- "${shows[@]}" '{rank}/{size}/{local_rank}'
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
  # A shell in an allocation has a size but is not a rank.
  SLURM_NTASKS=4 SLURM_JOB_ID=7 run 125 "$sundog" exec "${split[@]}" -- \
    touch started
  FLUX_JOB_SIZE=4 run 125 "$sundog" exec "${split[@]}" -- touch started
  run 125 "$sundog" exec -- touch started
  [ ! -e started ]
}
one_rank_may_be_alone() {
  run 0 "$sundog" exec --alone "${split[@]}" -- \
    sh -c 'echo {rank}/{size} $SUNDOG_RANK/$SUNDOG_SIZE;'"$matched"
  [ "$(cat out)" = '0/1 0/1' ]
  RANK=0 WORLD_SIZE=1 run 0 "$sundog" exec --alone -- true
  RANK=1 WORLD_SIZE=2 run 0 "$sundog" exec --alone "${split[@]}" -- \
    "${shows[@]}" '{rank}/{size}'
  [ "$(cat out)" = 0/1 ]
}
variables_left_in_a_shell_make_no_single_rank() {
  export SUNDOG_RANK=0 SUNDOG_SIZE=1
  SLURM_PROCID=2 SLURM_NTASKS=4 run 125 "$sundog" exec "${split[@]}" -- \
    touch started
  says err 'SDG-202'
  says err 'SUNDOG_RANK/SUNDOG_SIZE says that this is the only rank'
  says err 'but the environment has SLURM_PROCID=2 of SLURM_NTASKS=4'
  unset SUNDOG_RANK SUNDOG_SIZE
  RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 run 125 \
    "$sundog" exec "${split[@]}" -- touch started
  [ ! -e started ]
  # --alone says that this is meant.
  SUNDOG_RANK=0 SUNDOG_SIZE=1 SLURM_PROCID=2 SLURM_NTASKS=4 run 0 "$sundog" \
    exec --alone "${split[@]}" -- sh -c 'echo $SUNDOG_LAUNCH;'"$matched"
  [ "$(cat out)" = 'alone, SLURM_PROCID=2 of SLURM_NTASKS=4' ]
  # A command inside inherits this, unless a launcher's variables contradict it.
  run 0 "$sundog" exec --alone "${split[@]}" -- sh -c "
    '$sundog' exec -- sh -c 'echo again; $matched'
    SLURM_PROCID=1 SLURM_NTASKS=2 '$sundog' exec -- touch started || :
    $matched"
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
    'echo $LD_PRELOAD; echo $LD_LIBRARY_PATH; echo $SUNDOG_SPLIT $SUNDOG_VIEW;'"$matched"
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
variables_of_pmix_without_its_server_start_nothing() {
  PMIX_NAMESPACE=ended PMIX_RANK=0 run 125 "$sundog" exec "${split[@]}" -- \
    touch started
  says err SDG-212
  # A rank whose size and machine variables tell does not ask.
  PMIX_NAMESPACE=ended PMIX_RANK=1 SLURM_PROCID=1 SLURM_NTASKS=2 \
    SLURM_STEP_NUM_NODES=1 run 0 "$sundog" exec "${split[@]}" -- \
    "${shows[@]}" '{rank}/{size}'
  [ "$(cat out)" = 1/2 ]
  PMIX_RANK=0 run 125 "$sundog" exec "${split[@]}" -- touch started
  says err SDG-202
  layout "$work/other"
  rm -f other/interpose/sundog-pmix
  PMIX_NAMESPACE=ended PMIX_RANK=0 run 125 other/tools/sundog exec \
    "${split[@]}" -- touch started
  says err 'sundog-pmix is not beside libsundog.so'
  [ ! -e started ]
}
a_folder_with_spaces_is_reached_through_a_link() {
  layout "$work/a b"
  mkdir -m 700 runtime
  for _ in first second; do
    XDG_RUNTIME_DIR=$PWD/runtime run 0 "$work/a b/tools/sundog" exec --alone \
      "${split[@]}" -- sh -c 'readlink "$LD_PRELOAD";'"$matched"
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

cases the_program_is_a_child_in_the_same_group_and_session \
  descriptors_and_environment_are_inherited \
  descriptors_that_the_program_closes_are_closed signals_reach_the_program_once \
  signals_from_the_program_to_its_group_are_not_sent_again \
  a_timer_of_the_caller_is_the_programs \
  it_stops_and_goes_on_with_the_program the_program_dies_with_the_command \
  a_command_that_is_killed_while_it_makes_its_folder_leaves_none \
  it_ends_by_the_signal_that_ended_the_program \
  processes_that_the_program_leaves_behind_are_ended \
  a_program_that_ignores_its_errors_fails a_split_of_nothing_fails \
  within_another_command_it_is_part_of_that \
  the_launchers_numbers_replace_placeholders \
  without_a_launcher_nothing_is_started one_rank_may_be_alone \
  variables_left_in_a_shell_make_no_single_rank the_status_is_the_programs \
  the_environment_is_set arguments_arrive_as_they_are \
  wrong_configurations_start_nothing \
  variables_of_pmix_without_its_server_start_nothing \
  a_folder_with_spaces_is_reached_through_a_link \
  a_command_without_its_library_says_so
