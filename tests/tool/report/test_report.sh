#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog report` tells of a recorded run what a count of its calls tells.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") cuda=$5
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 4 --steps 10 --dx 2400 --dt 15 --friction 0"

scene() { "$clients/scene" "$bathymetry" 91 120 .; }
# recorded RANKS WORDS...: records the solver on pieces into the folder kept,
# and its calls into trace-R.
recorded() {
  local ranks=$1
  shift
  run 0 "$sundog" run -n "$ranks" --device host "$@" --record kept \
    --trace 'trace-%r' -- "$clients/shallow" --in 'level.{rank}.npy' \
    --depth 'depth.{rank}.npy' --out 'out.{rank}.npy' $shallow
}
rows() { # records on three ranks
  scene
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  recorded 3 --split H --view shard
}
json() { # JSON WORDS...
  local file=$1
  shift
  run 0 "$sundog" report kept --json -o "$file" "$@"
}

numbers_of_rows_equal_a_count_of_the_calls() {
  rows
  json run.json
  "$here/count" run.json trace- 30+41+20 120
}
numbers_of_a_mesh_equal_a_count_of_the_calls() {
  scene
  for file in level depth; do
    run 0 "$sundog" split --mesh y=2,x=2 --split H:y,W:x $file.npy
  done
  recorded 4 --split H:y,W:x --mesh y=2,x=2 --view shard
  json run.json
  "$here/count" run.json trace- 46+45 60+60
}
times_are_those_of_the_run() {
  rows
  json run.json --events 0
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
names = run["timeline"]["events"]
whole = run["facts"]["seconds"] * 1e9
for rank, row in zip(run["ranks"], run["timeline"]["ranks"]):
    at, sums, calls = 0, {}, set()
    number = 0
    for event, shift, took, step in zip(row["event"], row["at"], row["took"],
                                        row["call"]):
        at, number = at + shift, number + step
        assert shift >= 0 or at == 0, "events are in order"
        assert 0 <= at and at + took <= whole + 1, (at, took, whole)
        sums[names[event]] = sums.get(names[event], 0) + took
        if names[event] == "compute":
            calls.add(number)
    for name, key in [("compute", "real_ns"), ("wait", "wait_ns"),
                      ("transfer", "transfer_ns"), ("host", "host_ns"),
                      ("agreement", "agreed_ns"), ("copy", "copy_ns")]:
        assert sums[name] == rank[key] > 0, (name, sums[name], rank[key])
    # All of the 22 convolutions, but for those that the end overtakes.
    assert 20 <= len(calls) <= 22, calls
path = run["critical"]
assert path["complete"]
assert sum(path["rank_ns"]) == sum(end - begin for _, begin, end in path["segments"])
for (_, _, end), (_, begin, _) in zip(path["segments"], path["segments"][1:]):
    assert begin == end
PY
}
# flow_make: the shallow water of examples/, by functions of a library.
flow_make() {
  examples=$(realpath "$here/../../../examples")
  gcc -O1 -fPIC -shared -o libshallow.so "$examples/libshallow.c" -lm
  gcc -O1 -isystem "$cuda/include" -Wno-deprecated-declarations -o flow \
    "$examples/shallow.c" ./libshallow.so "$host/libcudart.so.13" \
    "$host/libcudnn.so.9" -lm -Wl,-rpath,"$PWD"
  run 0 "$sundog" run -n 1 --device host -- ./flow --sample h.npy
}
calls_of_functions_have_their_times() {
  flow_make
  run 0 "$sundog" split -n 3 h.npy
  run 0 "$sundog" run -n 3 --device host --view shard \
    --rules "$examples/shallow.rules" --record kept -- \
    ./flow 'h.{rank}.npy' 'end.{rank}.npy' 20
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
whole = run["facts"]["seconds"] * 1e9
assert len(run["kinds"]) == 4, run["kinds"]
for kind in run["kinds"]:
    assert kind["all_calls"] == 60, kind
    assert 0 <= kind["wait_share"] <= 1, kind
    assert 0 < kind["host_ns"] <= 3 * whole, (kind, whole)
    # Two borders, both ways, of the rows of each tensor that is read.
    read = 0 if kind["entry"] == "fastest" else 3
    assert kind["received_bytes"] == 20 * 4 * 90 * 4 * read, kind
    assert kind["formula_bytes"] == kind["received_bytes"], kind
low = [piece["halo_low"][2] for piece in run["tensors"][0]["pieces"]]
assert low == [0, 1, 1], run["tensors"]
for rank in run["ranks"]:
    assert rank["calls"] == 80, rank
    assert rank["host_ns"] <= whole and rank["agreed_ns"] <= whole, rank
    assert 0 <= rank["wait_share"] <= 1, rank
PY
}
results_that_are_completed_at_once_are_named() {
  flow_make
  run 0 "$sundog" run -n 3 --device host --view whole \
    --rules "$examples/shallow.rules" --record kept -- ./flow h.npy end.npy 20
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
told = {a["entry"]: a for a in run["advice"] if a["about"] == "full"}
assert set(told) == {"momentum", "continuity", "walls"}, told
for entry, advice in told.items():
    kind, = [k for k in run["kinds"]
             if k["entry"] == entry and k["strategy"] == "update"]
    assert advice["fetched_bytes"] == kind["received_bytes"] > 0, advice
    assert advice["fetches"] == kind["calls"], (advice, kind)
    assert "read without a call" in advice["text"], advice
PY
}
a_trace_has_all_events() {
  rows
  json run.json --events 0
  run 0 "$sundog" report kept --trace trace.json
  silent out
  [ ! -e kept/report.html ]
  python3 - run.json trace.json <<'PY'
import json, sys
run, trace = (json.load(open(name)) for name in sys.argv[1:])
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
assert len(events) == sum(len(r["at"]) for r in run["timeline"]["ranks"])
for rank in run["ranks"]:
    mine = [e for e in events if e["pid"] == rank["rank"]]
    for cat, key in [("compute", "real_ns"), ("wait", "wait_ns")]:
        total = sum(e["dur"] for e in mine if e["cat"] == cat)
        assert abs(1000 * total - rank[key]) < 1, (total, rank[key])
names = {e["args"].get("name") for e in trace["traceEvents"] if e["ph"] == "M"}
assert {"rank 0", "rank 1", "rank 2", "host", "transfers"} <= names, names
assert any(e["name"] == "cudnnConvolutionForward" for e in events)
PY
  run 0 "$sundog" report kept --trace trace.json -o run.html
  [ -s run.html ]
}
two_runs_are_compared() {
  rows
  mv kept before
  run 0 "$sundog" report before -o before.html
  for file in level depth; do run 0 "$sundog" split --dim W -n 3 $file.npy; done
  recorded 3 --split W --view shard
  json after.json
  run 0 "$sundog" compare before kept
  cp out compared
  grep -Eq '^received bytes +119040 +90272 +-24 %$' out
  grep -Eq '^  halo +119040 +90272 +-24 %$' out
  grep -Eq '^cudnnConvolutionForward +66 +66 +119040 +90272 ' out
  run 0 "$sundog" compare before.html after.json
  cmp out compared
  run 0 "$sundog" compare before before
  grep -Eq '^received bytes +119040 +119040 *$' out
  run 64 "$sundog" compare before
  run 74 "$sundog" compare before missing
  echo '{}' >none.json
  run 74 "$sundog" compare none.json before
  says err 'none.json is no report'
}
few_events_stand_for_many() {
  rows
  json all.json --events 0
  json few.json --events 120
  python3 - all.json few.json <<'PY'
import json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:])
count = lambda run: sum(len(rank["at"]) for rank in run["timeline"]["ranks"])
assert 0 < count(b) <= 120 < count(a), (count(a), count(b))
assert a["timeline"]["grain_ns"] == 0 < b["timeline"]["grain_ns"]
assert a["kinds"] == b["kinds"] and a["ranks"] == b["ranks"]
PY
}
a_fetched_tensor_is_a_cause() {
  run 0 "$sundog" run -n 2 --device host --split H --view whole --record kept -- \
    "$clients/unet" --steps 2
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
got = run["received"]
assert got["halo"] > 0, got
assert sum(got.values()) == sum(r["received_bytes"] for r in run["ranks"])
assert sum(got.values()) == sum(k["received_bytes"] for k in run["kinds"])
assert any(k["strategy"] == "update" for k in run["kinds"]) == (got["gather"] > 0)
PY
}
sections_that_were_used_are_known() {
  {
    printf '[local other]\nmatch = N>=99\n[shard field]\n'
    printf 'match = H>=32 W>=64\nsplit = H\nview = shard\n'
  } >r.rules
  scene
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  recorded 3 --rules r.rules
  json run.json
  python3 - run.json <<'PY'
import json, sys
rules = json.load(open(sys.argv[1]))["facts"]["rules"]
assert rules["text"] == open("r.rules").read()
assert [s["line"] for s in rules["sections"]] == [1, 3]
assert rules["sections"][0]["calls"] == 0 < rules["sections"][1]["calls"]
PY
}
origins_of_options_are_known() {
  {
    printf '[mesh]\ny = 3\n[shard field]\nmatch = H>=32 W>=64\n'
    printf 'split = H:y   ; rows\nparts = 30,41,20\n'
  } >r.rules
  scene
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  # A script of the user's sets an option again, and one rank has another.
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nexport SUNDOG_TIMEOUT=77 SUNDOG_RECORD_MAX=9\n[ %s ] &&
    export SUNDOG_NCCL_CTAS=3\nexec "$@"\n' '$SUNDOG_RANK = 1' >wrap
  chmod +x wrap
  SUNDOG_COMPARE=off run 0 "$sundog" run -n 3 --device host --rules r.rules \
    --view shard --timeout 50 --record-max 9 --record kept -v -- ./wrap \
    "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'out.{rank}.npy' $shallow
  json run.json
  python3 - run.json <<'PY'
import json, sys
told = json.load(open(sys.argv[1]))["facts"]["options"]
def of(name):
    return [(o["value"], o["origin"], o["line"], o["section"], o["ranks"])
            for o in told if o["name"] == name]
plain = lambda value, origin: [(value, origin, None, None, None)]
assert of("SUNDOG_VIEW") == plain("shard", "argument"), of("SUNDOG_VIEW")
assert of("SUNDOG_WAITS") == plain("yes", "argument")
assert of("SUNDOG_RECORD_MAX") == plain("9", "argument")
assert of("SUNDOG_COMPARE") == plain("off", "environment")
assert of("SUNDOG_TIMEOUT") == plain("77", "environment"), of("SUNDOG_TIMEOUT")
assert of("SUNDOG_LAUNCH") == plain("sundog run", "command")
assert of("SUNDOG_STRATEGY") == plain("auto", "default")
assert sorted(of("SUNDOG_NCCL_CTAS")) == [
    ("3", "environment", None, None, [1]), ("4", "default", None, None, [0, 2])]
assert of("mesh") == [("y=3", "rules", 2, "mesh", None)]
assert of("split") == [("H:y", "rules", 5, "shard field", None)]
assert of("parts") == [("30,41,20", "rules", 6, "shard field", None)]
assert not of("match") and not of("SUNDOG_RANK") and not of("SUNDOG_ORIGINS")
PY
}
records_of_two_runs_do_not_mix() {
  rows
  mv kept first
  recorded 3 --split H --view shard
  cp first/rank-1 first/times-1 first/totals-1.json kept
  run 74 "$sundog" report kept -o run.html
  says err 'records of several runs'
  [ ! -e run.html ]
  cp first/* kept
  run 0 "$sundog" report kept -o run.html
  # Two machines of one name, or one that was started between.
  sed -i '1s/"monotonic_ns":/"monotonic_ns":9/' kept/rank-1
  run 74 "$sundog" report kept -o run.html
}
numbers_that_no_run_has_are_refused() {
  rows
  sed -i '0,/"received":[0-9]*/s//"received":4000000000000000/' kept/rank-1
  run 0 "$sundog" report kept -o run.html
  sed -i 's/"received":[0-9]*/"received":4000000000000000/' kept/rank-1
  run 74 "$sundog" report kept -o run.html
  says err 'the record of rank 1 in kept is damaged'
  rows
  sed -i '0,/"own":.1,/s//"own":[-1,/' kept/rank-1
  json run.json
  grep -q '1 line of rank 1 cannot be read' run.json
}
one_rank_of_a_launcher_writes_its_page() {
  scene
  one=("$clients/shallow" --in level.npy --depth depth.npy --out out.npy $shallow)
  run 0 "$sundog" exec --alone --device host --split H --view shard \
    --report run.html -- "${one[@]}"
  grep -q '"schema":1' run.html
  run 0 "$sundog" exec --alone --device host --split H --view shard \
    --record kept --report run.html -- "${one[@]}"
  [ -s kept/rank-0 ]
  # Of several ranks none knows when the others have written their records.
  SUNDOG_RANK=1 SUNDOG_SIZE=3 run 125 "$sundog" exec --device host --split H \
    --view shard --report 'my run.html' -- touch started
  says err 'SDG-710'
  says err 'sundog report FOLDER -o my run.html'
  [ ! -e started ] && [ ! -e 'my run.html' ]
  # What cannot start leaves no empty page.
  printf '[shard]\nsplit = H\nnonsense = 1\n' >bad.rules
  run 125 "$sundog" exec --alone --device host --rules bad.rules --view shard \
    --report none.html -- touch started
  [ ! -e started ] && [ ! -e none.html ]
}
ranks_of_a_launcher_record_into_one_folder() {
  local rank pids=()
  scene
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  for rank in 0 1 2; do
    SUNDOG_RANK=$rank SUNDOG_SIZE=3 SUNDOG_RENDEZVOUS=file:$PWD/meet "$sundog" \
      exec --device host --split H --view shard --record kept -- \
      "$clients/shallow" --in "level.$rank.npy" --depth "depth.$rank.npy" \
      --out "out.$rank.npy" $shallow >"out-$rank" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1 2; do wait "${pids[rank]}" || return 1; done
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
assert [r["rank"] for r in run["ranks"]] == [0, 1, 2] and run["received"]["halo"] > 0
assert not run["facts"]["warnings"], run["facts"]["warnings"]
PY
}
what_a_dead_rank_left_is_counted() {
  rows
  json whole.json
  rm kept/totals-1.json
  printf 'no JSON\n{"call":' >>kept/rank-2
  json run.json
  python3 - whole.json run.json <<'PY'
import json, sys
whole, run = (json.load(open(name)) for name in sys.argv[1:])
assert [r["received_bytes"] for r in run["ranks"]] == \
    [r["received_bytes"] for r in whole["ranks"]]
text = " ".join(run["facts"]["warnings"])
assert not whole["facts"]["warnings"], whole["facts"]["warnings"]
assert "rank 1 left no totals" in text and "2 lines of rank 2" in text, text
PY
}
a_killed_rank_leaves_whole_lines() {
  shallow=${shallow/--steps 10/--steps 1000000}
  "$clients/scene" "$bathymetry" 12 16 .
  for file in level depth; do run 0 "$sundog" split -n 2 $file.npy; done
  # shellcheck disable=SC2016
  run 137 "$sundog" run -n 2 --device host --split H --view shard --record kept \
    -- sh -c '[ $SUNDOG_RANK = 1 ] || exec "$@"
      "$@" &
      until [ "$(grep -c call kept/rank-1 2>/dev/null)" -gt 500 ]; do
        kill -0 $! || exit 1
        sleep 0.1
      done
      kill -9 $!
      wait $!' sh "$clients/shallow" --in 'level.{rank}.npy' \
    --depth 'depth.{rank}.npy' --out 'out.{rank}.npy' $shallow
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
text = " ".join(run["facts"]["warnings"])
assert "rank 1 left no totals" in text and "cannot be read" not in text, text
assert "missing from its file" not in text, text
assert run["ranks"][1]["calls"] > 500 and not run["ranks"][1]["has_totals"]
PY
}
a_run_writes_its_page() {
  scene
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  solver=("$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy'
    --out 'out.{rank}.npy' $shallow)
  many=("$sundog" run -n 3 --device host --split H --view shard)
  run 0 "${many[@]}" --report 'a page.html' -- "${solver[@]}"
  grep -q '"schema":1' 'a page.html'
  [ ! -e kept ]
  # The record of an earlier run, of more ranks, does not get into the page.
  mkdir kept
  touch kept/rank-7 kept/totals-1.json kept/notes
  echo '[0,1,0,1,999999999999]' >kept/times-0
  run 0 "${many[@]}" --record kept --report run.html -- "${solver[@]}"
  grep -q '"schema":1' run.html
  [ "$(ls kept | tr '\n' ' ')" = "lock notes rank-0 rank-1 rank-2 times-0 times-1 \
times-2 totals-0.json totals-1.json totals-2.json " ]
  json run.json
  python3 -c 'import json; assert json.load(open("run.json"))["facts"]["seconds"] < 60'
  # A run that fails has a page, too.
  run 1 "${many[@]}" --report fails.html -- sh -c '"$@"; exit 1' sh "${solver[@]}"
  grep -q '"schema":1' fails.html
  # Without a call nothing is recorded.
  run 125 "${many[@]}" --report none.html -- true
  says err 'has no record of a run'
  [ ! -e none.html ]
  run 125 "${many[@]}" --report missing/run.html -- touch started
  [ ! -e started ]
}
a_record_ends_where_it_is_said() {
  shallow=${shallow/--steps 10/--steps 3000}
  rows_of_four() {
    "$clients/scene" "$bathymetry" 12 16 .
    for file in level depth; do run 0 "$sundog" split -n 2 $file.npy; done
  }
  rows_of_four
  recorded 2 --split H --view shard --record-max 1
  for file in kept/rank-? kept/times-?; do
    [ "$(stat -c %s "$file")" -le 1000100 ]
  done
  grep -qx '{"full":true}' kept/rank-0
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
text = " ".join(run["facts"]["warnings"])
assert "rank 0 recorded its first " in text and "(--record-max)" in text, text
# Two halos of 2 rows of 16 floats, of one or two channels, in 6002 calls.
conv = [k for k in run["kinds"] if k["entry"] == "cudnnConvolutionForward"]
assert sum(k["all_calls"] for k in conv) == 2 * 6002, conv
assert all(k["formula_bytes"] is None for k in conv)
assert sum(k["received_bytes"] for k in conv) == run["received"]["halo"] > 1e6
PY
  # The run itself is known, however little may be written.
  recorded 2 --split H --view shard --record-max 0
  json run.json
  python3 - run.json <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
assert "rank 0 recorded its first 0 calls only" in run["facts"]["warnings"][0]
assert run["facts"]["command"][0].endswith("shallow") and run["facts"]["seconds"] == 0
assert run["received"]["halo"] > 1e6 and not run["received"]["redistribution"]
assert run["ranks"][0]["calls"] > 6002
PY
  run 0 "$sundog" report kept -o run.html
  run 125 "$sundog" run -n 2 --device host --split H --view shard --record kept \
    --record-max many -- true
  says err 'SDG-103'
}
what_is_no_record_is_refused() {
  mkdir nothing kept
  run 74 "$sundog" report nothing
  says err 'nothing has no record of a run'
  [ -z "$(ls nothing)" ]
  run 74 "$sundog" report missing --json
  printf '{"call":1,"thread":0,"entry":"f"}\n' >kept/rank-0
  run 74 "$sundog" report kept
  says err 'kept/rank-0 has no times'
  run 64 "$sundog" report
  run 64 "$sundog" report kept --events -1
  run 64 "$sundog" report kept other
  rm kept/rank-0
  rows
  run 74 "$sundog" report kept -o missing/run.html
  run 0 "$sundog" report kept
  says out 'kept/report.html'
  run 74 "$sundog" report kept -o /dev/full
  [ -c /dev/full ]
}

cases numbers_of_rows_equal_a_count_of_the_calls \
  numbers_of_a_mesh_equal_a_count_of_the_calls times_are_those_of_the_run \
  calls_of_functions_have_their_times \
  results_that_are_completed_at_once_are_named a_trace_has_all_events \
  two_runs_are_compared few_events_stand_for_many a_fetched_tensor_is_a_cause \
  sections_that_were_used_are_known what_a_dead_rank_left_is_counted \
  origins_of_options_are_known records_of_two_runs_do_not_mix \
  numbers_that_no_run_has_are_refused \
  ranks_of_a_launcher_record_into_one_folder one_rank_of_a_launcher_writes_its_page \
  a_killed_rank_leaves_whole_lines a_run_writes_its_page a_record_ends_where_it_is_said what_is_no_record_is_refused
