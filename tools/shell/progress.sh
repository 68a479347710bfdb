# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Long work that says how far it is: one line that changes on a terminal, plain
# lines in a log. Sourced by tools/setup.sh and tools/demo.

# clock SECONDS: as minutes and seconds.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# about SECONDS: in words.
about() {
  if [ "$1" -lt 90 ]; then
    echo "some $((($1 + 9) / 10 * 10)) seconds"
  else
    echo "some $((($1 + 59) / 60)) minutes"
  fi
}

# In the background: says how far it is, until this shell has ended. A log gets
# a line each minute.
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

# progress TEXT STATUS COMMAND...: runs the command, and returns its status. What
# it writes comes when it has ended. What STATUS prints, a command, is how far it
# is, such as ", 3 of 8 steps".
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
