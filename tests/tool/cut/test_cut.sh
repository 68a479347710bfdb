#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog verify --calls` calls functions of the rules in pieces, and finds
# sections that do not fit them.
# shellcheck disable=SC2154,SC2164,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/../harness.sh"
here=$(cd "$(dirname "$0")" && pwd) host=$(dirname "$(realpath "$3")")
cuda=$(realpath "$4") root=$(cd "$here/../../.." && pwd)
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

# The program, once for all cases.
program=$top/program
mkdir "$program"
names=(step wide decay ramp total energy rotate faces mean blend padded heat
  corners shift shear limit smooth fsum)
if ! command -v gfortran >/dev/null; then
  echo '1..0 # SKIP no gfortran'
  exit 0
fi
(
  cd "$program" || exit 1
  flags=(-O1 -I"$root" -I"$cuda/include" -D_GNU_SOURCE)
  gcc "${flags[@]}" -shared -fPIC -o libcut.so "$here/stencils.c" \
    "$host/libcudart.so.13" -lm
  g++ "${flags[@]}" -shared -fPIC -o libcut++.so "$here/stencils.cpp"
  gfortran -O1 -shared -fPIC -o libcutf.so "$here/stencils.f90"
  gcc "${flags[@]}" -o calls "$here/calls.c" -L. -l:libcut.so -l:libcut++.so \
    -l:libcutf.so "$host/libcudart.so.13" -lm -Wl,-rpath,"$program"
  # The rows of a rank.
  cat >piece <<'Y'
#!/bin/sh
here=$(dirname "$0")
case $SUNDOG_SIZE-$SUNDOG_RANK in
1-*) exec "$here/calls" 24 0 "$@" ;;
3-0) exec "$here/calls" 8 0 "$@" ;;
3-1) exec "$here/calls" 7 8 "$@" ;;
3-2) exec "$here/calls" 9 15 "$@" ;;
*) exec "$here/calls" 12 0 "$@" ;;
esac
Y
  chmod +x piece
) || exit 1

# section NAME [SCRIPT]: the function's section, as sed changes it.
section() {
  awk -v RS= -v n="$1" '$0 ~ "^\\[function (cut_)?" n "\\]"' "$here/sections" |
    sed "${2-}"
  echo
}
# shard SPLIT VIEW
shard() { printf '[shard all]\nsplit = %s\nview = %s\n' "$1" "$2"; }
# cut RANKS RULES NAME...: one process that plays the ranks.
cut() {
  rm -rf found
  mkdir found
  SUNDOG_CUTS=$PWD/found SUNDOG_CUT_RANKS=$1 "$sundog" run -n 1 \
    --device host --rules "$2" -- "$program/calls" 24 0 "${@:3}" >out 2>err
}

sections_that_fit_are_not_blamed() {
  local name view
  for view in shard whole; do
    {
      for name in "${names[@]}"; do section "$name"; done
      shard H $view
    } >right.rules
    for ranks in 1 2 3 7; do
      cut $ranks right.rules "${names[@]}"
      lacks found/cuts '"differs"'
      lacks found/cuts '"why"'
      lacks err SDG-
      [ "$(grep -c -e '"same"' -e '"full"' found/cuts)" -ge 18 ]
    done
  done
  # All ways in which the ranks work were taken.
  cut 3 right.rules "${names[@]}"
  grep -q '"same":"window"' found/cuts
  grep -q '"same":"extend"' found/cuts
  grep -q '"full":"ghosts"' found/cuts
}
the_programs_own_results_stay() {
  { for name in "${names[@]}"; do section "$name"; done; shard H shard; } >all.rules
  LD_LIBRARY_PATH=$host "$program/calls" 24 0 "${names[@]}" >alone
  cut 3 all.rules "${names[@]}"
  cmp out alone
  # Also where the section is wrong.
  { section step 's/double dt/float dt/'; section blend 's/float double/double float/'
    section shear 's/, double by//'; shard H shard; } >wrong.rules
  cut 3 wrong.rules "${names[@]}"
  grep -q '"cut_shear","differs"' found/cuts
  cmp out alone
}
sections_that_do_not_fit_are_found() {
  local name script text failed=0 count=0
  while IFS='|' read -r name script text; do
    { section "$name" "$script"; shard H shard; } >wrong.rules
    if cmp -s <(section "$name" "$script") <(section "$name"); then
      echo "# $name $script changes nothing"
      failed=1
    fi
    cut 3 wrong.rules "$name" || true
    count=$((count + 1))
    grep -qF -- "$text" found/cuts && continue
    echo "# $name $script: not '$text' but:"
    sed 's/^/#   /' found/cuts err
    failed=1
  done < <(grep -v '^#' "$here/wrong")
  [ $count -ge 29 ]
  [ $failed = 0 ]
}
functions_that_keep_something_are_not_blamed() {
  { section count; shard H shard; } >count.rules
  cut 3 count.rules count
  grep -q '"why":"two equal calls have different results"' found/cuts
  lacks found/cuts '"differs"'
}
a_function_may_only_return_a_result() {
  { section energy; shard H shard; } >energy.rules
  LD_LIBRARY_PATH=$host "$program/calls" 24 0 energy >alone
  run 0 "$sundog" run -n 3 --device host --rules energy.rules -- \
    "$program/piece" energy
  cat alone alone alone | cmp - out
}
splits_of_two_dimensions_are_tried() {
  { section corners; section total; shard 'H:y, W:x' shard
    printf '[mesh]\ny = 2\nx = 3\n'; } >two.rules
  cut 6 two.rules corners total
  [ "$(grep -c '"same"' found/cuts)" = 3 ]
  sed 's/^reach = H:1 W:1/reach = H:1 W:0/' two.rules >wrong.rules
  cut 6 wrong.rules corners
  grep -q 'only up to 1 from a cut in W: reach W:0 is too small' found/cuts
  sed 's/^reach = H:1 W:1/reach = H:0 W:1/' two.rules >wrong.rules
  cut 6 wrong.rules corners
  grep -q 'only up to 1 from a cut in H: reach H:0 is too small' found/cuts
}
verify_says_it() {
  { section step; section ramp; shard H shard; } >right.rules
  run 0 "$sundog" verify -n 3 --device host --rules right.rules --calls 8 \
    -- "$program/piece" step ramp
  says out 'cut_step: in the pieces of 3 ranks: as a whole, 2 calls tried (extend)'
  says out 'cut_ramp: in the pieces of 3 ranks: as a whole, 2 calls tried (part)'
  lacks err SDG-
  { section step 's/double dt/float dt/'; section ramp /^offset/d; shard H shard; } >wrong.rules
  run 1 "$sundog" verify -n 3 --device host --rules wrong.rules --calls 8 \
    -- "$program/piece" step ramp
  says out 'cut_step: in the pieces of 3 ranks: differs'
  says err "SDG-735 a function computes something else in pieces: cut_step: 'w' differs in 240 of 240 elements, first at H 0, W 0"
  says err "cut_ramp: 'u' differs in 160 of 240 elements, first at H 8, W 0"
  # A function that is not called among the first.
  run 0 "$sundog" verify -n 3 --device host --rules right.rules --calls 1 \
    -- "$program/piece" step ramp
  says out 'cut_ramp: in the pieces of 3 ranks: not checked: no call of it was seen among the first'
}
a_program_that_ends_in_a_piece_is_told() {
  # As an address the number is none.
  { section total 's/, out most//;s/sum most: /sum: /;s/, max most//'
    shard H shard; } >wrong.rules
  run 125 "$sundog" verify -n 3 --device host --rules wrong.rules --calls 8 \
    -- "$program/piece" total
  says out 'cut_total: in the pieces of 3 ranks: differs'
  says err 'SDG-735 a function computes something else in pieces: cut_total: the program ended in a call on a piece'
}

cases sections_that_fit_are_not_blamed the_programs_own_results_stay \
  sections_that_do_not_fit_are_found \
  functions_that_keep_something_are_not_blamed \
  a_function_may_only_return_a_result splits_of_two_dimensions_are_tried \
  verify_says_it a_program_that_ends_in_a_piece_is_told
