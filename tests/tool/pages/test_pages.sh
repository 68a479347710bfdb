#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The parser accepts the examples of doc/rules.md, and all pages name only
# commands and options that sundog has.
#
# usage: test_pages.sh SUNDOG DUMMY RULES.MD PAGE...
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/../harness.sh"
page=$(realpath "$3")
cat "${@:4}" >"$top/pages.md"

# keys: prints the headings of keys, without those with free names (axes of
# [mesh], names of [extents]).
keys() { sed -n 's/^#### `\([a-z]*\)`$/\1/p' "$page"; }
# example KEY: prints the example below this heading.
example() {
  awk -v head="#### \`$1\`" '/^####* / { here = $0 == head; next }
    here && /^```/ { on = !on; next } here && on' "$page"
}

# function_keys: those of [function], and the one of [kernel].
function_keys() {
  sed -n '/^### `\[function/,/^### `\[shard/s/^#### `\([a-z]*\)`$/\1/p' "$page"
}
# A section with every key that the example does not have.
function_section() {
  local total=
  ! grep -q '^result' lines || total='out total, '
  if grep -q '^grid' lines; then echo '[kernel f]'; else echo '[function f]'; fi
  cat lines
  grep -q '^arguments' lines ||
    echo "arguments = in u, in v, in f, out w, ${total}int rows, int columns, int row0"
  grep -q '^tensor' lines || {
    echo 'tensor = u w: float [H=rows W=columns]'
    [ -z "$total" ] || echo 'tensor = total: double []'
  }
  grep -Eq '^(dims|arguments)' lines || echo 'dims = H W'
  grep -q '^reach' lines || echo 'reach = 0'
  grep -Eq 'stream|grid' lines || echo 'stream = none'
  printf '[shard x]\nsplit = H:y\nview = shard\n[mesh]\ny = 2\nx = 2\n'
}

every_example_of_a_function_is_taken() {
  local key
  [ "$(function_keys | wc -l)" = 13 ]
  while read -r key; do
    example "$key" >lines
    grep -q "^$key *=" lines
    function_section >x.rules
    run 0 "$sundog" rules --check -n 4 x.rules
  done < <(function_keys)
}
every_example_of_a_key_is_taken() {
  [ "$(keys | wc -l)" -ge 16 ]
  while read -r key; do
    ! function_keys | grep -qx "$key" || continue
    example "$key" >lines
    grep -q "^$key *=" lines
    if [ "$key" = same ]; then
      { echo '[mesh]'; cat lines; echo '[shard x]'; } >x.rules
      echo 'split = H:y' >>x.rules
    else
      { printf '[mesh]\ny = 2\nx = 2\n[shard x]\n'; cat lines; } >x.rules
      grep -q '^split' lines || echo 'split = H:y, W:x' >>x.rules
    fi
    grep -q '^view' lines || echo 'view = shard' >>x.rules
    run 0 "$sundog" rules --check -n 4 x.rules
  done < <(keys)
}
an_example_of_extents_is_taken() {
  { echo '[extents]'; example NAME
    printf '[shard x]\nview = shard\nsplit = N\nsizes = piece\n'
    echo 'match = M=hidden N>=tokens'; } >x.rules
  grep -q '^tokens *=' x.rules
  run 0 "$sundog" rules --check -n 2 x.rules
}
every_word_of_a_value_is_taken() {
  # Only alternatives that are plain words, without capitals and signs.
  local key word
  while IFS=: read -r key word; do
    ! function_keys | grep -qx "$key" || continue
    printf '[mesh]\ny = 2\n[shard x]\n%s = %s\n' "$key" "$word" >x.rules
    case $key in
    a | b | c | sizes) # of a product
      echo 'split = K:y' >>x.rules
      [ "$key" = sizes ] || echo 'sizes = piece' >>x.rules ;;
    *) echo 'split = H:y' >>x.rules ;;
    esac
    [ "$key" = view ] || echo 'view = shard' >>x.rules
    run 0 "$sundog" rules --check -n 2 x.rules
    echo "$key" >>seen
  done < <(awk '/^#### `/ { gsub("`", ""); key = $2 }
    /^- Value: `/ { gsub("`", ""); sub("- Value: ", "")
      n = split($0, words, / *\| */)
      for (i = 1; i <= n; i++)
        if (words[i] ~ /^[a-z ]+$/) print key ":" words[i] }' "$page")
  [ "$(sort -u seen | wc -l)" -ge 10 ]
}
every_command_that_pages_name_has_its_options() {
  # Words after -- belong to the program.
  local verb words option
  tr '\n' ' ' <"$top/pages.md" | grep -oE '(`|    (\$ )?)sundog +[a-z][^`]*' |
    sed -E 's/^[` $]*sundog +//; s/    .*//; s/ -- .*//; s/ +#.*//' >said
  [ "$(wc -l <said)" -ge 60 ]
  while read -r verb words; do
    [ -s "help.$verb" ] || "$sundog" "$verb" --help >"help.$verb"
    for option in $(grep -oE -- '--[a-z][a-z-]*' <<<"$words"); do
      grep -qE -- "(^|[ ,[])$option([ ,=[]|\$)" "help.$verb" || {
        echo "# 'sundog $verb' has no $option: $words"
        return 1
      }
    done
  done <said
}

cases every_example_of_a_function_is_taken every_example_of_a_key_is_taken an_example_of_extents_is_taken \
  every_word_of_a_value_is_taken every_command_that_pages_name_has_its_options
