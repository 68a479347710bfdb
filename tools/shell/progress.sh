# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shows the progress of long work: one changing line on a terminal, plain lines in
# a log. Sourced by tools/setup.sh and tools/demo.

# clock SECONDS: prints a time as minutes and seconds.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# about SECONDS: prints a time in words.
about() {
  if [ "$1" -lt 90 ]; then
    echo "some $((($1 + 9) / 10 * 10)) seconds"
  else
    echo "some $((($1 + 59) / 60)) minutes"
  fi
}

# Runs in the background: shows the progress until this shell has ended. A log
# gets a line each minute.
progress_tell() { # TEXT STATUS TERMINAL
  local begin=$SECONDS line pause=60
  [ "$3" = no ] || pause=0.5
  while sleep $pause && kill -0 $$ 2>/dev/null; do
    line="$1: $(clock $((SECONDS - begin)))$($2)"
    if [ "$3" = yes ]; then
      printf '\r%-79.79s' "$line"
    else
      printf '%s\n' "$line"
    fi
  done
}

# progress TEXT STATUS COMMAND...: runs COMMAND and returns its status. Prints its
# output when it has ended. STATUS is a command that prints how far it is, such as
# ", 3 of 8 steps".
progress() {
  local text=$1 status=$2 begin=$SECONDS code=0 terminal=no teller said
  said=$(mktemp)
  shift 2
  [ ! -t 1 ] || terminal=yes
  [ $terminal = yes ] || printf '%s\n' "$text ..."
  progress_tell "$text" "$status" $terminal &
  teller=$!
  "$@" >"$said" 2>&1 || code=$?
  kill $teller 2>/dev/null || true
  wait $teller 2>/dev/null || true
  [ $terminal = no ] || printf '\r%-79s\r' ''
  cat "$said"
  rm -f "$said"
  [ $code -ne 0 ] ||
    printf '%s: done in %s\n' "$text" "$(clock $((SECONDS - begin)))"
  return $code
}
