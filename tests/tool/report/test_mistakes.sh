#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Mistakes with records: a report says what its record lacks, does not overwrite
# what it is made of, and a comparison says that its runs do not compare.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
solver=("$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy'
  --out 'out.{rank}.npy' --order 4 --dx 2400 --dt 15 --friction 0)
steps=(--steps 4)

# recorded FOLDER RANKS WORDS...
recorded() {
  local folder=$1 ranks=$2
  shift 2
  run 0 "$sundog" run -n "$ranks" --device host --split H --view shard \
    --record "$folder" "$@" -- "${solver[@]}" "${steps[@]}"
}
scene() { # RANKS
  "$clients/scene" "$bathymetry" 91 120 .
  for file in level depth; do run 0 "$sundog" split -n "$1" $file.npy; done
}
# warned TEXT WORDS...: the JSON of the folder `kept` has the warning, and the
# command prints it.
warned() {
  run 0 "$sundog" report kept --json -o run.json
  says err "$1"
  python3 - "$1" <<'PY'
import json, sys
warnings = json.load(open("run.json"))["facts"]["warnings"]
assert any(sys.argv[1] in text for text in warnings), warnings
PY
}

a_record_that_is_whole_has_no_faults() {
  scene 3
  recorded kept 3
  run 0 "$sundog" report kept
  silent err
  run 0 "$sundog" compare kept kept
  silent err
}
what_a_record_lacks_is_said() {
  local file
  scene 3
  recorded whole 3
  for file in rank-1 times-1; do # cut at the end of a line
    cp -r whole kept
    head -n $(($(wc -l <whole/$file) / 2)) whole/$file >kept/$file
    if [ $file = rank-1 ]; then
      warned 'of the calls of rank 1 are missing from its file'
    else
      : >kept/$file
      warned 'rank 1 left no times of its streams'
      rm kept/$file
      warned 'rank 1 left no times of its streams'
    fi
    rm -r kept
  done
  cp -r whole kept
  rm kept/*-2*
  warned 'the record has 2 of 3 ranks'
  run 0 "$sundog" compare whole kept
  says err 'kept: the record has 2 of 3 ranks'
}
files_of_two_runs_are_told_apart() {
  scene 3
  recorded one 3
  recorded two 3
  cp -r one kept
  cp two/rank-1 two/times-1 two/totals-1.json kept
  run 74 "$sundog" report kept
  says err 'records of several runs'
  rm -r kept
  # Two runs at the same time.
  cp -r one kept
  sed -i '1s|/sundog-run-[A-Za-z0-9]*/|/sundog-run-other/|' kept/rank-1
  warned 'ranks 0 and 1 are of different runs'
  rm -r kept
  cp -r one kept
  cp two/totals-2.json kept
  warned 'the totals of rank 2 are those of another process'
  rm -r kept
  scene 2
  recorded two 2
  cp -r one kept
  cp two/rank-1 kept
  run 74 "$sundog" report kept
  sed -i 's/"version":"[^"]*"/"version":"0.0.1"/' one/rank-?
  rm -r kept
  cp -r one kept
  warned 'recorded by sundog 0.0.1'
}
a_rank_of_several_processes_is_said() {
  scene 2
  steps=(--steps 2)
  # shellcheck disable=SC2016 # words of a shell
  run 0 "$sundog" run -n 2 --device host --split H --view shard --record kept \
    -- sh -c '"$@" && "$@"' sh "${solver[@]}" "${steps[@]}"
  warned 'rank 0 had 2 processes that made tagged calls'
}
a_run_that_has_not_ended_is_said() {
  scene 2
  recorded kept 2
  rm kept/totals-0.json
  warned 'rank 0 left no totals, because it is still running or did not end by itself'
}
the_record_is_not_overwritten() {
  local file
  scene 2
  recorded kept 2
  ln -s kept/rank-1 link
  for file in kept/rank-0 kept/times-1 kept/totals-0.json kept/lock link; do
    cp -r kept before
    run 73 "$sundog" report kept -o $file
    says err SDG-731
    run 73 "$sundog" report kept --json -o $file
    run 73 "$sundog" report kept --trace $file
    run 73 "$sundog" report kept -o kept/../$file
    diff -r kept before
    rm -r before
  done
  run 73 "$sundog" report kept --trace same -o ./same
  says err 'SDG-731'
  # A run does not write its page over its record, either.
  run 125 "$sundog" run -n 2 --device host --split H --view shard \
    --record kept --report kept/rank-0 -- touch started
  [ ! -e started ]
}
# held FOLDER: starts a run that records into the folder until `end` is there.
# Sets `first`, its process.
# The program also ends when its folder does, with a case that fails.
held() {
  rm -f begun end
  # shellcheck disable=SC2016 # words of a shell
  "$sundog" run -n 2 --device host --split replicated --record "$1" -- sh -c \
    'touch begun; while [ -e begun ] && ! [ -e end ]; do sleep 0.05; done' 2>first.err &
  first=$!
  until [ -e begun ]; do sleep 0.05; done
}
two_runs_do_not_record_into_one_folder() {
  scene 2
  recorded kept 2
  held kept
  find kept | sort >before
  steps=(--steps 2)
  for words in 'run -n 2' 'exec --alone'; do
    # shellcheck disable=SC2086 # words
    run 125 "$sundog" $words --device host --split replicated --record kept -- \
      touch started
    says err SDG-739
    says err "process $first on $(uname -n)"
    [ ! -e started ]
  done
  run 125 "$sundog" run --device host --record kept --report page.html -- \
    touch started
  [ ! -e started ] && [ ! -e page.html ]
  find kept | sort | diff before -
  recorded other 2 # another folder is free
  touch end
  wait "$first"
  recorded kept 2 # and so is this one, at once
  recorded kept 2
  run 0 "$sundog" report kept
  silent err
}
a_run_that_was_killed_holds_no_folder() {
  scene 2
  held kept
  kill -9 "$first"
  wait "$first" 2>/dev/null || true
  # Its ranks have some seconds to end.
  for _ in $(seq 100); do
    "$sundog" run --device host --record kept -- true 2>err && break
    sleep 0.1
  done
  recorded kept 2
  touch end
}
ranks_of_a_job_share_a_folder() {
  local rank ranks=() one=(env SUNDOG_LAUNCH=one SUNDOG_SIZE=2)
  local exec=("$sundog" exec --device host --split replicated --record kept --)
  for rank in 0 1; do
    # shellcheck disable=SC2016 # words of a shell
    "${one[@]}" SUNDOG_RANK=$rank "${exec[@]}" sh -c \
      'touch begun-$0; while [ -e begun-$0 ] && ! [ -e end-$0 ]; do sleep 0.05; done' $rank &
    ranks+=($!)
    until [ -e begun-$rank ]; do sleep 0.05; done
  done
  run 125 env SUNDOG_LAUNCH=two SUNDOG_SIZE=2 SUNDOG_RANK=0 "${exec[@]}" true
  says err SDG-739
  touch end-0
  wait "${ranks[0]}"
  # The job has not ended: a rank of its own may still come, another job's not.
  run 0 "${one[@]}" SUNDOG_RANK=0 "${exec[@]}" true
  run 125 "$sundog" run --device host --record kept -- true
  says err SDG-739
  touch end-1
  wait "${ranks[1]}"
  run 0 env SUNDOG_LAUNCH=two SUNDOG_SIZE=2 SUNDOG_RANK=0 "${exec[@]}" true
  # A command within a rank is part of its run.
  run 0 "$sundog" run -n 2 --device host --split replicated --record kept -- \
    "$sundog" exec -- true
  run 0 "$sundog" exec --alone --device host --record kept -- \
    "$sundog" exec --alone -- true
}
runs_that_do_not_compare_are_said() {
  scene 3
  recorded a 3
  recorded b 3
  scene 2
  steps=(--steps 5)
  recorded c 2
  run 0 "$sundog" compare a b
  silent err
  grep -Eq '^ranks +3 +3 *$' out
  run 0 "$sundog" compare a c
  grep -Eq '^ranks +3 +2 *' out
  says err 'a and c are of 3 and 2 ranks'
  says err "a and c are of different command lines"
  says err "--steps 5"
  sed -i 's|"command":\["[^"]*"|"command":["/bin/other"|' b/rank-?
  run 0 "$sundog" compare a b
  says err "a and b are of different programs: "
  sed -i 's|"host":"[^"]*"|"host":"elsewhere"|' a/rank-?
  run 0 "$sundog" compare a b
  says err "a and b ran on different machines"
}
# changed FROM TO CODE: a copy of a report, after Python code that changes `run`.
changed() {
  python3 - "$@" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
exec(sys.argv[3])
json.dump(run, open(sys.argv[2], "w"))
PY
}
a_damaged_report_is_compared() {
  scene 2
  recorded kept 2
  run 0 "$sundog" report kept --json -o a.json
  changed a.json b.json 'run["facts"]["command"][1:] = [None] * 200 + [7, []]
run["facts"]["faults"] = [None, {}]'
  run 0 "$sundog" compare b.json a.json
  says err 'of different command lines'
  says err ' ? ? ? ?'
  lacks err null
  changed a.json c.json 'run["facts"]["command"] = {"a": 1}'
  run 0 "$sundog" compare a.json c.json
}
times_of_two_clocks_do_not_compare() {
  scene 2
  recorded kept 2
  run 0 "$sundog" report kept --json -o a.json
  changed a.json b.json '
for kind in run["kinds"]:
    kind["device_ns"] *= 2'
  run 0 "$sundog" compare a.json b.json
  grep -Eq '^cudnnConvolutionForward .*[.][0-9]{2} +[0-9.]+ +[+]100 %$' out
  # One strategy of two has no time of the device.
  changed a.json b.json '
kind = next(k for k in run["kinds"] if k["entry"] == "cudnnConvolutionForward")
run["kinds"].append(dict(kind, strategy="literal", device_ns=0))'
  run 0 "$sundog" compare a.json b.json
  grep -Eq '^cudnnConvolutionForward .*[.][0-9]{2} +[0-9.]+ host *$' out
  run 0 "$sundog" compare b.json b.json
  grep -Eq '^cudnnConvolutionForward .*[.][0-9]{2} host +[0-9.]+ host *$' out
}

cases a_record_that_is_whole_has_no_faults what_a_record_lacks_is_said \
  files_of_two_runs_are_told_apart a_rank_of_several_processes_is_said \
  a_run_that_has_not_ended_is_said the_record_is_not_overwritten \
  two_runs_do_not_record_into_one_folder a_run_that_was_killed_holds_no_folder \
  ranks_of_a_job_share_a_folder \
  runs_that_do_not_compare_are_said a_damaged_report_is_compared \
  times_of_two_clocks_do_not_compare
