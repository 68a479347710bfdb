#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The bytes of a report are those that NCCL was asked for, which a library in
# its place counts; and its pieces are those of the files.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") cuda=$5 counting=$(realpath "$6") chain=$(realpath "$7")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
examples=$(realpath "$here/../../../examples")
export OMP_NUM_THREADS=1 COUNTED_NCCL="$host/libnccl.so.2"
for library in "$host"/*.so*; do
  ln -s "$library" "$top/build/src/host/lib"
done
ln -sf "$counting" "$top/build/src/host/lib/libnccl.so.2"
solver="--in level.{rank}.npy --depth depth.{rank}.npy --out out.{rank}.npy \
--order 4 --steps 6 --dx 2400 --dt 15 --friction 0"

# counted RANKS GROUPS WORDS...: records a run, and compares its report with the
# count. GROUPS of ranks connect in it: those of an axis, and all.
counted() {
  local ranks=$1 groups=$2
  shift 2
  rm -rf kept counted-*
  COUNTED_FOLDER=$PWD run 0 "$sundog" run -n "$ranks" --device host \
    --record kept "$@"
  run 0 "$sundog" report kept --json -o run.json
  python3 - run.json "$groups" <<'PY'
import json, sys
run, groups = json.load(open(sys.argv[1])), int(sys.argv[2])
ranks = run["facts"]["ranks"]
assert len(run["ranks"]) == ranks
assert not run["facts"]["warnings"], run["facts"]["warnings"]
for rank in run["ranks"]:
    received, summed = map(int, open(f"counted-{rank['rank']}").read().split())
    # When ranks connect, all exchange 8 bytes, and each group adds up 4.
    received -= 8 * (ranks - 1)
    summed -= 4 * groups
    assert rank["received_bytes"] == received, (rank, received)
    assert rank["sum_bytes"] == summed, (rank, summed)
all_bytes = sum(rank["received_bytes"] for rank in run["ranks"])
assert all_bytes == sum(run["received"].values()) > 0
assert all_bytes == sum(kind["received_bytes"] for kind in run["kinds"])
PY
}
# Every tensor of the last run has the pieces of the solver's files.
pieces_are_those_of_the_files() {
  python3 - <<'PY'
import glob, json
def shape(path):
    with open(path, "rb") as file:
        head = file.read(200).decode("latin1")
    text = head[head.index("'shape': (") + 10:]
    return [int(n) for n in text[:text.index(")")].split(",") if n.strip()]
run = json.load(open("run.json"))
for tensor in run["tensors"]:
    assert tensor["whole"][2:] == shape("level.npy"), tensor["whole"]
    for piece in tensor["pieces"]:
        assert piece["extent"][2:] == shape(f"level.{piece['rank']}.npy"), piece
        size = 4
        for n in piece["extent"]:
            size *= n
        assert piece["bytes"] == size, piece
    covered = sum(p["bytes"] for p in tensor["pieces"])
    assert covered == tensor["bytes"], tensor
assert len(run["tensors"]) == 2
PY
}
example() { # NAME: builds an example
  gcc -O1 -fPIC -shared -Wl,-soname,libshallow.so -o libshallow.so \
    "$examples/libshallow.c" -lm
  gcc -O1 -isystem "$cuda/include" -Wno-deprecated-declarations -o "$1" \
    "$examples/$1.c" ./libshallow.so "$host/libcudart.so.13" \
    "$host/libcudnn.so.9" "$host/libcublas.so.13" -lm -Wl,-rpath,"$PWD"
}

a_solver_in_uneven_pieces() {
  "$clients/scene" "$bathymetry" 91 120 .
  for file in level depth; do
    run 0 "$sundog" split --parts 30,41,20 $file.npy
  done
  counted 3 1 --split H --view shard -- "$clients/shallow" $solver
  pieces_are_those_of_the_files
}
a_solver_on_a_mesh() {
  "$clients/scene" "$bathymetry" 91 120 .
  for file in level depth; do
    run 0 "$sundog" split --mesh y=2,x=2 --split H:y,W:x $file.npy
  done
  counted 4 3 --split H:y,W:x --mesh y=2,x=2 --view shard -- \
    "$clients/shallow" $solver
  pieces_are_those_of_the_files
}
a_solver_in_the_whole_view() {
  "$clients/scene" "$bathymetry" 91 120 .
  counted 3 1 --split H --view whole -- "$clients/shallow" \
    ${solver//.\{rank\}/}
}
training_in_the_whole_view() {
  counted 2 1 --split H --view whole -- "$clients/unet" --steps 2
  counted 4 3 --split H:y,W:x --mesh y=2,x=2 --view whole -- \
    "$clients/unet" --steps 2
}
values_that_the_host_reads() { # the loss of each step, the first rank's
  example cnn
  counted 3 1 --rules "$examples/cnn.rules" -- ./cnn
  python3 - <<'PY'
import json
run = json.load(open("run.json"))
# 18 floats in each of 60 steps, to two ranks.
assert run["received"]["gather"] == 60 * 18 * 4 * 2, run["received"]
PY
}
products_and_attention_of_a_transformer() {
  example transformer
  counted 3 1 --rules "$examples/transformer.rules" -- ./transformer
}
attention_in_each_way() {
  local strategy
  example attention
  for strategy in halo gather ring heads; do
    sed "s/^strategy.*/strategy = $strategy/" "$examples/attention.rules" >a.rules
    counted 2 1 --rules a.rules -- ./attention 'out.{rank}.npy' '{rank}' '{size}'
  done
}
functions_of_a_solver() {
  example shallow
  run 0 "$sundog" run -n 1 --device host -- ./shallow --sample h.npy
  run 0 "$sundog" split -n 3 h.npy
  counted 3 1 --view shard --rules "$examples/shallow.rules" -- \
    ./shallow 'h.{rank}.npy' 'end.{rank}.npy' 20
}
launches_of_a_graph_move_what_its_calls_move() {
  # shellcheck disable=SC2016 # words of a shell
  printf '#!/bin/sh
rows=$(echo 0:7 7:11 11:17 | cut -d " " -f $(($SUNDOG_RANK + 1)))
exec "$0.chain" out.$SUNDOG_RANK.npy 11 $rows 0:12 "$@"\n' >step
  chmod +x step
  cp "$chain" step.chain
  counted 3 1 --split H --view shard -- ./step c:2:3:3 c:3:5:5 b
  mv run.json called.json
  COUNTED_FOLDER=$PWD run 0 "$sundog" run -n 3 --device host --record kept \
    --split H --view shard -- ./step c:2:3:3 c:3:5:5 b g
  # Its plan tells what a launch moves.
  call=$(sed -n 's/^{"call":\([0-9]*\),.*"captured":true.*/\1/p' kept/rank-0 |
    head -n 1)
  run 0 "$sundog" explain --record kept "$call"
  says out '  captured  into a CUDA graph'
  run 0 "$sundog" explain --record kept "$((call - 5))"
  says out '  strategy  '
  lacks out captured
  run 0 "$sundog" report kept --json -o run.json
  python3 - <<'PY'
import json
called, run = (json.load(open(name)) for name in ("called.json", "run.json"))
assert not run["facts"]["warnings"], run["facts"]["warnings"]
assert run["received"] == called["received"], (run["received"], called["received"])
for a, b in zip(called["ranks"], run["ranks"]):
    for key in "received_bytes", "sum_bytes":
        assert a[key] == b[key] > 0, (a, b)
# Each step has five calls; the captured step moves nothing itself.
kinds = [k for k in run["kinds"] if k["rule"] != "-" and k["strategy"] != "query"]
replays = [k for k in kinds if k["strategy"] == "replay"]
assert sum(k["all_calls"] for k in kinds) == 3 * 5 * 12, kinds
assert sum(k["all_calls"] for k in replays) == 3 * 5 * 10, kinds
formulas = [k for k in kinds if k["formula_bytes"] is not None]
assert len(formulas) == 2
for kind in formulas:
    assert kind["formula_bytes"] == kind["received_bytes"] > 0, kind
PY
}

cases a_solver_in_uneven_pieces a_solver_on_a_mesh a_solver_in_the_whole_view \
  training_in_the_whole_view values_that_the_host_reads \
  products_and_attention_of_a_transformer attention_in_each_way \
  functions_of_a_solver launches_of_a_graph_move_what_its_calls_move
