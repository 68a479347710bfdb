#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog run --progress` shows on a terminal what the ranks do.
# shellcheck disable=SC2154,SC2317,SC1091,SC2016 # harness.sh; other shells' text
. "$(dirname "$0")/../harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
pace=$(realpath "$4") no_terminal=$(realpath "$5")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1 TERM=xterm
unset CI

split=(--device host --split H --view shard)
# shows STATUS WORDS... -- COMMAND...: runs the command on a terminal. A line
# that is drawn is shorter than the terminal.
shows() {
  local expected=$1
  shift
  run "$expected" "$here/terminal" "$@"
  awk 'length($0) - length($1) - length($2) - 2 >= $2 { bad = 1 } END { exit bad }' shown
}
# progress STATUS WORDS... -- RUN'S WORDS...
progress() {
  local expected=$1 words=()
  shift
  while [ "$1" != -- ]; do
    words+=("$1")
    shift
  done
  shift
  shows "$expected" "${words[@]}" -- "$sundog" run --progress "${split[@]}" "$@"
}
# clean: nothing of the line is left, and the cursor is at the start of a row.
clean() {
  ! grep -E 'calls/s|no call for|have joined|tagged call yet' screen
  [ -z "$(tail -n 1 screen)" ]
}
ended() { # WORDS: no process of the program with these words is left
  local at words left=()
  for at in /proc/[0-9]*/cmdline; do
    words=$(tr '\0' ' ' 2>/dev/null <"$at") || continue
    [ "$words" != "$pace $* " ] || left+=("$(basename "${at%/cmdline}")")
  done
  gone "${left[@]}"
}
drawn() { # TEXT: a line that was drawn has the text
  grep -qE -- "$1" shown && return 0
  echo "# '$1' was not drawn:"
  sed 's/^/#   /' shown
  return 1
}
undrawn() { # TEXT
  ! grep -E -- "$1" shown
}

numbers_agree_with_the_table() {
  progress 0 -- -v -n 3 -- "$pace" 1200 4000
  clean
  python3 - <<'PY'
import re
screen, shown = open("screen").read(), open("shown").read()
steps, seconds = map(float, re.search(r"(\d+) steps in ([\d.]+) s", screen).groups())
calls, halo = map(float, re.search(r"^total +(\d+) +([\d.]+)", screen, re.M).groups())
rows = [row for row in shown.splitlines() if "calls/s" in row]
seen = [(float(a), float(b)) for row in rows
        for a, b in re.findall(r"3 ranks x ([\d.]+).* ([\d.]+) MB/s", row)]
assert len(seen) >= 2, shown
for index, whole in enumerate((calls / seconds, halo / 1e0 / seconds)):
    mean = sum(pair[index] for pair in seen) / len(seen)
    assert 0.8 * whole < mean < 1.25 * whole, (index, whole, mean, shown)
PY
}
a_slow_rank_is_named() {
  progress 0 -- -n 3 -- "$pace" 400 2000 slow=2,0,8000
  tail -n 2 shown | grep -q 'slowest rank 2,'
  ! grep -q 'slowest rank[^ ]* [^2]' shown
}
a_rank_that_comes_late_is_named() {
  progress 0 -- -n 3 -- "$pace" 10 0 late=1,0,2500000
  drawn ' sundog: 2 of 3 ranks have joined, rank 1 has not, 0:02$'
  clean
}
ranks_without_a_call_are_told() {
  progress 125 -- -n 2 -- sleep 1.5
  drawn ' sundog: no rank has made a tagged call yet, 0:01$'
  clean
}
a_rank_that_does_something_else_is_placed() {
  progress 0 columns=160 -- -n 3 -- "$pace" 400 2000 busy=1,200,6000000
  drawn ' sundog: no call for [34] s, rank 1 is busy since call [0-9]+ cudnnConvolutionForward, ranks 0, 2 wait at call [0-9]+ cudnnConvolutionForward, 0:'
  # Call 1 asks for the workspace.
  ! grep -oE 'busy since call [0-9]+' shown | grep -v ' 201$'
  ! grep -oE 'wait at call [0-9]+' shown | grep -v ' 202$'
}
a_stopped_rank_is_told() {
  progress 0 columns=160 -- -n 2 -- sh -c '[ $SUNDOG_RANK = 0 ] ||
    { (sleep 1.5; kill -STOP $$; sleep 5; kill -CONT $$) & }
    exec "$0" 800 2000' "$pace"
  drawn 'no call for [34] s, rank 1 is stopped by a signal'
}
processes_of_a_rank_follow_each_other() {
  progress 0 -- -n 2 -- sh -c '"$0" 500 5000; sleep 1.5; "$0" 500 5000' "$pace"
  # No rate reaches back to the time between them.
  python3 - <<'PY'
import re
screen, shown = open("screen").read(), open("shown").read()
seconds = [float(s) for s in re.findall(r"500 steps in ([\d.]+) s", screen)]
parts = shown.partition("2 of 2 ranks have ended")
for part, s in zip((parts[0], parts[2]), seconds, strict=True):
    rates = [float(rate) for rate in re.findall(r"x ([\d.]+) calls/s", part)]
    assert rates and all(0.7 < rate * s / 500 < 1.4 for rate in rates), shown
PY
}
the_line_fits_a_narrow_terminal() {
  progress 0 columns=34 resize=4.5,24 -- -n 2 -- "$pace" 1400 5000
  drawn '^[0-9.]* 34 sundog: 2 ranks x [0-9]+ calls/s$'
  drawn '^[0-9.]* 24 sundog: 2 ranks'
  undrawn '^[0-9.]* 24 .*calls'
  clean
}
output_does_not_mix_with_the_line() {
  progress 0 -- -n 2 -- "$pace" 800 5000 said=0,7,0 said=1,11,0
  for ((step = 0; step < 500; step += 7)); do
    grep -qx "step $step of rank 0 has ended" screen
  done
  for ((step = 0; step < 500; step += 11)); do
    grep -qx "step $step of rank 1 has ended" screen
  done
  drawn 'calls/s'
  clean
}
an_unfinished_line_is_not_disturbed() {
  progress 125 -- -n 1 -- sh -c 'printf "name? "; sleep 2.5; echo; sleep 1.5'
  grep -qx 'name?' screen
  drawn ' 0:03$'
  awk '$1 < 2.5 { exit 1 }' shown
  clean
}
output_is_not_cut_anywhere() {
  progress 125 -- -n 1 -- sh -c 'printf "\033[3"; sleep 2.5
    printf "1mred\033[0m\n\303"; sleep 1.5; printf "\244\n"; sleep 1.5'
  grep -q "$(printf '\033\\[31mred\033\\[0m')" raw
  grep -qaF "$(printf '\303\244')" raw
  drawn ' 0:0[45]$'
  clean
}
# The line gives way to text, and comes back narrower at once. One line may be
# on its way at that time.
the_line_follows_the_terminal_at_once() {
  run 0 "$here/terminal" columns=70 resize=3.4,24 -- "$sundog" run --progress \
    "${split[@]}" -n 2 -- "$pace" 700 5000 said=0,8,0
  drawn ' 70 sundog: 2 ranks x [0-9]'
  awk '$2 == 24 && length($0) - length($1) - 4 >= 24 { wide++ }
    END { exit wide > 1 }' shown
  clean
}
streams_stay_what_they_are() {
  progress 125 in=/dev/null -- -n 1 -- sh -c 'test -t 1 && test -t 2 && ! test -t 0 &&
    stty size <&2 && echo yes'
  grep -qx '24 80' screen
  grep -qx yes screen
  progress 125 out=kept -- -n 1 -- sh -c 'test -t 2 && ! test -t 1 && echo out'
  [ "$(cat kept)" = out ]
  # Another terminal is not that of the line.
  shows 125 second=kept -- sh -c '"$0" run --progress -n 1 --device host --split H \
    --view shard -- sh -c "echo out; echo err >&2" >"$second"' "$sundog"
  grep -q out kept
  grep -qx err screen
  # The keyboard is rank 0's.
  progress 125 key=1.2,48690a -- -n 1 -- sh -c 'read -r word; echo "<$word>"'
  grep -q '<Hi>' screen
}
ranks_are_told_of_a_new_size() {
  progress 125 resize=1.3,50 -- -n 1 -- bash -c 'trap "stty size <&2" WINCH
    for ((i = 0; i < 25; i++)); do sleep 0.1; done'
  grep -qx '24 50' screen
}
without_a_terminal_nothing_differs() {
  local as
  for as in none plain; do
    words=()
    [ $as = none ] || words=(--progress)
    run 7 "$sundog" run "${words[@]}" -n 2 "${split[@]}" -- sh -c \
      'echo "out $SUNDOG_LIVE$SUNDOG_WAITS"; echo err >&2; sleep 1.5
       [ $SUNDOG_RANK = 0 ] && exit 7; sleep 0.5; exit 0'
    mv out out.$as
    mv err err.$as
  done
  cmp out.none out.plain
  cmp err.none err.plain
  grep -qx 'out ' out.plain
  # A terminal that cannot show it, and machines that nobody looks at.
  for as in TERM=dumb TERM= CI=true; do
    shows 125 -- env $as "$sundog" run --progress "${split[@]}" -- sh -c \
      'sleep 1.5; echo "out $SUNDOG_LIVE"'
    [ ! -s shown ]
    grep -qx 'out' screen
  done
  CI=false progress 125 -- sleep 1.5
  [ -s shown ]
}
the_terminal_is_clean_after_a_killed_rank() {
  progress 137 -- -n 2 -- "$pace" 2000 5000 kill=1,700,0
  drawn 'calls/s'
  grep -q 'SDG-716 .*killed by signal 9' screen
  clean
}
the_terminal_is_clean_after_an_interrupt() {
  progress 130 key=4.5,03 -- -n 2 -- "$pace" 100000 5000
  drawn 'calls/s'
  clean
  ended 100000 5000
}
the_terminal_is_clean_after_a_killed_run() {
  shows 137 -- sh -c '"$0" run --progress --device host --split H --view shard \
    -n 2 -- "$1" 100000 5001 & run=$!; sleep 2.5; kill -9 $run; wait $run
    status=$?; sleep 0.5; echo over; exit $status' "$sundog" "$pace"
  grep -q '0:0[12]\(Killed\)\?$' screen # a shell may write into this row already
  grep -qx over screen
  ended 100000 5001
}
nothing_is_drawn_in_the_background() {
  shows 0 -- bash -c 'set -m
    "$0" run --progress --device host --split H --view shard -n 2 -- \
      "$1" 1100 5000 said=0,100,0 & sleep 2.5; echo waited; fg >/dev/null' \
    "$sundog" "$pace"
  grep -qx 'step 100 of rank 0 has ended' screen
  awk '$1 < 2.4 { exit 1 }' shown
  drawn 'calls/s'
  clean
}
origin_is() { # VARIABLE ORIGIN: in the record of rank 0
  grep -q "\"$1\",\"value\":\"[^\"]*\",\"origin\":\"$2\"" kept/rank-0*
}

labels_reports_and_tables_go_with_it() {
  progress 0 -- -n 2 --label -v --report run.html -- "$pace" 800 5000 said=1,100,0
  grep -qx '1: step 100 of rank 1 has ended' screen
  grep -q '^total ' screen
  grep -q '<html' run.html
  drawn 'calls/s'
  clean
  # Nobody has set these by hand.
  progress 0 -- -n 2 --record kept -- "$pace" 10 0
  origin_is SUNDOG_LIVE command
  origin_is SUNDOG_WAITS command
  progress 0 -- -n 2 -v --record kept -- "$pace" 10 0
  origin_is SUNDOG_WAITS argument
}
without_a_free_terminal_the_run_goes_on() {
  cp "$no_terminal" no_terminal.so # a name without blanks
  shows 0 columns=160 -- env LD_PRELOAD=./no_terminal.so "$sundog" run --progress \
    "${split[@]}" -n 2 -- "$pace" 10 0
  grep -q 'there is no pseudo-terminal for it: No space left' screen
  grep -q '^10 steps in' screen
  [ ! -s shown ]
}
a_rank_that_cannot_be_seen_says_so() {
  progress 0 columns=160 -- -n 1 -- sh -c 'SUNDOG_LIVE=/nowhere exec "$0" 3 0' "$pace"
  grep -q 'SDG-004 .*/nowhere: No such file' screen
}
exec_refuses_it() {
  run 64 "$sundog" exec --progress -- true
}

cases numbers_agree_with_the_table a_slow_rank_is_named \
  a_rank_that_comes_late_is_named ranks_without_a_call_are_told \
  a_rank_that_does_something_else_is_placed a_stopped_rank_is_told \
  processes_of_a_rank_follow_each_other the_line_fits_a_narrow_terminal \
  output_does_not_mix_with_the_line an_unfinished_line_is_not_disturbed \
  output_is_not_cut_anywhere the_line_follows_the_terminal_at_once \
  streams_stay_what_they_are ranks_are_told_of_a_new_size without_a_terminal_nothing_differs \
  the_terminal_is_clean_after_a_killed_rank \
  the_terminal_is_clean_after_an_interrupt \
  the_terminal_is_clean_after_a_killed_run \
  nothing_is_drawn_in_the_background labels_reports_and_tables_go_with_it \
  without_a_free_terminal_the_run_goes_on \
  a_rank_that_cannot_be_seen_says_so exec_refuses_it
