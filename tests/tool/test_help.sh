#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help, options and codes that the command prints.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"
readme=$(realpath "$(dirname "$0")/../../doc/running.md")
bench=$(realpath "$(dirname "$0")/../../tools/bench")

the_version_is_printed() {
  run 0 "$sundog" --version
  grep -qE '^sundog [0-9]+\.[0-9]+\.[0-9]+$' out
}
help_names_every_command() {
  run 0 "$sundog" --help
  for command in run exec options explain split join diff doctor inspect verify; do
    says out "  $command "
    run 0 "$sundog" "$command" --help
    says out "Usage: sundog $command"
    run 0 "$sundog" --help
  done
  run 64 "$sundog"
  silent out
  run 64 "$sundog" jion
  says err 'nearest: join'
}
options_show_value_and_origin() {
  SUNDOG_TIMEOUT=7 run 0 "$sundog" options
  says out 'SUNDOG_TIMEOUT = 7'
  says out 'SUNDOG_PARTS = agree'
  grep -A 1 '^SUNDOG_TIMEOUT' out | grep -q 'origin: environment; default: 600'
  grep -A 1 '^SUNDOG_VIEW' out | grep -q 'origin: default; default: (none); takes: shard whole'
  grep -A 2 '^SUNDOG_HOST_ENGINE' out | grep -q 'host device'
  SUNDOG_SECRET=not_to_be_printed run 0 "$sundog" options
  says out 'SUNDOG_SECRET = (set, not shown)'
  lacks out not_to_be_printed
}
faulty_options_are_named() {
  SUNDOG_TIMOUT=7 run 78 "$sundog" options
  says err 'nearest: SUNDOG_TIMEOUT'
}
codes_are_explained() {
  run 0 "$sundog" explain SDG-717
  says out 'SDG-717: no tensor matched'
  cp out first
  for code in 717 sdg-717; do
    run 0 "$sundog" explain "$code"
    cmp out first
  done
  run 0 "$sundog" explain 2
  says out 'SDG-002: internal error'
}
every_code_is_listed_and_explained() {
  run 0 "$sundog" explain
  cp out list
  [ "$(wc -l <list)" -gt 30 ]
  while read -r code _; do
    run 0 "$sundog" explain "$code"
    [ "$(wc -l <out)" -ge 3 ]
  done <list
}
every_exit_status_is_documented() {
  run 0 "$sundog" --help
  sed -n '/^Exit statuses:/,$p' out | tail -n +2 >statuses
  [ "$(wc -l <statuses)" -ge 10 ]
  while read -r number text; do
    grep -qF "| $number | $text |" "$readme" || {
      echo "# doc/running.md does not say: | $number | $text |"
      return 1
    }
  done <statuses
}
a_failed_print_is_a_failure() {
  [ -c /dev/full ] || return 0
  local words status
  for words in --help --version options explain 'explain 717'; do
    status=0
    # shellcheck disable=SC2086 # words
    "$sundog" $words >/dev/full 2>err || status=$?
    [ "$status" -eq 74 ] || echo "# status $status of '$words'"
    [ "$status" -eq 74 ]
  done
}
unknown_codes_are_refused() {
  for code in 0 999 SDG- x 7x --; do
    run 64 "$sundog" explain -- "$code"
    says err 'is not a code'
  done
}
the_bench_says_what_it_measures() {
  run 1 "$bench" # a script of its own
  lacks err 'bench_[a-z]*('
  grep -oP "(?<=')\w+(?=': \(bench_)" "$bench" >subjects
  [ "$(wc -l <subjects)" -ge 5 ]
  while read -r subject; do
    grep -qE "^  $subject( |$)" err
  done <subjects
}

cases the_version_is_printed help_names_every_command \
  options_show_value_and_origin faulty_options_are_named codes_are_explained \
  every_code_is_listed_and_explained every_exit_status_is_documented \
  a_failed_print_is_a_failure unknown_codes_are_refused \
  the_bench_says_what_it_measures
