#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who waits for whom in a run: reports of records whose times are known, because
# they are written here.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
version=$("$command_built" --version | sed 's/.* //')
export version
cat >"$top/write.py" <<'PY'
"""Writes records. Times are in microseconds from the run's begin."""
import json, os
BEGIN = 10**12
class Rank:
    def __init__(self, rank, size):
        os.makedirs("kept", exist_ok=True)
        self.rank, self.calls, self.times = rank, [], []
        self.facts = {"run": {
            "rank": rank, "size": size, "pid": 100 + rank, "process": 1,
            "monotonic_ns": BEGIN, "realtime_ns": 10**18, "host": "here",
            "version": os.environ["version"], "folder": "/", "command": ["solver"],
            "mesh": [{"axis": "y", "ranks": size}], "options": []}}
        self.plan = {"plan": 1, "entry": "f", "section": "field", "line": 1,
                     "family": "conv", "strategy": "extend", "why": "so",
                     "operands": []}
    def call(self, number, at, took, agreed=0, thread=0, **more):
        self.calls.append(dict({"call": number, "thread": thread, "entry": "f",
            "at": BEGIN + 1000 * at, "took": 1000 * took, "agreed": 1000 * agreed,
            "received": 0, "summed": 0, "copied": 0, "by": 1}, **more))
    # Phases: 0 a call on the device, 1 the real function, 5 the stream waits.
    def time(self, number, phase, at, took, thread=0):
        self.times.append([thread, number, phase, BEGIN + 1000 * at, 1000 * took])
    def write(self, full=False, totals=None, in_full=0):
        lines = [self.facts, self.plan] + self.calls + [{"full": True}] * full
        with open(f"kept/rank-{self.rank}", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        with open(f"kept/times-{self.rank}", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in self.times)
        row = {"entry": "f", "rule": "field", "strategy": "extend",
               "count": len(self.calls), "halo_bytes": 0, "sum_bytes": 0,
               "wait_ns": 0, "axes": {}, "copies": {}}
        with open(f"kept/totals-{self.rank}.json", "w") as file:
            json.dump({"rank": self.rank, "pid": 100 + self.rank, "matched": 1,
                       "refused": 0, "in_full": in_full, "libraries": [],
                       "calls": [dict(row, **(totals or {}))]}, file)
PY
# written: makes a record by the Python code on stdin, and run.json of it.
written() {
  { cat "$top/write.py" && cat; } | python3 -
  run 0 "$sundog" report kept --json -o run.json
}

waits_of_host_and_stream_count_once() {
  written <<'PY'
# From 100 to 900 the stream waits, and from 500 to 1000 the host does in the
# next call.
a, b = Rank(0, 2), Rank(1, 2)
a.call(1, 0, 20)
a.time(1, 0, 100, 800)
a.time(1, 5, 100, 800)
a.call(2, 500, 500, agreed=500)
b.call(1, 0, 20)
b.call(2, 1000, 0)
b.time(1, 0, 900, 100)
for rank in a, b: rank.write()
PY
  python3 - <<'PY'
import json
run = json.load(open("run.json"))
first, second = run["ranks"]
assert run["facts"]["seconds"] == 0.001, run["facts"]
assert first["wait_ns"] == 800000 and first["agreed_ns"] == 500000, first
assert abs(first["wait_share"] - 0.9) < 1e-9, first
assert second["wait_share"] == 0, second
assert run["slowest"]["rank"] == 1 and run["slowest"]["share"] <= 1, run["slowest"]
PY
}
the_critical_path_follows_ranks_that_come_late() {
  written <<'PY'
# Rank 1 comes 2 ms late to each call, whose work on the device takes 0.1 ms:
# the host of rank 0 waits for it. On the device it is rank 0 that comes last,
# by 5 us.
a, b = Rank(0, 2), Rank(1, 2)
for n in range(5):
    a.call(n + 1, 2000 * n, 2000, agreed=1990)
    b.call(n + 1, 2000 * n + 1980, 20)
    for rank, wait in (a, 0), (b, 5):
        rank.time(n + 1, 0, 2000 * n + 2000 - wait, 100)
        rank.time(n + 1, 5, 2000 * n + 2000 - wait, wait)
for rank in a, b: rank.write()
PY
  python3 - <<'PY'
import json
path = json.load(open("run.json"))["critical"]
ranks, begin = path["rank_ns"], path["segments"][0][1]
assert sum(ranks) == 10100000 - begin, path
assert ranks[1] >= 0.97 * sum(ranks), path
PY
}
a_host_that_waits_beside_a_busy_stream_delays_nothing() {
  written <<'PY'
# The stream of rank 0 works for 5 ms; its host waits for rank 1 meanwhile.
a, b = Rank(0, 2), Rank(1, 2)
a.call(1, 0, 10)
a.time(1, 0, 10, 5000)
a.time(1, 1, 10, 5000)
a.call(2, 20, 3000, agreed=2980)
b.call(1, 0, 10)
b.time(1, 0, 10, 100)
b.call(2, 3000, 10)
for rank, at in (a, 5010), (b, 3010):
    rank.time(2, 0, at, 100)
for rank in a, b: rank.write()
PY
  python3 - <<'PY'
import json
path = json.load(open("run.json"))["critical"]
assert path["rank_ns"] == [5110000, 0], path
assert path["segments"] == [[0, 0, 5110000]], path
PY
}
the_critical_path_ends_where_the_run_ends() {
  written <<'PY'
# The last call ends on the host long before the stream has done the first.
a, b = Rank(0, 2), Rank(1, 2)
a.call(1, 0, 10)
a.time(1, 0, 10, 5000)
b.call(1, 0, 20)
for rank in a, b:
    rank.call(2, 30, 10 if rank is a else 20)
    rank.write()
PY
  python3 - <<'PY'
import json
path = json.load(open("run.json"))["critical"]
assert path["segments"] == [[0, 0, 5010000]], path
PY
}
a_path_of_many_turns_is_drawn_from_end_to_end() {
  written <<'PY'
# The ranks come late in turns: 30000 times.
ranks = Rank(0, 2), Rank(1, 2)
for n in range(30000):
    late = n % 2
    ranks[late].call(n + 1, 20 * n + 15, 5)
    ranks[1 - late].call(n + 1, 20 * n, 20, agreed=15)
for rank in ranks: rank.write()
PY
  python3 - <<'PY'
import json
path = json.load(open("run.json"))["critical"]
segments = path["segments"]
assert not path["complete"] and 1000 < len(segments) <= 20000, len(segments)
assert segments[0][1] <= 15000 and segments[-1][2] == 600000000, segments[-1]
for (_, _, end), (_, begin, _) in zip(segments, segments[1:]):
    assert begin == end
assert sum(path["rank_ns"]) == segments[-1][2] - segments[0][1]
assert all(250000000 < ns < 350000000 for ns in path["rank_ns"]), path["rank_ns"]
PY
}
long_waits_are_in_seconds() {
  local size
  for size in 2 3; do
    written <<PY
ranks = [Rank(r, $size) for r in range($size)]
for rank in ranks:
    late = rank is ranks[1]
    rank.call(1, 4100000 * late, 100000 if late else 4200000,
              agreed=0 if late else 4100000)
    rank.time(1, 0, 4100000, 3430)
    rank.time(1, 1, 4100000, 55 if late else 3430)
    rank.write()
PY
    python3 - $size <<'PY'
import json, sys
slowest = json.load(open("run.json"))["slowest"]
assert slowest["rank"] == 1
assert slowest["why"] == {
    "2": "the other rank waits 4.10 s, this one 0 ns; it computes 55.0 us, "
         "the other one 3.43 ms",
    "3": "the other ranks wait 4.10 s on average, this one 0 ns; it computes "
         "55.0 us, the others 3.43 ms"}[sys.argv[1]], slowest
PY
  done
}
a_rank_without_times_is_not_called_slow() {
  written <<'PY'
a, b = Rank(0, 2), Rank(1, 2)
for rank in a, b:
    rank.call(1, 0, 1000)
a.time(1, 0, 0, 900)
a.time(1, 5, 0, 900)
for rank in a, b: rank.write()
PY
  python3 - <<'PY'
import json
run = json.load(open("run.json"))
assert run["slowest"] is None, run["slowest"]
assert run["facts"]["warnings"] == ["rank 1 left no times of its streams"]
PY
  run 0 "$sundog" compare kept kept
  grep -Eq '^waiting +90 % +90 % *$' out
}
waits_of_kinds_are_those_of_ranks() {
  written <<'PY'
# The ranks counted more calls, and waits, than they recorded.
a, b = Rank(0, 2), Rank(1, 2)
for rank in a, b:
    rank.call(1, 0, 100, agreed=30)
    rank.time(1, 0, 100, 50)
    rank.time(1, 5, 100, 7)
    rank.write(full=True, totals={"count": 9, "wait_ns": 99000})
PY
  python3 - <<'PY'
import json
run = json.load(open("run.json"))
kind, = run["kinds"]
assert kind["all_calls"] == 18
assert kind["wait_ns"] == 2 * 37000 == sum(
    r["wait_ns"] + r["agreed_ns"] for r in run["ranks"]), kind
assert len(run["facts"]["warnings"]) == 2, run["facts"]["warnings"]
PY
}
a_call_that_failed_is_not_missing() {
  written <<'PY'
a, b = Rank(0, 2), Rank(1, 2)
for rank in a, b: # the totals have both calls under the plan's section
    rank.call(1, 0, 100)
    rank.call(2, 100, 100, failed="SDG-500 why")
    rank.write()
PY
  python3 - <<'PY'
import json
run = json.load(open("run.json"))
assert run["facts"]["faults"] == [], run["facts"]
assert run["facts"]["warnings"] == [
    "a call of rank 0 failed: f", "a call of rank 1 failed: f"], run["facts"]
PY
}
a_rank_alone_is_not_warned_of_calls_in_full() {
  local size
  for size in 1 2; do
    written <<PY
ranks = [Rank(r, $size) for r in range($size)]
for rank in ranks:
    rank.call(1, 0, 100)
    rank.write(in_full=1)
PY
    python3 - $size <<'PY'
import json, sys
warnings = json.load(open("run.json"))["facts"]["warnings"]
assert len(warnings) == (sys.argv[1] == "2"), warnings
PY
  done
}
events_of_a_track_lie_in_each_other_or_apart() {
  written <<'PY'
a = Rank(0, 1)
# Two threads, and two streams of one thread, that overlap.
for thread in 0, 1:
    for n in range(4):
        at = 100 * n + 30 * thread
        a.call(n + 1, at, 80, agreed=20, thread=thread)
        a.time(n + 1, 0, at + 10, 150, thread)
        a.time(n + 1, 5, at + 10, 40, thread)
        a.time(n + 1, 1, at + 50, 110, thread)
a.write()
PY
  run 0 "$sundog" report kept --trace trace.json
  python3 - <<'PY'
import json
named, tracks = {}, {}
for event in json.load(open("trace.json"))["traceEvents"]:
    if event["ph"] == "M" and event["name"] == "thread_name":
        named[event["tid"]] = event["args"]["name"]
    if event["ph"] == "X":
        begin, took = round(1000 * event["ts"]), round(1000 * event["dur"])
        assert begin >= 0 and took >= 0, event
        tracks.setdefault(event["tid"], []).append((begin, begin + took, event))
assert sum(map(len, tracks.values())) == 2 * 4 * 5
assert set(tracks) == set(named) and len(set(named.values())) == len(named), named
assert {"host", "host of thread 1", "program's stream",
        "program's stream of thread 1"} <= set(named.values()), named
for events in tracks.values():
    around = []
    for begin, end, event in sorted(events, key=lambda e: (e[0], -e[1])):
        while around and around[-1][1] <= begin:
            around.pop()
        assert not around or end <= around[-1][1], (around[-1], event)
        if event["cat"] in ("compute", "wait"): # in their own call
            assert around[-1][2]["args"] == event["args"], (around[-1], event)
        around.append((begin, end, event))
PY
}

cases waits_of_host_and_stream_count_once \
  the_critical_path_follows_ranks_that_come_late \
  a_host_that_waits_beside_a_busy_stream_delays_nothing \
  the_critical_path_ends_where_the_run_ends \
  a_path_of_many_turns_is_drawn_from_end_to_end long_waits_are_in_seconds \
  a_rank_without_times_is_not_called_slow waits_of_kinds_are_those_of_ranks \
  a_call_that_failed_is_not_missing a_rank_alone_is_not_warned_of_calls_in_full \
  events_of_a_track_lie_in_each_other_or_apart
