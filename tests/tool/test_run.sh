#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog run`: what ranks get, how a run ends, what it leaves.
# shellcheck disable=SC2016,SC2154,SC2317,SC1091 # text for other shells; harness.sh
. "$(dirname "$0")/harness.sh"

split=(--split H --view shard)

ranks_know_their_numbers() {
  run 0 "$sundog" run -n 3 "${split[@]}" -- sh -c \
    "$matched; echo \$SUNDOG_RANK \$SUNDOG_SIZE \$SUNDOG_LOCAL_RANK"
  [ "$(sort out)" = $'0 3 0\n1 3 1\n2 3 2' ]
  silent err
}
placeholders_in_words_are_replaced() {
  printf '#!/bin/sh\n%s\necho "$*"\n' "$matched" >'prog-1 x'
  cp 'prog-1 x' 'prog-0 x'
  chmod +x prog*
  run 0 "$sundog" run -n 2 "${split[@]}" -- './prog-{rank} x' \
    'a{rank}b{size}c{local_rank}{rank}' '{ranks}' '{' '}'
  [ "$(sort out)" = $'a0b2c00 {ranks} { }\na1b2c11 {ranks} { }' ]
}
arguments_arrive_as_they_are() {
  run 0 "$sundog" run -- printf '[%s]' 'a b' '' '*' '$HOME' '--' -n 7 '"'
  [ "$(cat out)" = '[a b][][*][$HOME][--][-n][7]["]' ]
}
the_program_needs_no_dashes() {
  run 0 "$sundog" run -n 1 printf %s -v
  [ "$(cat out)" = -v ]
}
the_status_is_that_of_the_rank_that_failed() {
  run 7 "$sundog" run -n 3 "${split[@]}" -- \
    sh -c '[ {rank} = 1 ] && exit 7; exec sleep 60'
  says err 'SDG-716'
  says err 'rank 1 exited with status 7; 2 more ranks ended because of it'
}
a_killed_rank_gives_128_plus_its_signal() {
  run 137 "$sundog" run -n 3 "${split[@]}" -- \
    sh -c '[ {rank} = 2 ] && kill -9 $$; exec sleep 60'
  says err 'rank 2 was killed by signal 9'
}
# Words for ranks: rank 1 runs the given script, the others wait until it has
# ended.
after_rank_1() {
  echo "if [ {rank} = 1 ]; then echo \$\$ >pid-1.part; mv pid-1.part pid-1; $1
    fi
    until [ -s pid-1 ] && ! kill -0 \"\$(cat pid-1)\" 2>/dev/null; do
      sleep 0.02
    done
    $2"
}
a_crash_comes_before_the_errors_it_causes() {
  # Ranks that fail because another one died fail a little later.
  run 139 "$sundog" run -n 3 "${split[@]}" -- \
    sh -c "$(after_rank_1 'kill -SEGV $$' 'exit 3')"
  says err 'rank 1 was killed by signal 11'
}
ranks_may_end_themselves_before_they_are_ended() {
  run 4 "$sundog" run -n 2 "${split[@]}" -- \
    sh -c "$(after_rank_1 'exit 4' 'echo saw it; exit 5')"
  says out 'saw it'
}
a_rank_that_ignores_sigterm_is_killed() {
  run 3 "$sundog" run -n 2 "${split[@]}" -- \
    sh -c '[ {rank} = 1 ] && exit 3; trap "" TERM; echo $$ >pid; sleep 60'
  # shellcheck disable=SC2046
  gone $(cat pid)
}
a_stopped_rank_is_killed() {
  run 3 "$sundog" run -n 2 "${split[@]}" -- \
    sh -c 'echo $$ >pid-{rank}; [ {rank} = 0 ] && kill -STOP $$; sleep 0.2; exit 3'
  gone "$(cat pid-0)"
}
a_rank_that_ends_early_and_well_ends_nobody() {
  run 0 "$sundog" run -n 2 "${split[@]}" -- \
    sh -c "$matched; [ {rank} = 1 ] && exit 0; sleep 1.3; echo done"
  says out 'done'
}
processes_that_ranks_leave_are_ended() {
  run 0 "$sundog" run -n 2 "${split[@]}" -- \
    sh -c "$matched; setsid sleep 60 & echo \$! >pid-{rank}"
  gone "$(cat pid-0)" "$(cat pid-1)"
}
# interrupted SIGNAL STATUS: sends the signal to sundog while ranks run.
interrupted() {
  # A background job of a shell ignores SIGINT; env restores the default.
  env --default-signal=INT,QUIT,HUP "$sundog" run -n 2 "${split[@]}" -- \
    sh -c 'echo $$ >pid-{rank}; sleep 60 & echo $! >child-{rank}; wait' \
    2>err &
  local pid=$! status=0
  until [ -s child-0 ] && [ -s child-1 ]; do sleep 0.05; done
  kill "-$1" "$pid"
  wait "$pid" || status=$?
  gone "$(cat pid-0)" "$(cat pid-1)" "$(cat child-0)" "$(cat child-1)"
  [ "$status" -eq "$2" ] || { echo "# status $status"; return 1; }
}
sigint_ends_the_run() { interrupted INT 130; }
sigterm_ends_the_run() { interrupted TERM 143; }
sighup_ends_the_run() { interrupted HUP 129; }
a_killed_command_leaves_nothing() {
  "$sundog" run -n 2 "${split[@]}" -- \
    sh -c 'echo $$ >pid-{rank}; sleep 60 & echo $! >child-{rank}; wait' 2>err &
  local pid=$!
  until [ -s child-0 ] && [ -s child-1 ]; do sleep 0.05; done
  kill -KILL "$pid"
  wait "$pid" || true
  for _ in $(seq 60); do
    kill -0 "$(cat child-0)" 2>/dev/null || [ -n "$(ls tmp)" ] || break
    sleep 0.1
  done
  sleep 0.2
  gone "$(cat pid-0)" "$(cat pid-1)" "$(cat child-0)" "$(cat child-1)"
}
a_killed_process_group_leaves_nothing() {
  setsid "$sundog" run -n 2 "${split[@]}" -- \
    sh -c 'echo $$ >pid-{rank}; setsid sleep 60 & echo $! >child-{rank}; wait' &
  local pid=$!
  until [ -s child-0 ] && [ -s child-1 ]; do sleep 0.05; done
  kill -KILL -- "-$pid"
  wait "$pid" || true
  for _ in $(seq 60); do
    [ -n "$(ls tmp)" ] || break
    sleep 0.1
  done
  gone "$(cat pid-0)" "$(cat pid-1)" "$(cat child-0)" "$(cat child-1)"
}
ranks_are_in_the_commands_process_group() {
  setsid "$sundog" run -n 2 "${split[@]}" -- \
    sh -c "$matched; ps -o pgid= -p \$\$" >out &
  local pid=$!
  wait "$pid"
  [ "$(sort -u out | tr -d ' ')" = "$pid" ]
}
a_killed_watcher_leaves_nothing() {
  "$sundog" run -n 2 "${split[@]}" -- \
    sh -c 'echo $PPID >watcher; sleep 60 & echo $! >child-{rank}; wait' 2>err &
  local pid=$! status=0
  until [ -s child-0 ] && [ -s child-1 ]; do sleep 0.05; done
  kill -KILL "$(cat watcher)"
  wait "$pid" || status=$?
  gone "$(cat child-0)" "$(cat child-1)"
  [ "$status" -eq 137 ]
}
an_ignored_signal_stays_ignored() {
  env --ignore-signal=HUP "$sundog" run -n 1 -- \
    sh -c 'echo $$ >pid; sleep 0.5; echo done' >out &
  local pid=$!
  until [ -s pid ]; do sleep 0.05; done
  kill -HUP "$pid"
  wait "$pid"
  says out 'done'
}
a_program_that_is_not_there() {
  run 127 "$sundog" run -n 2 "${split[@]}" -- ./nowhere
  says err 'SDG-715'
  says err 'nowhere: No such file'
  [ "$(grep -c SDG- err)" -eq 1 ]
}
a_program_that_cannot_be_executed() {
  echo x >file
  run 126 "$sundog" run -- ./file
  says err 'Permission denied'
}
the_library_is_appended_to_ld_preload() {
  local other=$top/build/interpose/other.so
  cp "$library_built" "$other"
  export LD_PRELOAD=$other
  run 0 "$sundog" run -- sh -c 'echo "$LD_PRELOAD"'
  [ "$(cat out)" = "$other:$top/build/interpose/libsundog.so" ]
}
the_library_is_loaded_from_a_folder_with_spaces() {
  layout "$work/a b:c"
  run 0 "$work/a b:c/tools/sundog" run -- grep -c 'a b:c/interpose/libsundog' /proc/self/maps
  silent err
  [ "$(cat out)" -ge 1 ]
}
the_host_devices_folder_comes_first() {
  export LD_LIBRARY_PATH=/elsewhere
  run 0 "$sundog" run --device host -- sh -c 'echo "$LD_LIBRARY_PATH $OMP_NUM_THREADS"'
  [ "$(cat out)" = "$top/build/src/host/lib:/elsewhere 1" ]
  export OMP_NUM_THREADS=3
  run 0 "$sundog" run --device host -- sh -c 'echo $OMP_NUM_THREADS'
  [ "$(cat out)" = 3 ]
}
nccl_orders_kernels_and_connects_ranks_at_once() {
  run 0 "$sundog" run -- sh -c 'echo "$NCCL_LAUNCH_ORDER_IMPLICIT $NCCL_RUNTIME_CONNECT"'
  [ "$(cat out)" = '1 0' ]
  export NCCL_LAUNCH_ORDER_IMPLICIT=0 NCCL_RUNTIME_CONNECT=1
  run 0 "$sundog" run -- sh -c 'echo "$NCCL_LAUNCH_ORDER_IMPLICIT $NCCL_RUNTIME_CONNECT"'
  [ "$(cat out)" = '0 1' ]
}
rank_0_has_the_standard_input() {
  echo text | run 0 "$sundog" run -n 3 "${split[@]}" -- sh -c "$matched; cat"
  [ "$(cat out)" = text ]
}
options_reach_the_ranks() {
  echo '[shard a]' >r.rules
  printf 'split = H:y\nview = shard\n' >>r.rules
  run 0 "$sundog" run -n 2 --rules r.rules --mesh y=2 --parts 3,4 \
    --strategy extend --timeout 9 --check --wrap W --window 5,0 -- sh -c "$matched; cd /;
    env | grep ^SUNDOG_ | sort >\$0/env-{rank}" "$work"
  for line in "SUNDOG_RULES=$work/r.rules" SUNDOG_MESH=y=2 SUNDOG_PARTS=3,4 \
    SUNDOG_STRATEGY=extend SUNDOG_TIMEOUT=9 SUNDOG_CHECK=yes SUNDOG_WRAP=W \
    SUNDOG_WINDOW=5,0     SUNDOG_RANK=1; do
    says env-1 "$line"
  done
}
the_mesh_gives_the_number_of_ranks() {
  run 0 "$sundog" run --split H:y,W:x --mesh y=2,x=2 --view shard -- \
    sh -c "$matched; echo \$SUNDOG_SIZE"
  [ "$(sort -u out)" = 4 ]
}
the_private_folder_is_private() {
  run 0 "$sundog" run -- sh -c 'stat -c %a:%u "$SUNDOG_REPORT"; echo $SUNDOG_RENDEZVOUS'
  says out "700:$(id -u)"
  says out "file:$TMPDIR/sundog-run-"
}
a_folder_for_runs_that_cannot_be_used_is_passed_over() {
  export XDG_RUNTIME_DIR="/nonexistent" HOME=/nonexistent
  run 0 "$sundog" run -- sh -c 'echo "$SUNDOG_REPORT"'
  says out "$TMPDIR/"
  export XDG_RUNTIME_DIR="$work/with space"
  mkdir "$XDG_RUNTIME_DIR"
  run 0 "$sundog" run -- sh -c 'echo "$SUNDOG_REPORT"'
  says out "$TMPDIR/"
}
a_second_run_is_as_the_first() {
  for _ in 1 2 3; do
    run 0 "$sundog" run -n 2 "${split[@]}" -- sh -c "$matched"
    silent err
  done
}
two_simultaneous_runs_do_not_mix() {
  "$sundog" run -n 2 "${split[@]}" -- sh -c "$matched; sleep 0.3; echo \$SUNDOG_REPORT" >a &
  local pid=$!
  run 0 "$sundog" run -n 2 "${split[@]}" -- sh -c "$matched; sleep 0.3; echo \$SUNDOG_REPORT"
  wait "$pid"
  lacks out "$(head -n 1 a)"
}
nothing_matched_is_an_error() {
  run 125 "$sundog" run -n 2 "${split[@]}" -- true
  says err 'SDG-717'
  says err 'exit functions called cuDNN'
  run 125 "$sundog" run -n 2 "${split[@]}" -- sh -c "${matched/:1/:0}"
  says err 'SDG-717'
}
a_missing_report_is_an_error() {
  run 125 "$sundog" run -n 3 "${split[@]}" -- sh -c "[ {rank} = 1 ] || $matched"
  says err 'SDG-718'
  says err 'rank 1'
  run 125 "$sundog" run -n 2 "${split[@]}" -- \
    sh -c "$matched; [ {rank} = 0 ] || echo '{' >\$SUNDOG_REPORT/rank-1.json"
  says err 'SDG-718'
}
a_failed_rank_comes_before_what_was_matched() {
  run 9 "$sundog" run -n 2 "${split[@]}" -- sh -c 'exit 9'
  lacks err SDG-717
}
a_gpu_that_is_not_there_ends_the_run_before_it_starts() {
  [ ! -e /dev/nvidiactl ] && [ ! -e /proc/driver/nvidia/version ] || return 0
  for words in '-n 1' '-n 2 --split H --view shard'; do
    run 125 "$sundog" run $words --device cuda -- touch started
    says err 'SDG-714'
    says err '--device cuda, but this machine has no NVIDIA driver'
    [ "$(wc -l <err)" = 1 ]
    [ ! -e started ]
  done
}
several_ranks_need_something_to_split() {
  run 125 "$sundog" run -n 2 -- touch started
  says err 'SDG-711'
  [ ! -e started ]
}
replicated_splits_nothing() {
  # Without a split the ranks do not join, and nothing must match.
  run 0 "$sundog" run -n 3 --split replicated -- sh -c 'echo {rank} of {size}'
  [ "$(sort out)" = "$(printf '%s of 3\n' 0 1 2)" ]
  silent err
  run 0 "$sundog" run -n 3 --split replicated --view whole -- echo each
  [ "$(cat out)" = $'each\neach\neach' ]
  run 0 "$sundog" rules --check -n 2 --split replicated
  says out 'nothing is split'
  # The mesh must give the number of ranks.
  run 0 "$sundog" run --split replicated --mesh y=3 -- echo each
  [ "$(cat out)" = $'each\neach\neach' ]
  run 125 "$sundog" run -n 2 --split replicated --mesh y=3 -- touch started
  says err 'SDG-111'
  run 125 env SUNDOG_RANK=0 SUNDOG_SIZE=2 \
    "$sundog" exec --split replicated --mesh y=3 -- touch started
  says err 'SDG-111'
  # Options that say how to split contradict it.
  for words in '--parts even' '--strategy extend' '--wrap H' '--window local' \
    '--piece-values local'; do
    # shellcheck disable=SC2086
    run 125 "$sundog" run -n 2 --split replicated $words -- touch started
    says err 'SUNDOG_SPLIT=replicated splits nothing'
  done
  run 78 "$sundog" rules --check -n 2 --split replicated --parts even
  says err 'SDG-104'
  [ ! -e started ]
  # The word must stand alone.
  run 125 "$sundog" run -n 2 --split H,replicated --view shard -- true
  says err SDG-107
}
faulty_options_stop_the_run_before_it_starts() {
  run 125 "$sundog" run -n 2 --split H -- touch started
  says err 'SDG-112'
  run 125 "$sundog" run -n 2 --split Q --view shard -- touch started
  says err "SDG-107"
  run 125 "$sundog" run -n 3 --split H:y --mesh y=2 --view shard -- touch started
  says err 'SDG-111'
  run 125 env SUNDOG_SPILT=H "$sundog" run -- touch started
  says err 'nearest: SUNDOG_SPLIT'
  printf '[shard a]\nsplti = H\n' >r
  run 125 "$sundog" run -n 2 --rules r -- touch started
  says err "r:2: 'splti' is not a known key of a section; nearest: split"
  run 64 "$sundog" run -n 0 -- touch started
  run 64 "$sundog" run -n 1x -- touch started
  run 64 "$sundog" run --bind all -- touch started
  says err "--bind takes rank or none, not 'all'"
  run 64 "$sundog" run --device gpu -- touch started
  run 64 "$sundog" run --nothing -- touch started
  run 64 "$sundog" run
  [ ! -e started ]
}
errors_can_be_ignored() {
  export SUNDOG_ON_ERROR=ignore
  run 125 "$sundog" run -n 2 --split Q --view shard -- touch started
  says err SDG-717
  [ -e started ]
}
a_rank_cannot_start_ranks() {
  run 125 "$sundog" run -- "$sundog" run -- true
  says err 'SDG-713'
}
labels_are_before_whole_lines() {
  local r
  # Lines written in pieces, long lines, empty lines, a last line without
  # newline.
  cat >prog <<'X'
#!/bin/sh
for i in 1 2 3; do
  printf 'a%s' "$SUNDOG_RANK"; sleep 0.02; printf 'b%s\n' $i
  printf 'error %s' "$SUNDOG_RANK" >&2; printf ' %s\n' $i >&2
done
head -c 300000 /dev/zero | tr '\0' x
printf '\n\nlast of %s' "$SUNDOG_RANK"
X
  chmod +x prog
  for view in shard whole; do
    run 0 "$sundog" run -n 3 --label --split H --view $view -- \
      sh -c "$matched; exec ./prog"
    for r in 0 1 2; do
      { for i in 1 2 3; do echo "$r: a${r}b$i"; done
        echo "$r: $(head -c 300000 /dev/zero | tr '\0' x)"
        echo "$r: "
        echo "$r: last of $r"; } >right
      grep "^$r: " out | cmp - right
      [ "$(grep "^$r: " err)" = "$(printf "$r: error $r %s\n" 1 2 3)" ]
    done
    [ "$(wc -l <out)" = 18 ]
    [ "$(wc -l <err)" = 9 ]
  done
  # Labels are wide enough for all ranks.
  run 0 "$sundog" run -n 11 --label "${split[@]}" -- sh -c "$matched; echo x"
  grep -qx ' 3: x' out
  grep -qx '10: x' out
  # Output in files has no labels.
  run 0 "$sundog" run -n 2 --label --ranks-output o "${split[@]}" -- \
    sh -c "$matched; echo x"
  [ "$(cat out)" = '0: x' ]
  [ "$(cat o/rank-1.out)" = x ]
}
labels_do_not_change_how_a_run_ends() {
  local begin=$SECONDS
  run 3 "$sundog" run -n 2 --label "${split[@]}" -- sh -c \
    'echo {rank}; [ {rank} = 0 ] || exit 3; sleep 60'
  says out '1: 1'
  says err 'rank 1 exited with status 3'
  [ $((SECONDS - begin)) -lt 30 ]
  # If the reader ends, the writers end, too.
  "$sundog" run -n 2 --label "${split[@]}" -- yes 2>err | head -n 2 >out
  [ "$(wc -l <out)" = 2 ]
  [ $((SECONDS - begin)) -lt 30 ]
  # Messages of sundog are printed once and name their ranks.
  local status=0
  says_as_ranks 'tell "SDG-401 $who uneven"; echo x' --label
  [ "$(cat err)" = 'sundog: all 4 ranks: SDG-401 uneven' ]
}
the_table_of_calls_is_printed() {
  cat >prog <<'X'
#!/bin/sh
cat >"$SUNDOG_REPORT/rank-$SUNDOG_RANK.json" <<Y
{"rank":$SUNDOG_RANK,"matched":12,"new":1,"calls":[
 {"entry":"cudnnConvolutionForward","rule":"field","strategy":"repair",
  "count":11,"halo_bytes":1500000,"sum_bytes":700,"wait_ns":250000000,
  "copies":{"halo":500000,"strip":250000}},
 {"entry":"cudnnPoolingForward","rule":"field","strategy":"extend","count":1}]}
Y
X
  chmod +x prog
  run 0 "$sundog" run -n 2 -v "${split[@]}" -- ./prog
  silent out
  says err '24 tagged calls'
  tr -s ' ' <err >table
  grep -qx 'RULE ENTRY STRATEGY CALLS HALO MB WAIT s' table
  grep -qx 'field cudnnConvolutionForward repair 11 3.000000 0.250' table
  grep -qx 'field cudnnPoolingForward extend 1 0.000000 0.000' table
  grep -qx 'total 12 3.000000 0.250' table
  grep -qx 'RULE ENTRY SUMS MB' table
  grep -qx 'field cudnnConvolutionForward 0.001400' table
  grep -qx 'total 0.001400' table
  # Rows and columns of zeros are left out.
  grep -qx 'RULE ENTRY halo MB strip MB' table
  grep -qx 'field cudnnConvolutionForward 1.000000 0.500000' table
  grep -qx 'total 1.000000 0.500000' table
  lacks err 'each axis'
}
the_table_of_calls_fits_80_columns() {
  cat >prog <<'X'
#!/bin/sh
cat >"$SUNDOG_REPORT/rank-$SUNDOG_RANK.json" <<Y
{"rank":$SUNDOG_RANK,"matched":12,"new":1,"calls":[
 {"entry":"cudnnNormalizationBackwardWithAVeryLongNameIndeed","count":100000,
  "rule":"a-section-with-a-name-as-long-as-they-may-be-xx","strategy":"literal",
  "halo_bytes":123456789012,"sum_bytes":123456789012,"wait_ns":250000000000,
  "axes":{"data":1234567890,"model-axis":1234567890,"y":1,"x":2},
  "copies":{"halo":123456789,"strip":123456789,"activation":123456789}}]}
Y
X
  chmod +x prog
  run 0 "$sundog" run -n 2 -v "${split[@]}" -- ./prog
  says err ' x MB'
  [ "$(awk 'length > most { most = length } END { print most }' err)" -le 80 ]
}

whole=(--split H --view whole)
every_rank_of_the_whole_view_has_the_standard_input() {
  local i
  # More than a pipe can hold; one rank ends early, one reads nothing.
  seq 40000 >in
  for i in file pipe; do
    # shellcheck disable=SC2094
    if [ $i = file ]; then exec 3<in; else exec 3< <(cat in); fi
    read -r _ <&3 # the command's input begins behind it
    run 0 "$sundog" run -n 4 "${whole[@]}" --ranks-output got -- sh -c \
      "$matched; case \$SUNDOG_RANK in 2) read x;; 3) ;; *) cat;; esac" <&3
    exec 3<&-
    seq 2 40000 | cmp - out
    seq 2 40000 | cmp - got/rank-1.out
  done
}
only_rank_0_of_the_whole_view_is_heard() {
  run 0 "$sundog" run -n 3 "${whole[@]}" -- sh -c \
    "$matched; echo out \$SUNDOG_RANK; echo err \$SUNDOG_RANK >&2"
  [ "$(cat out)" = 'out 0' ]
  [ "$(cat err)" = 'err 0' ]
}
output_of_other_ranks_is_kept_in_files() {
  run 125 "$sundog" run -n 2 "${split[@]}" --ranks-output a/b -- true
  says err 'SDG-719'
  mkdir a
  run 0 "$sundog" run -n 2 "${split[@]}" --ranks-output a/b -- sh -c \
    "$matched; echo out \$SUNDOG_RANK; echo err \$SUNDOG_RANK >&2"
  [ "$(cat out)" = 'out 0' ]
  [ "$(cat a/b/rank-1.out)" = 'out 1' ]
  [ "$(cat a/b/rank-1.err)" = 'err 1' ]
  [ ! -e a/b/rank-0.out ]
}
# says_as_ranks SCRIPT: four ranks run it; `tell` prints like the library.
says_as_ranks() {
  cat >ranks.sh <<END
tell() { printf 'sundog: %s\n' "\$1" >&\$SUNDOG_MESSAGES; }
me=\$SUNDOG_RANK who="[rank \$SUNDOG_RANK]"
$matched
$1
END
  "$sundog" run -n 4 "${split[@]}" "${@:2}" -- bash ranks.sh >out 2>err || status=$?
}
a_message_of_all_ranks_is_printed_once() {
  local status=0
  says_as_ranks 'tell "SDG-401 $who uneven"; tell "$who a line"'
  [ $status = 0 ]
  [ "$(cat err)" = 'sundog: all 4 ranks: SDG-401 uneven
sundog: all 4 ranks: a line' ]
}
a_message_of_some_ranks_names_them() {
  local status=0
  says_as_ranks 'if [ $me = 2 ]; then tell "SDG-204 $who  gone"
    else tell "SDG-204 $who gone"; fi'
  sort err >sorted
  [ "$(cat sorted)" = 'sundog: SDG-204 [rank 2]  gone
sundog: ranks 0, 1, 3: SDG-204 gone' ]
}
ranks_in_a_row_are_a_range() {
  local status=0
  says_as_ranks '[ $me = 3 ] || tell "SDG-204 $who gone"'
  [ "$(cat err)" = 'sundog: ranks 0-2: SDG-204 gone' ]
}
messages_of_a_rank_stay_in_order() {
  local status=0
  says_as_ranks 'if [ $me = 0 ]; then tell "$who a"; tell "$who b"
    else until [ -e go ]; do sleep 0.01; done
      [ $me = 1 ] && { tell "$who b"; tell "$who a"; }; fi
    [ $me = 0 ] && : >go; tell "$who c"'
  for r in 0 1; do
    grep -o "^sundog: .*$r.*[]:] [ab]$\|^sundog: all.*[ab]$" err |
      sed 's/.* //' | tr -d '\n' >order.$r
  done
  case $(cat order.0) in ab) ;; *) cat err; return 1 ;; esac
  case $(cat order.1) in ba) ;; *) cat err; return 1 ;; esac
}
messages_are_printed_before_the_run_ends() {
  local status=0
  says_as_ranks '[ $me != 0 ] || tell "$who alone"
    waits=0; until grep -q alone err || [ $waits = 200 ]; do
      sleep 0.05; waits=$((waits + 1)); done
    grep -q "rank 0. alone" err && : >seen.$me'
  [ -e seen.1 ]
}
messages_of_a_killed_rank_are_printed() {
  local status=0
  says_as_ranks '[ $me = 3 ] || sleep 20; tell "SDG-500 $who last"; kill -9 $$'
  [ $status = 137 ]
  [ "$(sed -n 1p err)" = 'sundog: SDG-500 [rank 3] last' ]
  says err SDG-716
}
output_of_the_program_is_unchanged() {
  local status=0
  says_as_ranks 'echo "sundog: SDG-401 $who mine" >&2'
  [ "$(sort err)" = "$(for r in 0 1 2 3; do
    echo "sundog: SDG-401 [rank $r] mine"; done)" ]
}
one_rank_says_it_at_once() {
  run 0 "$sundog" run -n 1 "${split[@]}" -- sh -c \
    "$matched; echo \"<\$SUNDOG_MESSAGES>\""
  [ "$(cat out)" = '<>' ]
}
the_library_is_told_where_messages_go() {
  run 0 "$sundog" run -n 2 "${whole[@]}" -- bash -c \
    "$matched; [ \$SUNDOG_RANK = 0 ] || echo seen >&\$SUNDOG_MESSAGES"
  [ "$(cat err)" = seen ]
}
each_rank_has_its_folder() {
  run 0 "$sundog" run -n 2 "${whole[@]}" --ranks-folder 'in-{rank}' -- sh -c \
    "$matched; echo \$SUNDOG_RANK >here"
  [ "$(cat in-0/here in-1/here)" = $'0\n1' ]
  run 125 "$sundog" run -n 2 "${whole[@]}" --ranks-folder 'no/{rank}' -- true
  says err 'SDG-715'
}

cases ranks_know_their_numbers placeholders_in_words_are_replaced \
  arguments_arrive_as_they_are the_program_needs_no_dashes \
  the_status_is_that_of_the_rank_that_failed \
  a_killed_rank_gives_128_plus_its_signal \
  a_crash_comes_before_the_errors_it_causes \
  ranks_may_end_themselves_before_they_are_ended \
  a_rank_that_ignores_sigterm_is_killed a_stopped_rank_is_killed \
  a_rank_that_ends_early_and_well_ends_nobody \
  processes_that_ranks_leave_are_ended sigint_ends_the_run \
  sigterm_ends_the_run sighup_ends_the_run a_killed_command_leaves_nothing \
  a_killed_process_group_leaves_nothing \
  ranks_are_in_the_commands_process_group \
  a_killed_watcher_leaves_nothing an_ignored_signal_stays_ignored \
  a_program_that_is_not_there a_program_that_cannot_be_executed \
  the_library_is_appended_to_ld_preload \
  the_library_is_loaded_from_a_folder_with_spaces \
  the_host_devices_folder_comes_first \
  nccl_orders_kernels_and_connects_ranks_at_once rank_0_has_the_standard_input \
  options_reach_the_ranks the_mesh_gives_the_number_of_ranks \
  the_private_folder_is_private \
  a_folder_for_runs_that_cannot_be_used_is_passed_over \
  a_second_run_is_as_the_first two_simultaneous_runs_do_not_mix \
  nothing_matched_is_an_error a_missing_report_is_an_error \
  a_failed_rank_comes_before_what_was_matched \
  a_gpu_that_is_not_there_ends_the_run_before_it_starts \
  several_ranks_need_something_to_split replicated_splits_nothing \
  faulty_options_stop_the_run_before_it_starts errors_can_be_ignored \
  a_rank_cannot_start_ranks the_table_of_calls_is_printed \
  the_table_of_calls_fits_80_columns \
  labels_are_before_whole_lines labels_do_not_change_how_a_run_ends \
  every_rank_of_the_whole_view_has_the_standard_input \
  only_rank_0_of_the_whole_view_is_heard \
  output_of_other_ranks_is_kept_in_files \
  a_message_of_all_ranks_is_printed_once a_message_of_some_ranks_names_them \
  ranks_in_a_row_are_a_range messages_of_a_rank_stay_in_order \
  messages_are_printed_before_the_run_ends \
  messages_of_a_killed_rank_are_printed output_of_the_program_is_unchanged \
  one_rank_says_it_at_once \
  the_library_is_told_where_messages_go each_rank_has_its_folder
