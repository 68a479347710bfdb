#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog verify --calls` tries the reach of the program's functions; `sundog
# inspect` finds them.
# shellcheck disable=SC2154,SC2164,SC2317,SC1091,SC2086 # harness.sh; words
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
  says out 'wave_force: reach not tried: not pure'
  says out 'wave_energy: reach not tried: not pure'
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

# own FLAG...: builds a program with a library of its own, linked with FLAGs.
own() {
  gcc -O2 -mavx -shared -fPIC -I"$root" -o libown.so "$here/draft/own.c"
  gcc -O2 -mavx "${flags[@]}" "$@" -o calls_own "$here/draft/calls_own.c" \
    ./libown.so "$host/libcudart.so.13" -lpthread -Wl,-rpath,"$PWD"
}
# functions: the list of functions that `inspect` has printed, without columns.
functions() { sed -n '/ FUNCTION /,$p' out | tr -s ' '; }

functions_are_seen_however_they_are_called() {
  local how
  grep -qw avx /proc/cpuinfo || { echo '# no AVX'; return 0; }
  for how in -DPLT -fno-plt -no-pie -Wl,-z,now; do
    own $how
    LD_LIBRARY_PATH=$host ./calls_own >alone
    run 0 "$sundog" inspect --device host -- ./calls_own
    # The program does the same.
    grep -v '^ \|^program\|^$' out | cmp alone -
    silent err
    functions >list
    grep -q '^ 8000 own_ten of libown.so 1: device memory, 1024 bytes 2: device memory, 1024 bytes 3: .* 4: rows 32 5: columns 8 6: device memory, 1024 bytes 7: device memory, 1024 bytes 8: device' list
    grep -q '^ 8000 own_print of libown.so 1: device memory, 1024 bytes' list
    grep -q '^ 1 own_big of ' list # behind the address of its result
    grep -q '^ 1 own_vector of ' list
    grep -q '^ 1 own_nested of ' list
    # Neither data, nor functions that choose their code, nor those without a
    # device address.
    ! grep -Eq 'own_(data|chosen|host)' list
  done
}
sections_are_drafted_for_functions() {
  own
  run 0 "$sundog" inspect --device host -o own.rules -- ./calls_own
  sed -n '/^.function own_ten/,/^$/p' own.rules >section
  grep -qx 'library = libown.so' section
  grep -q '^arguments = ? a1, ? a2, ? a3, int rows, int columns, ? a6' section
  grep -q '^arguments = ? a7, ? a8' section
  grep -qx 'tensor = a1 a2 a3 a6 a7 a8: float \[rows columns\]' section
  grep -qx 'reach = H:? W:?' section
  run 78 "$sundog" rules --check -n 2 own.rules
  says err SDG-114
}
# The steps of doc/functions.md.
a_filled_draft_splits_the_solver() {
  cd "$libraries"
  run 0 "$sundog" inspect --device host -o "$work/draft.rules" -- \
    ./solver 24 16 3 -1
  cp "$work/out" alone
  cd "$work"
  says out 'wave_step of libwave.so  1: device memory, 1536 bytes'
  grep -q '^\[function wave_limit' draft.rules
  # The page says what is written for each ?.
  awk '/^\[/ { on = /wave_step|shard/ } on && /^arguments/ && seen++ { next } on' \
    draft.rules |
    sed '/^arguments/c arguments = in u, in v, out w, int rows, int columns, double dt
      /^tensor/c tensor = u v w: float [rows columns]
      s/^reach.*/reach = H:1 W:1\npure = yes/; s/^stream.*/stream = none/' >one.rules
  run 0 "$sundog" rules --check -n 3 one.rules
  # All of the solver's functions, by its own rules.
  pure | sed '/^\[function wave_step/,/^$/d; /^\[shard/,$d' >rest.rules
  cat rest.rules one.rules >all.rules
  tried 0 all.rules 4
  says out 'wave_step: reach H:1: not disproved'
  cp all.rules "$libraries/tried.rules"
  cd "$libraries"
  "$sundog" run -n 3 --device host --rules tried.rules \
    --ranks-output "$work/others" -- ./piece >"$work/rank-0" 2>"$work/err"
  cd "$work"
  cat rank-0 others/rank-[12].out | sort -n -k1,1 -k2,2 >pieces
  grep -E '^[0-9]+ [0-9]+ [-0]' "$libraries/alone" | cmp pieces -
}

# tried_rules: rules for functions of libtried.so, from lines NAME REACH ARGUMENTS.
tried_rules() {
  local name reach arguments
  while read -r name reach arguments; do
    printf '[function tried_%s]\npure = yes\n' "$name"
    printf 'arguments = %s\n' "$arguments"
    case $name in
    deep) printf 'tensor = u w: double [planes rows columns]\ndims = D H W\n' ;;
    half) printf 'tensor = u w: half [rows columns]\ndims = H W\n' ;;
    double | sum) printf 'tensor = u: float [rows columns]\ndims = H W\n' ;;
    mask) printf 'tensor = u w: float [rows columns]\n'
      printf 'tensor = mask: int [rows columns]\ndims = H W\n' ;;
    padded) printf 'tensor = u: float [H=rows + 2 W=columns] ghosts [1 0]\n'
      printf 'tensor = w: float [H=rows W=columns]\n' ;;
    *) printf 'tensor = u w: float [rows columns]\ndims = H W\n' ;;
    esac
    printf 'reach = %s\n' "${reach//,/ }"
    [ "$name" = stream ] || echo 'stream = none'
    [ "$name" != sum ] || echo 'copy = yes'
  done
  printf '[shard all]\nsplit = H\nview = shard\n'
}
try_all() {
  local status=$1
  shift
  gcc -O1 "${flags[@]}" -shared -fPIC -o libtried.so "$here/draft/tried.c" \
    "$host/libcudart.so.13"
  gcc -O1 "${flags[@]}" -o calls_tried "$here/draft/calls_tried.c" \
    ./libtried.so "$host/libcudart.so.13" -lm -Wl,-rpath,"$PWD"
  run "$status" "$sundog" verify -n 2 --device host --rules all.rules \
    --calls 40 "$@" -- ./calls_tried
}
all_kinds_of_functions_are_tried() {
  tried_rules >all.rules <<'X'
deep D:1,H:2,W:0 in u, out w, int planes, int rows, int columns
half H:1,W:0 in u, out w, int rows, int columns
double 0 inout u, int rows, int columns
count 0 in u, out w, int rows, int columns
branch H:3:0,W:0 in u, out w, int rows, int columns
stream H:1,W:0 in u, out w, int rows, int columns, stream
mask H:0:1,W:0 in u, in mask, out w, int rows, int columns
padded H:1,W:0 in u, out w, int rows, int columns
X
  try_all 0
  for found in 'tried_deep: reach D:1' 'tried_deep: reach H:2' \
    'tried_deep: reach W:0' 'tried_half: reach H:1' 'tried_double: reach H:0' \
    'tried_branch: reach H:3:0' 'tried_stream: reach H:1' \
    'tried_mask: reach H:0:1' 'tried_padded: reach H:1'; do
    says out "$found: not disproved"
  done
  says out 'tried_count: reach H:0: not checked: two equal calls have different results'
  lacks out hint
}
all_kinds_of_wrong_reach_are_found() {
  tried_rules >all.rules <<'X'
deep D:0,H:1,W:0 in u, out w, int planes, int rows, int columns
half 0 in u, out w, int rows, int columns
sum H:1,W:0 inout u, int rows, int columns
branch H:2:4,W:0 in u, out w, int rows, int columns
stream 0 in u, out w, int rows, int columns, stream
mask H:1:0,W:0 in u, in mask, out w, int rows, int columns
padded H:1:0,W:0 in u, out w, int rows, int columns
X
  try_all 1
  says err "tried_deep: 'w' changes in D 1 of 3 if 'u' changes 1 away; reach says D:0"
  says err "tried_deep: 'w' changes in H 5 of 10 if 'u' changes 2 away; reach says H:1"
  says err "tried_half: 'w' changes in H 5 of 10 if 'u' changes 1 away"
  # Each row sees all before it.
  says err "tried_sum: 'u' changes in H 5 of 10 if 'u' changes 5 away"
  says err "tried_branch: 'w' changes in H 5 of 10 if 'u' changes 3 away; reach says H:2:4"
  says err "tried_stream: 'w' changes in H 5 of 10 if 'u' changes 1 away"
  says err "tried_mask: 'w' changes in H 5 of 10 if 'u' changes 1 away"
  says err "tried_padded: 'w' changes in H 5 of 10 if 'u' changes 1 away"
  [ "$(grep -c SDG-734 err)" = 8 ]
}
inspect_shows_the_tensors_of_cudnn() {
  gcc "${flags[@]}" -o mixed "$clients/mixed.c" "$libraries/libwave.so" \
    "$host/libcudart.so.13" "$host/libcudnn.so.9" "$host/libcublas.so.13" \
    -Wl,-rpath,"$libraries"
  run 0 "$sundog" inspect --device host -n 2 -o mixed.rules -- ./mixed 16 0
  functions >list
  grep -q '^ 3 wave_shift of libwave.so 1: tensor 1x1x16x9 2: tensor 1x1x16x9 3: rows 16 4: columns 9' list
  says out 'best: H, view shard'
  grep -q '^arguments = ? a1, ? a2, int \*rows, int columns, ' mixed.rules
  grep -q '^tensor = a1 a2: float \[rows columns\]' mixed.rules
  grep -q '^split = H' mixed.rules
}

cases a_right_reach_is_not_disproved a_wrong_reach_is_named \
  a_reach_that_is_too_large_is_a_hint functions_of_the_whole_view_are_tried \
  the_calls_of_functions_are_recorded \
  sections_that_are_not_filled_in_are_refused \
  functions_are_seen_however_they_are_called \
  sections_are_drafted_for_functions a_filled_draft_splits_the_solver \
  all_kinds_of_functions_are_tried all_kinds_of_wrong_reach_are_found \
  inspect_shows_the_tensors_of_cudnn
