#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog verify --calls` tries the reach of the program's functions; `sundog
# inspect` finds them.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(cd "$(dirname "$0")" && pwd) host=$(dirname "$(realpath "$3")")
cuda=$(realpath "$4") root=$(cd "$here/../.." && pwd)
clients=$root/tests/clients/functions
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

# The solver of tests/clients/functions, once for all cases.
libraries=$top/solver
mkdir "$libraries"
flags=(-O1 -I"$root" -I"$cuda/include" -D_GNU_SOURCE)
(
  cd "$libraries" || exit 1
  g++ "${flags[@]}" -shared -fPIC -o libflux.so "$clients/flux.cpp"
  gcc "${flags[@]}" -shared -fPIC -o libwave.so "$clients/wave.c" \
    "$host/libcudart.so.13" -lm
  gcc "${flags[@]}" -o solver "$clients/solver.c" ./libwave.so ./libflux.so \
    "$host/libcudart.so.13" -lm -Wl,-rpath,"$libraries"
  # Fewer ranks, more rows each.
  cat >piece <<'X'
#!/bin/sh
case $SUNDOG_SIZE in
1) exec ./solver 24 16 3 -1 ;;
*) exec ./solver 8,7,9 16 3 "$SUNDOG_RANK" ;;
esac
X
  chmod +x piece
) || exit 1
# The functions that do nothing but write their results are pure.
pure() {
  sed '/^\[function smooth/,/^$/d
    /^\[function \(wave_step\|wave_rotate\|limit\)/s/$/\npure = yes/' \
    "$clients/wave.rules"
}
# tried STATUS RULES CALLS: verifies the solver by these rules.
tried() {
  cp "$2" "$libraries/tried.rules"
  cd "$libraries"
  run "$1" "$sundog" verify -n 3 --mesh y=3 --device host --view shard \
    --rules tried.rules --calls "$3" -- ./piece
  cd "$work"
}

a_right_reach_is_not_disproved() {
  pure >right.rules
  tried 0 right.rules 6
  says out 'wave_step: reach H:1: not disproved, 6 calls tried'
  says out 'wave_step: reach W:1: not disproved, 6 calls tried'
  says out 'wave_rotate: reach H:2: not disproved'
  says out 'limit: reach H:0: not disproved'
  says out 'wave_force: not checked: not pure'
  says out 'wave_energy: not checked: not pure'
  lacks out hint
  lacks err SDG-
}
a_wrong_reach_is_named() {
  # Both ways too small; the first function, of the page, only along H.
  pure | sed '0,/^reach = H:1 W:1/s//reach = H:0 W:1/
    s/^reach = H:2 W:1/reach = H:1 W:0/' >wrong.rules
  tried 1 wrong.rules 4
  says out 'wave_step: reach H:0: disproved'
  says out 'wave_step: reach W:1: not disproved'
  says err "SDG-734 a function sees farther than its reach: wave_step: 'w' changes in H 4 of 8 if 'u' changes 1 away; reach says H:0"
  says err "wave_rotate: 'w' changes in H 4 of 8 if 'u' changes 2 away; reach says H:1"
  says err "wave_rotate: 'w' changes in W 8 of 16 if 'u' changes 1 away; reach says W:0"
  run 0 "$sundog" explain SDG-734
  # The other end is not seen without `border = wrap`.
  pure | sed '/^border = wrap/d' >wrong.rules
  tried 1 wrong.rules 4
  says err "wave_rotate: 'w' changes in W 0 of 16 if 'u' changes 15 away; reach says W:1"
}
a_reach_that_is_too_large_is_a_hint() {
  pure | sed '0,/^reach = H:1 W:1/s//reach = H:3 W:1/' >large.rules
  tried 0 large.rules 4
  says out '  hint: nothing beyond 1 was seen'
  # Larger than the piece: there is nothing beyond it.
  pure | sed '0,/^reach = H:1 W:1/s//reach = H:20 W:1/' >large.rules
  tried 0 large.rules 4
  says out "wave_step: reach H:20: not checked: the call's extent is within the reach"
}
functions_of_the_whole_view_are_tried() {
  pure | sed '0,/^reach = H:1 W:1/s//reach = H:0 W:1/' >whole.rules
  cp whole.rules "$libraries/tried.rules"
  cd "$libraries"
  run 1 "$sundog" verify -n 2 --mesh y=2 --device host --view whole \
    --rules tried.rules --calls 4 -- ./solver 24 16 3 -1
  cd "$work"
  says err "wave_step: 'w' changes in H 12 of 24 if 'u' changes 1 away"
  says out 'wave_rotate: reach H:2: not disproved'
}
the_calls_of_functions_are_recorded() {
  pure >right.rules
  cp right.rules "$libraries/tried.rules"
  cd "$libraries"
  run 0 "$sundog" run -n 3 --mesh y=3 --device host --view shard \
    --rules tried.rules --record "$work/record" --trace "$work/trace" -- ./piece
  cd "$work"
  grep -q '"entry":"wave_step"' record/rank-1
  grep -q '^1 wave_step done=0 x=1x1x[789]x16 ' trace
  [ "$(grep -c ' wave_rotate done=0 ' trace)" = 9 ]
}
sections_that_are_not_filled_in_are_refused() {
  printf '[function f]\nlibrary = lib?.so\narguments = ? u, out w, int rows\n' \
    >open.rules
  printf 'tensor = u w: ? [H=rows]\nreach = H:?\nstream = none\n' >>open.rules
  printf '[shard field]\nsplit = H\nview = shard\n' >>open.rules
  run 78 "$sundog" rules --check -n 2 open.rules
  says err "open.rules:3: function 'f' still has a ? in: arguments, tensor, reach"
  says err SDG-114
  run 125 "$sundog" run -n 2 --device host --rules open.rules -- true
  says err SDG-114
  sed 's/? u/in u/; s/: ?/: float/; s/H:?/H:1/' open.rules >filled.rules
  run 0 "$sundog" rules --check -n 2 filled.rules
}

cases a_right_reach_is_not_disproved a_wrong_reach_is_named \
  a_reach_that_is_too_large_is_a_hint functions_of_the_whole_view_are_tried \
  the_calls_of_functions_are_recorded \
  sections_that_are_not_filled_in_are_refused
