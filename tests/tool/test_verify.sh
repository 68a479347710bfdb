#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog verify`: one rank against several.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 4 --steps 10 --dx 2400 --dt 15 --friction 0"
split=(--device host --split H --view shard)

# verify STATUS WORDS...: the solver, with these words for the command.
verify() {
  local status=$1
  shift
  "$clients/scene" "$bathymetry" 91 120 .
  run "$status" "$sundog" verify "$@" --input level.npy --input depth.npy \
    --output out.npy -- "$clients/shallow" --in level.npy --depth=depth.npy \
    --out out.npy $shallow
}
equal_runs_are_equal() {
  verify 0 -n 3 "${split[@]}"
  [ "$(cat out)" = 'out.npy: 3 ranks against one: 0 of 10920 elements differ' ]
  lacks err SDG-
  [ ! -e out.npy ]
}
pieces_and_meshes_are_passed_on() {
  verify 0 -n 2 "${split[@]}" --parts 50,41 --keep kept
  [ "$(ls kept | tr '\n' ' ')" = \
    'in0.0.npy in0.1.npy in1.0.npy in1.1.npy many0.0.npy many0.1.npy many0.npy one0.npy ' ]
  [ "$(stat -c %s kept/in0.0.npy)" = $((128 + 50 * 120 * 4)) ]
  verify 0 -n 4 --device host --view shard --split H:y,W:x --mesh y=2,x=2
}
every_rank_of_the_whole_view_has_whole_files() {
  verify 0 -n 3 --device host --split H --view whole --keep kept
  [ "$(cat out)" = 'out.npy: 3 ranks against one: 0 of 10920 elements differ' ]
  [ "$(ls kept | tr '\n' ' ')" = 'many0.npy one0.npy ' ]
  printf '[shard all]\nsplit = W\nview = whole\n' >r.ini
  verify 0 -n 2 --device host --rules r.ini
  [ ! -e out.npy ]
}
runs_that_differ_are_told() {
  # Nothing is exchanged: every piece is an island.
  printf '[shard none]\nmatch = H>=9999\nsplit = H\nview = shard\n' >r.ini
  printf '[local all]\n' >>r.ini
  verify 125 -n 2 --device host --rules r.ini
  says err SDG-717
  says err 'the run on 2 ranks failed'
  # The program says by itself how many ranks there are.
  cat >prog <<'X'
#!/bin/sh
printf '{"rank":0,"matched":1,"calls":[]}' >"${SUNDOG_REPORT:-.}/rank-$SUNDOG_RANK.json"
cp "$1" "$2"
[ "$SUNDOG_SIZE" = 1 ] || printf X | dd of="$2" bs=1 seek=130 conv=notrunc 2>/dev/null
X
  chmod +x prog
  "$clients/scene" "$bathymetry" 10 12 .
  run 1 "$sundog" verify -n 2 "${split[@]}" --input level.npy --output o.npy \
    -- ./prog level.npy o.npy
  says out 'o.npy: 2 ranks against one: 2 of 120 elements differ'
  says out 'first difference at (0, 0)'
  run 0 "$sundog" verify -n 2 "${split[@]}" --atol 1e30 --input level.npy \
    --output o.npy -- ./prog level.npy o.npy
}
runs_that_fail_are_trouble() {
  run 125 "$sundog" verify -n 2 "${split[@]}" --output o.npy -- false
  says err 'SDG-730'
  says err 'the run on one rank failed'
  run 125 "$sundog" verify -n 2 "${split[@]}" --output o.npy
  run 125 "$sundog" verify "${split[@]}" --output o.npy -- true
  run 125 "$sundog" verify -n 2 "${split[@]}" -- true
}

cases equal_runs_are_equal pieces_and_meshes_are_passed_on \
  every_rank_of_the_whole_view_has_whole_files \
  runs_that_differ_are_told runs_that_fail_are_trouble
