#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual pages contain the command's tables.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/../harness.sh"
shift 2
declare -A page
for file; do page[$(basename "$file")]=$(realpath "$file"); done

# shown PAGE: writes the page as text to $work/out; man must not complain.
shown() {
  MANWIDTH=200 man --warnings -E UTF-8 -l "${page[$1]}" >raw 2>err
  silent err
  # Replaces hyphens and quotes for terminals by plain ones.
  sed -e 's/\xe2\x80\x90/-/g; s/\xe2\x88\x92/-/g' raw | tr -s ' ' >out
}
every_command_has_a_page() {
  "$sundog" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' >commands
  [ "$(wc -l <commands)" -ge 8 ]
  while read -r command; do
    shown "sundog-$command.1"
    says out "sundog-$command - "
    "$sundog" "$command" --help | grep -oE '^ .*--[a-z-]+' |
      grep -oE -- '--[a-z-]+' | grep -v usage >options
    [ -s options ]
    while read -r option; do says out "$option"; done <options
    shown sundog.1
    says out "sundog-$command(1)"
  done <commands
}
every_option_and_code_is_in_the_manual() {
  shown sundog.7
  "$sundog" options | sed -n 's/^\(SUNDOG_[A-Z_]*\) = .*/\1/p' >options
  [ "$(wc -l <options)" -ge 15 ]
  while read -r option; do says out "$option"; done <options
  "$sundog" explain | cut -c 1-7 >codes
  while read -r code; do says out "$code"; done <codes
  "$sundog" --help | sed -n '/^Exit statuses:/,$s/^ *[0-9]\+  //p' >statuses
  [ "$(wc -l <statuses)" -ge 10 ]
  while read -r text; do says out "$text"; done <statuses
  says out '[shard NAME]'
  sed -n '/^SDG_RULES_KEY(/,/",/s/.* "\([a-z]*\)", [SL].*/\1/p' \
    "$(dirname "$0")/../../../rules/file/keys.def" >keys
  [ "$(wc -l <keys)" = 16 ]
  while read -r key; do says out " $key = "; done <keys
  grep -o 'sundog_[a-z_]*(' "$(dirname "$0")/../../../src/sundog.h" |
    sort -u >functions
  [ "$(wc -l <functions)" -ge 10 ]
  while read -r function; do says out "$function"; done <functions
}
a_missing_page_is_an_error() {
  run 1 "$sundog" --manual sundog-x.1
}

if ! command -v man >/dev/null || ! command -v groff >/dev/null; then
  echo '1..0 # SKIP man and groff show the pages'
  exit 0
fi
cases every_command_has_a_page every_option_and_code_is_in_the_manual \
  a_missing_page_is_an_error
