#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whoever does what `sundog report` advises, word for word, gets what it
# predicts, and the same results.
# shellcheck disable=SC2034,SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") chain=$(realpath -s "$5")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

# ---- programs ----------------------------------------------------------------

# A case says `view`, `ranks`, `words`: further options of `sundog run`, `dim`
# and `parts`: how the shard view's input is cut.

# waves ROWS COLUMNS [STEPS]: waves on a part of a sea.
waves() {
  local name=.npy
  "$clients/scene" "$bathymetry" "$1" "$2" .
  [ $view = whole ] || name='.{rank}.npy'
  program=("$clients/shallow" --in "level$name" --depth "depth$name"
    --out 'out.{rank}.npy' --order 4 --steps "${3:-10}" --dx 2400 --dt 15
    --friction 0)
}
# layers STEPS ROWS COLUMNS LAYER...: the layers of chain.c. The rank $slow computes
# them by other functions, which take longer for few channels.
layers() {
  rows=$2 columns=$3 planes=0 images=0
  rm -f level.npy
  cat >rank.sh <<SH
rank=\$1 steps=\$2
shift 2
[ "\$rank" != "${slow-}" ] || export SUNDOG_HOST_ENGINE=onednn
read -r own_rows own_columns more < <(sed -n "\$((rank + 1))p" places)
exec "$chain" "out.\$rank.npy" "\$steps" "\$own_rows" "\$own_columns" \
  \$more "\$@"
SH
  program=(bash "$PWD/rank.sh" '{rank}' "$1" "${@:4}")
}
# volumes STEPS PLANES ROWS COLUMNS LAYER...: the same of images of planes.
volumes() {
  layers $1 "${@:3}"
  planes=$2
}
# several STEPS IMAGES ROWS COLUMNS LAYER...: the same of several images.
several() {
  layers $1 "${@:3}"
  images=$2
}
# cut: gives each rank its piece.
cut() {
  local file
  if ! [ -e level.npy ]; then
    python3 - $view $dim $parts $ranks $rows $columns $planes \
      $images >places <<'PY'
import sys
view, dim, parts, *numbers = sys.argv[1:]
ranks, rows, columns, planes, images = map(int, numbers)
size = {"H": rows, "W": columns, "D": planes, "N": images}
even = [size[dim] // ranks + (r < size[dim] % ranks) for r in range(ranks)]
sizes = even if parts == "even" else [int(part) for part in parts.split(",")]
at = 0
for part in sizes:
    own = {name: f"0:{extent}" for name, extent in size.items()}
    if view == "shard":
        own[dim] = f"{at}:{at + part}"
    at += part
    print(own["H"], own["W"], "v:" + own["D"] if planes else "",
          "n:" + own["N"] if images else "")
PY
  elif [ $view = shard ]; then
    for file in level depth; do
      run 0 "$sundog" split --dim $dim --parts $parts -n $ranks $file.npy ||
        return
    done
  fi
}
# recorded NAME: runs the program; NAME.json is the report, NAME.npy the result.
recorded() {
  cut || return
  rm -f out.*
  run 0 "$sundog" run -n $ranks --device host --view $view "${words[@]}" \
    --record "$1" -- "${program[@]}" || return
  run 0 "$sundog" report "$1" --json -o "$1.json" || return
  if [ $view = whole ]; then
    cp out.0.npy "$1.npy"
  else
    run 0 "$sundog" join --dim $dim "$1.npy" 'out.{rank}.npy' -n $ranks
  fi
}

# whole_run NAME: the same for a program that has no result.
whole_run() {
  run 0 "$sundog" run -n $ranks --device host --view whole "${words[@]}" \
    --record "$1" -- "${program[@]}" &&
    run 0 "$sundog" report "$1" --json -o "$1.json"
}

# ---- advice ------------------------------------------------------------------

# follow REPORT ABOUT: does what the advice says.
follow() {
  local said
  "$here/apply" "$1" "$2" r.rules $ranks "${words[@]}" >said || return
  mapfile -t said <said
  ranks=${said[0]} words=("${said[@]:2}")
  [ -n "${said[1]}" ] || return 0
  [[ ${said[1]} = "sundog split --dim "[NDHW]" "*" FILE" ]] || return
  local rest=${said[1]#*--dim }
  dim=${rest%% *} parts=even
  rest=${said[1]#*--parts }
  [ "$rest" = "${said[1]}" ] || parts=${rest%% *}
}
# moves_as_predicted ABOUT: the run `after` moved what the advice of `before`
# predicted, and computed the same.
moves_as_predicted() {
  run 0 "$sundog" diff --rounding before.npy after.npy || return
  python3 - "$1" <<'PY'
import json, sys
before, after = (json.load(open(name + ".json")) for name in ("before", "after"))
advice = next(a for a in before["advice"] if a["about"] == sys.argv[1])
total = lambda run: sum(rank["received_bytes"] for rank in run["ranks"])
assert advice["received_bytes"] == total(before), (advice, total(before))
assert advice["predicted_bytes"] == total(after), (advice, total(after))
assert total(after) < total(before)
assert str(total(after)) in advice["effect"]
PY
}
# tried ABOUT: records, follows the advice, and records again.
tried() {
  recorded before && follow before.json $1 && recorded after &&
    moves_as_predicted $1
}
# says_line REPORT ABOUT LINE WHERE: the advice's line, "": any, and words of its
# place.
says_line() {
  python3 - "$@" <<'PY'
import json, sys
report, about, line, where = sys.argv[1:]
advice, = [a for a in json.load(open(report))["advice"] if a["about"] == about]
assert advice["line"] == line or not line, advice
assert where in advice["where"], advice
PY
}
# without REPORT ABOUT...: the report has no such advice.
without() {
  python3 - "$@" <<'PY'
import json, sys
found = [a for a in json.load(open(sys.argv[1]))["advice"]
         if a["about"] in sys.argv[2:]]
assert not found, found
PY
}

# ---- an axis, ranks ----------------------------------------------------------

another_axis_moves_what_is_predicted() {
  view=shard ranks=3 words=(--split H) dim=H parts=even
  waves 91 120
  tried axis
  without after.json axis
}
another_axis_is_not_advised_where_graphs_are_launched() {
  view=shard ranks=3 words=(--split H) dim=H parts=even
  waves 91 120
  recorded before
  python3 - <<'PY'
# What moves nothing now may do with another axis, whatever launches it.
import json
for rank in range(3):
    path = f"before/totals-{rank}.json"
    totals = json.load(open(path))
    row = dict(totals["calls"][0], strategy="replay", count=10, halo_bytes=0)
    totals["calls"] += [dict(row, entry="cudaGraphLaunch_ptsz", rule="-"),
                        dict(row, entry="cudnnPoolingForward")]
    json.dump(totals, open(path, "w"))
PY
  run 0 "$sundog" report before --json -o before.json
  without before.json axis
}
another_axis_of_the_whole_view_moves_what_is_predicted() {
  view=whole ranks=3 words=(--split H) dim=H parts=even
  waves 91 120
  tried axis
  without after.json axis
}
another_axis_is_written_into_each_section() {
  view=shard ranks=2 words=(--rules r.rules) dim=H parts=10,6
  printf '[shard]\nmatch = N C=2 H W\n split=H:y ; rows\n' >r.rules
  printf '[local none]\nmatch = N>=9\n[shard rest]\nsplit = H:y\n' >>r.rules
  layers 2 16 40 c:4:3:5 r c:2:3:5 c:3:3:5
  tried axis
  [ "$(grep -c '^split = W:y$' r.rules)" = 2 ]
  # Rows that are prescribed do not say how columns are cut.
  printf '[shard]\nsplit = H\nparts = 10,6\n' >r.rules
  dim=H parts=10,6
  recorded before
  without before.json axis
}
another_axis_is_written_into_sections_that_only_queries_use() {
  view=shard ranks=3 words=(--rules r.rules) dim=H parts=even
  printf '[shard]\nmatch = N C=2 H W\nsplit = H\n[shard rest]\nsplit = H\n' \
    >r.rules
  layers 1 14 26 c:5:5:5
  tried axis
  # Tensors that are split otherwise might be concerned.
  printf '[shard]\nmatch = N C=2 H W\nsplit = H\n[shard rest]\nsplit = N\n' \
    >r.rules
  view=whole ranks=3 dim=H
  recorded before
  without before.json axis
}
another_axis_is_not_advised_where_gradients_may_be_adjoint() {
  view=shard ranks=3 words=(--split W) dim=W parts=even
  # The second layer's gradient of the data has a halo along H only.
  layers 1 26 6 c:1:1:3 c:2:3:1 b
  recorded before
  without before.json axis
  layers 1 26 6 c:2:1:3 c:2:3:1 b
  tried axis
}
another_axis_is_not_advised_where_windows_may_share_halos() {
  view=whole ranks=2 words=(--split H) dim=H parts=even
  # Along W the halo of the first window serves the second one.
  layers 1 16 40 s:5:3 s:1:3 c:2:5:1
  recorded before
  without before.json axis
}
another_axis_follows_strides() {
  ranks=3
  for view in shard whole; do
    words=(--split H) dim=H parts=even
    layers 2 48 96 c:2:3:3:2 r c:3:3:3:1:2 c:2:3:3:2 p:2 t:2:2 c:1:3:3
    tried axis
    without after.json axis
    words=(--split H) dim=H parts=even
    layers 2 48 120 r c:2:5:5 p:3:2:1 c:3:5:3:1:2 p:2 c:3:3:3
    tried axis
  done
  # 50 rows over 4 are no even numbers, but the program asks for sizes.
  view=shard ranks=4 words=(--split H) dim=H parts=even
  layers 1 50 141 c:2:3:3:2 c:2:5:5 c:2:3:3:2 s:5:3 b
  tried axis
}
another_axis_of_volumes_moves_what_is_predicted() {
  ranks=2
  for view in shard whole; do
    words=(--split H) dim=H parts=even
    volumes 2 32 8 12 c:2:3:3 p:2 c:3:3:3:1:2
    tried axis
    [ "$dim ${words[*]}" = 'D --split D' ] || [ $view = whole ]
    words=(--rules r.rules) dim=D parts=even
    printf '[shard]\nsplit = D\n' >r.rules
    volumes 2 8 12 40 c:2:3:3:2 c:3:3:3
    tried axis
    grep -qx 'split = W' r.rules
  done
}
images_are_cut_where_each_rank_gets_as_many() {
  ranks=2
  for view in shard whole; do
    words=(--split H) dim=H parts=even
    several 2 4 16 40 r c:3:3:3 c:2:5:5:2 r
    tried axis
    says_line before.json axis '--split N' "in place of --split 'H'."
    grep -q 'no window sees another image' before.json
    words=(--split H) dim=H parts=even
    several 2 3 16 40 r c:3:3:3
    tried axis
    says_line before.json axis '--split W' "in place of --split 'H'."
  done
}
another_axis_is_not_advised_where_sizes_are_not_known() {
  view=shard ranks=2 words=(--split H) dim=H parts=even
  # The pieces' widths are odd: a program that asks gets 14+13 columns, one that
  # computes them of its piece 14+14.
  layers 1 8 54 c:2:3:3 p:3:2:1 c:2:3:3
  recorded before
  without before.json axis
  layers 1 8 56 c:2:3:3 p:3:2:1 c:2:3:3
  tried axis
  # A window that is as wide as the image is set by the image's width.
  words=(--split H) dim=H parts=even
  words=(--rules r.rules)
  printf '[shard]\nsplit = H\nwindow = global\n' >r.rules
  layers 1 48 24 c:2:3:3 p:24
  recorded before
  without before.json axis
  # Nor is one that would be as large as each piece.
  words=(--split H) ranks=4 parts=12,4,4,4
  layers 1 24 12 c:1:3:3 p:3
  recorded before
  without before.json axis
  # The whole view: a gradient of 27+27+26 columns is put into 28+26+26.
  view=whole ranks=3 parts=even
  layers 1 48 80 c:4:3:1 c:4:5:3 c:3:3:3:2 b
  recorded before
  without before.json axis
}
another_axis_is_not_advised_before_even_parts() {
  # Even columns move less than even rows, which move less than these columns.
  view=shard ranks=2 words=(--rules r.rules) dim=W parts=16,12
  printf '[shard]\nsplit = W\n' >r.rules
  layers 2 60 28 c:1:3:3:3
  recorded before
  without before.json axis
}
two_axes_get_no_other_ones() {
  ranks=4 words=(--split 'H:y,W:x' --mesh 'y=2,x=2')
  view=whole dim=H parts=even
  layers 1 24 60 c:3:3:3 c:2:3:3
  recorded before
  without before.json axis ranks parts
}
fewer_ranks_move_what_is_predicted() {
  view=shard ranks=4 words=(--split H) dim=H parts=even
  waves 16 120
  tried ranks
  [ $ranks = 2 ]
  says_line before.json ranks '-n 2' 'of `sundog run`, in place of -n 4.'
}
fewer_ranks_have_another_mesh() {
  view=whole ranks=4 words=(--rules r.rules) dim=H parts=even
  printf '[mesh]\ny = 4\n[shard field]\nsplit = H:y\n' >r.rules
  layers 1 12 10 c:3:5:5 c:2:5:5
  tried ranks
  [ "${words[*]}" = '--rules r.rules --mesh y=2' ]
}

# waiting NAME: as if each rank's stream had waited for most of the run, a second.
waiting() {
  python3 - "$1"/times-* <<'PY'
import json, sys
read = lambda path: [json.loads(line) for line in open(path)]
lines = [line for path in sys.argv[1:] for line in read(path)]
begin = min(line[3] for line in lines)
for path in sys.argv[1:]:
    wait = f"[0,1,5,{begin},1000000000]\n"
    text = open(path).read()
    open(path, "w").write(wait + text)
PY
  run 0 "$sundog" report "$1" --json -o "$1.json"
}
one_rank_is_faster_than_several_that_wait() {
  dim=H parts=even
  for view in shard whole; do
    ranks=2 words=(--rules r.rules)
    printf '[mesh]\ny = 2\n[shard field]\nsplit = H:y\n' >r.rules
    layers 300 24 10 c:3:3:3 r
    recorded before
    waiting before
    follow before.json alone
    [ "$ranks ${words[*]}" = '1 --rules r.rules --mesh y=1' ]
    recorded after
    run 0 "$sundog" diff --rounding before.npy after.npy
    python3 - $view <<'PY'
import json, sys
before, after = (json.load(open(name + ".json")) for name in ("before", "after"))
advice = next(a for a in before["advice"] if a["about"] == "alone")
assert 0 < advice["predicted_ns"] <= 0.8 * advice["run_ns"], advice
assert ("whole input" in advice["where"]) == (sys.argv[1] == "shard"), advice
assert sum(rank["received_bytes"] for rank in after["ranks"]) == 0
PY
  done
  view=whole ranks=2 words=(--split H)
  recorded before
  waiting before
  says_line before.json alone '-n 1' 'of `sundog run`, in place of -n 2.'
  sed -i 's/"value":"sundog run"/"value":"srun:7"/' before/rank-?
  run 0 "$sundog" report before --json -o before.json
  says_line before.json alone '-n 1' 'of the launcher, which started 2 ranks.'
}
# A thread or a stream may compute while another one waits, and a stream while
# its host does.
waits_of_a_busy_rank_are_not_idle() {
  view=whole ranks=2 words=(--split H) dim=H parts=even
  layers 300 10 24 c:3:3:3 r
  recorded kept
  cp -r kept before
  sed -i 's/"agreed":[0-9]*/"agreed":1000000000/' before/rank-?
  run 0 "$sundog" report before --json -o before.json
  without before.json alone
  rm -r before
  cp -r kept before
  waiting before
  says_line before.json alone '-n 1' 'in place of -n 2.'
  # Two calls at once, of two streams.
  sed -i '1{p;s/^\[0,1,5/[0,1,0/p;s/^\[0,1,0/[0,2,0/}' before/times-?
  run 0 "$sundog" report before --json -o before.json
  without before.json alone
  rm -r before
  cp -r kept before
  waiting before
  sed -i '$s/^\[0,/[1,/' before/times-1
  run 0 "$sundog" report before --json -o before.json
  without before.json alone
}
one_rank_alone_needs_no_other_axis() {
  view=shard ranks=2 words=(--split H) dim=H parts=even
  layers 300 10 24 c:3:3:3 r
  recorded before
  waiting before
  says_line before.json alone '-n 1' 'in place of -n 2, with the whole input.'
  without before.json axis ranks parts slow
  sed -i '$s/^\[0,/[1,/' before/times-1
  run 0 "$sundog" report before --json -o before.json
  without before.json alone
  says_line before.json axis '--split W' "in place of --split 'H'."
  # What the environment says, no option replaces.
  sed -i '/"SUNDOG_SPLIT"/s/\("SUNDOG_SPLIT","value":"H","origin":"\)argument/\1environment/' \
    before/rank-?
  run 0 "$sundog" report before --json -o before.json
  says_line before.json axis '--split W' "before SUNDOG_SPLIT='H' of the environment"
}

# ---- parts -------------------------------------------------------------------

even_parts_compute_less_at_once() {
  view=shard ranks=3 words=(--split H) dim=H
  for try in 1 2 3 4 5; do
    parts=30,304,30
    waves 364 480 20
    recorded before
    follow before.json parts || continue
    [ $parts = even ]
    says_line before.json parts 'sundog split --dim H -n 3 FILE' 'In a shell'
    recorded after
    run 0 "$sundog" diff --rounding before.npy after.npy
    without after.json parts
    # A busy machine may hide what half of the rows saves.
    python3 - <<'PY' && return 0
import json
longest = [max(rank["real_ns"] for rank in json.load(open(name))["ranks"])
           for name in ("after.json", "before.json")]
raise SystemExit(longest[0] >= longest[1])
PY
  done
  return 1
}
even_parts_replace_those_of_the_rules() {
  words=(--rules r.rules) ranks=3 dim=H
  for view in whole shard; do
    for try in 1 2 3 4 5; do
      printf '[shard field]\nsplit = H\nparts = 40,284,40\n' >r.rules
      parts=40,284,40
      waves 364 480 20
      recorded before
      ! follow before.json parts || break
    done
    recorded after
    run 0 "$sundog" diff --rounding before.npy after.npy
    python3 - <<'PY'
import json
pieces = json.load(open("after.json"))["tensors"][0]["pieces"]
assert sorted(p["extent"][2] for p in pieces) == [121, 121, 122], pieces
PY
  done
}
parts_are_those_of_the_input() {
  view=shard ranks=2 dim=H words=(--split H)
  # Calls on the smaller piece must take 20 us.
  layers 40 96 400 t:2:2 c:4:3:3 c:3:3:3:2 p:2
  # The first layer makes two rows of each, the third one makes one of two. On a
  # busy machine a rank may count as slow, and get less than half.
  for try in 1 2 3 4 5 6 7 8; do
    dim=H parts=80,16
    recorded before
    ! follow before.json parts || break
  done
  [ $parts != 80,16 ]
  [ $parts = even ] || [ $((${parts/,/+})) = 96 ]
  recorded after
  run 0 "$sundog" diff --rounding before.npy after.npy
}
# slowed NAME RANK FACTOR: as if the rank's device took so many times as long.
slowed() {
  awk -F, -v OFS=, -v by=$3 '$3 == 1 { $5 = int($5 * by) "]" } { print }' \
    "$1/times-$2" >"$1/new"
  mv "$1/new" "$1/times-$2"
  run 0 "$sundog" report "$1" --json -o "$1.json"
}
# slow_is_found: the advice of `before` is about rank 1, and says what it gains.
slow_is_found() {
  python3 - <<'PY'
import json
advice = [a for a in json.load(open("before.json"))["advice"]
          if a["about"] == "slow" and a["rank"] == 1]
raise SystemExit(not (
    advice and 2 < advice[0]["factor"] < 8 and
    0 < advice[0]["predicted_ns"] < 0.8 * advice[0]["compute_ns"]))
PY
}
# A busy machine may slow a rank, too: then the run is made again.
a_slow_rank_gets_a_smaller_part() {
  ranks=2 dim=H
  for view in shard whole; do
    words=(--split H) parts=even
    layers 80 96 200 c:8:3:3 c:4:3:3
    for try in 1 2 3 4 5; do
      recorded before
      slowed before 1 4
      ! slow_is_found || break
    done
    slow_is_found
    [ $view = shard ] ||
      says_line before.json slow '' 'On the command line, as a further option.'
    follow before.json slow
    for try in 1 2 3 4 5; do
      recorded after
      run 0 "$sundog" diff --rounding before.npy after.npy
      # By the factor that was measured, no rank has as much to do as before.
      python3 - <<'PY'
import json
advice, = [a for a in json.load(open("before.json"))["advice"]
           if a["about"] == "slow"]
rows = [p["extent"][2]
        for p in json.load(open("after.json"))["tensors"][0]["pieces"]]
assert sum(rows) == 96 and rows[1] < rows[0], rows
longest = max(rows[0], rows[1] * advice["factor"])
assert longest < 0.8 * 48 * advice["factor"], (rows, advice)
PY
      slowed after 1 4
      ! without after.json slow 2>without || break
    done
    without after.json slow
  done
}
# longest NAME: how long the rank computes that computes longest.
longest() {
  python3 -c "
import json
print(max(rank['real_ns'] for rank in json.load(open('$1.json'))['ranks']))"
}
parts_by_speed_are_faster() {
  local slow=1 faster
  ranks=2 dim=H
  for view in shard whole; do
    faster=no
    for try in 1 2 3 4 5 6 7 8; do
      words=(--split H) dim=H parts=even
      layers 80 96 200 c:8:3:3 c:4:3:3
      recorded before
      # A busy machine may hide what is slow.
      follow before.json slow || continue
      recorded after
      run 0 "$sundog" diff --rounding before.npy after.npy
      [ "$(longest after)" -ge "$(longest before)" ] || faster=yes
      [ $faster = no ] || break
    done
    [ $faster = yes ]
  done
}
what_cannot_be_done_together_is_said() {
  local slow=1
  view=shard ranks=2 words=(--split H) dim=H parts=even
  layers 80 96 200 c:8:3:3 c:4:3:3
  for try in 1 2 3 4 5 6 7 8; do
    recorded before
    ! says_line before.json slow '' '' 2>without || break
  done
  says_line before.json axis '--split W' ''
  python3 - <<'PY'
import json
advice = json.load(open("before.json"))["advice"]
others = ["Do either" in a["text"] for a in advice
          if a["about"] in ("axis", "ranks", "parts", "slow")]
assert others == [False] + [True] * (len(others) - 1) and len(others) > 1, advice
PY
}
equal_ranks_are_not_slow() {
  view=shard words=(--split H) dim=H parts=even
  for ranks in 2 3 4; do
    layers 80 96 200 c:8:3:3 c:4:3:3
    recorded before
    without before.json slow parts
  done
}

# ---- promises, calls in full -------------------------------------------------

a_promise_saves_what_is_predicted() {
  view=shard ranks=2 dim=H parts=9,15 words=(--split H)
  # Two windows see one x: its halo is kept for the second one only.
  layers 3 24 10 c:3:3:3 r s:5:3 c:3:3:5 c:2:1:1 c:2:3:3 b
  tried keep
  [ "${words[*]}" = '--split H; keep = x' ]
  without after.json keep
  # The first rank only sends its rows of x to the second window.
  words=(--split H) ranks=3 parts=8,8,8
  layers 3 24 10 s:3:5 c:5:3:5:2 b
  tried keep
  words=(--rules r.rules) ranks=2 parts=9,15
  layers 3 24 10 c:3:3:3 r s:5:3 c:3:3:5 c:2:1:1 c:2:3:3 b
  printf '[shard one]\nmatch = N C=2 H W\nsplit = H\nkeep: dy\n' >r.rules
  printf '[shard two]\nsplit = H\nkeep = dy\n' >>r.rules
  tried keep
  [ "$(grep -c '^keep = x dy$' r.rules)" = 2 ]
  # A promise of one section is none of the other's.
  printf '[shard one]\nmatch = N C=2 H W\nsplit = H\n' >r.rules
  printf '[shard two]\nsplit = H\nkeep = dy\n' >>r.rules
  recorded before
  without before.json keep
}
no_promise_is_asked_for_that_is_not_kept() {
  view=shard ranks=2 dim=H parts=even words=(--split H)
  # A relu writes x behind the convolution that reads it.
  layers 3 24 10 c:5:1:1 s:3:1 r b
  recorded before
  without before.json keep
}
no_promise_is_asked_for_captured_calls() {
  view=shard ranks=2 dim=H parts=even words=(--split H)
  # The second step is captured, but nothing launches it.
  layers 1 24 10 c:3:3:3 c:2:3:3 b g
  recorded before
  without before.json keep
}
the_whole_view_needs_no_promise() {
  view=whole ranks=2 dim=H parts=even words=(--split H)
  layers 3 24 10 c:3:3:3 r c:3:3:5 b
  recorded before
  without before.json keep
}
ops_that_rules_leave_out_are_shared() {
  view=whole ranks=3 words=(--rules r.rules) dim=H parts=even
  printf '[shard f]\nsplit = H\nop = conv*\n' >r.rules
  layers 2 24 10 c:3:3:3 r c:3:3:5 m c:3:3:3
  recorded before
  follow before.json op
  grep -q 'The line about `op` has the ranks share them' before.json
  grep -qx 'op = \*' r.rules
  recorded after
  run 0 "$sundog" diff --rounding before.npy after.npy
  without after.json op full
  python3 - <<'PY'
import json
before, after = (sum(r["received_bytes"] for r in json.load(open(name))["ranks"])
                 for name in ("before.json", "after.json"))
assert after < before, (before, after)
PY
  # The relu of the image leaves the convolution all of its halo.
  printf '[shard f]\nsplit = H\nparts = 4,2\nop = conv*\n' >r.rules
  ranks=2
  layers 3 6 32 r c:2:7:3 r
  recorded before
  without before.json op
  ranks=3
  # What is left out still would fetch the results of what is shared.
  view=whole ranks=2 words=(--split 'H; op = conv*')
  program=("$clients/unet" --steps 2)
  whole_run before
  follow before.json op
  [ "${words[*]}" = '--split H; op = *' ]
  whole_run after
  python3 - <<'PY'
import json
before, after = (sum(r["received_bytes"] for r in json.load(open(name))["ranks"])
                 for name in ("before.json", "after.json"))
assert 10 * after < before, (before, after)
PY
  # What one op fetches and another one then has, is not worth a line.
  words=(--rules r.rules) ranks=3
  printf '[shard f]\nsplit = H\nop = conv*\n' >r.rules
  layers 1 24 10 c:3:3:3 p:2
  recorded before
  without before.json op
  grep -q 'cudnnPoolingForward ran in full, because no section' before.json
  grep -q 'If `op` leaves out its word' before.json
  # Without `op`, its extents match no section.
  printf '[shard f]\nmatch = N C H>=13 W\nsplit = H\n' >r.rules
  layers 2 24 10 c:3:3:3 p:2 p:2
  recorded before
  grep -q "Nothing is to be written for it unless a" before.json
}
calls_in_full_are_named_with_their_cost() {
  view=whole ranks=3 words=(--split H) dim=H parts=even
  layers 4 24 10 c:3:3:3 d c:3:3:5 m
  recorded before
  python3 - <<'PY'
import json
advice, = [a for a in json.load(open("before.json"))["advice"]
           if a["about"] == "full"]
assert advice["entry"] == "cudnnDropoutForward" and advice["calls"] == 4, advice
# Two thirds of 3 channels, for each of 3 ranks, in each step.
assert advice["fetched_bytes"] == 4 * 2 * 3 * 24 * 10 * 4, advice
assert advice["device_ns"] > 0 and advice["line"] == "", advice
assert "masks" in advice["text"], advice
assert "Nothing can be written for it" in advice["text"], advice
PY
  layers 4 24 10 c:3:3:3 c:3:3:5 m
  recorded before
  without before.json full
}
a_good_split_gets_no_advice() {
  view=shard ranks=3 words=(--split H) dim=H parts=even
  waves 120 91
  recorded before
  without before.json axis ranks parts slow keep op full
}

cases another_axis_moves_what_is_predicted \
  another_axis_is_not_advised_where_graphs_are_launched \
  another_axis_of_the_whole_view_moves_what_is_predicted \
  another_axis_is_written_into_each_section \
  another_axis_is_written_into_sections_that_only_queries_use \
  another_axis_is_not_advised_where_gradients_may_be_adjoint \
  another_axis_is_not_advised_where_windows_may_share_halos \
  another_axis_follows_strides another_axis_of_volumes_moves_what_is_predicted \
  images_are_cut_where_each_rank_gets_as_many \
  another_axis_is_not_advised_where_sizes_are_not_known \
  another_axis_is_not_advised_before_even_parts two_axes_get_no_other_ones \
  fewer_ranks_move_what_is_predicted fewer_ranks_have_another_mesh \
  one_rank_is_faster_than_several_that_wait waits_of_a_busy_rank_are_not_idle \
  one_rank_alone_needs_no_other_axis \
  even_parts_compute_less_at_once parts_are_those_of_the_input \
  even_parts_replace_those_of_the_rules \
  a_slow_rank_gets_a_smaller_part parts_by_speed_are_faster \
  what_cannot_be_done_together_is_said equal_ranks_are_not_slow \
  a_promise_saves_what_is_predicted \
  no_promise_is_asked_for_that_is_not_kept \
  no_promise_is_asked_for_captured_calls the_whole_view_needs_no_promise \
  ops_that_rules_leave_out_are_shared \
  calls_in_full_are_named_with_their_cost a_good_split_gets_no_advice
