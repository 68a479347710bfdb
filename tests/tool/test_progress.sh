#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/demo and tools/setup.sh print the progress of long work.
# shellcheck disable=SC2154,SC2317,SC1091,SC2016 # harness.sh; other shells' text
. "$(dirname "$0")/harness.sh"
shell=$(realpath "$(dirname "$0")/../../tools/shell/progress.sh")

# program WORK: makes a program that does the work in two seconds.
program() {
  printf '. "%s"\nstep() { printf ", 3 of 8"; }\nwork() { sleep 2; %s; }\n' \
    "$shell" "$1"
  printf 'progress "some work" step work\n'
}
a_log_gets_plain_lines() {
  program 'echo said' >work.sh
  run 0 bash -e work.sh
  [ "$(sed 's/[0-9]:[0-9]*/TIME/' out)" = 'some work ...
said
some work: done in TIME' ]
  ! grep -q $'\r' out
  silent err
}
a_terminal_gets_a_line_that_changes() {
  program 'echo said' >work.sh
  run 0 script -qefc 'bash -e work.sh' tty </dev/null
  tr '\r' '\n' <tty | grep -q '^some work: 0:01, 3 of 8 *$'
  tr '\r' '\n' <tty | grep -q '^said$'
  tr '\r' '\n' <tty | grep -q '^some work: done in 0:0'
}
work_that_fails_has_its_status() {
  program 'echo why >\&2; return 7' | sed 's/\\&/\&/' >work.sh
  run 7 bash -e work.sh
  says out why
  lacks out 'done in'
}
times_are_in_words() {
  run 0 bash -c '. "$0"; clock 605; echo; about 41; about 200' "$shell"
  [ "$(cat out)" = '10:05
some 50 seconds
some 4 minutes' ]
}

cases a_log_gets_plain_lines a_terminal_gets_a_line_that_changes \
  work_that_fails_has_its_status times_are_in_words
