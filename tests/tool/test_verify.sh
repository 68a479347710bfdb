#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog verify` compares one rank with several.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") op_case=$(realpath "$5")
bathymetry=$(realpath "$here/../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 4 --steps 10 --dx 2400 --dt 15 --friction 0"
split=(--device host --split H --view shard)

# verify STATUS WORDS...: verifies the solver with these words.
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
  cmp kept/many0.0.npy kept/many0.2.npy
  printf '[shard all]\nsplit = W\nview = whole\n' >r.ini
  verify 0 -n 2 --device host --rules r.ini
  [ ! -e out.npy ]
}
runs_that_differ_are_told() {
  # Nothing is exchanged, so pieces do not depend on each other.
  printf '[shard none]\nmatch = H>=9999\nsplit = H\nview = shard\n' >r.ini
  printf '[local all]\n' >>r.ini
  verify 125 -n 2 --device host --rules r.ini
  says err SDG-717
  says err 'the run on 2 ranks failed'
  # The program states the number of ranks itself.
  cat >prog <<'X'
#!/bin/sh
printf '{"rank":0,"matched":1,"calls":[]}' >"${SUNDOG_REPORT:-.}/rank-$SUNDOG_RANK.json"
cp "$1" "$2"
[ "$SUNDOG_SIZE" = 1 ] || printf X | dd of="$2" bs=1 seek=130 conv=notrunc 2>/dev/null
X
  chmod +x prog
  "$clients/scene" "$bathymetry" 10 12 .
  run 1 "$sundog" verify -n 2 "${split[@]}" --rtol 0 --input level.npy \
    --output o.npy -- ./prog level.npy o.npy
  says out 'o.npy: 2 ranks against one: 2 of 120 elements differ'
  says out 'first difference at (0, 0)'
  run 0 "$sundog" verify -n 2 "${split[@]}" --atol 1e30 --input level.npy \
    --output o.npy -- ./prog level.npy o.npy
}
calls_are_compared() {
  verify 0 -n 3 "${split[@]}" --calls 500 --keep kept
  says out 'out.npy: 3 ranks against one: 0 of 10920 elements differ'
  # Three calls in each of ten steps, and the calls before.
  says out '34 tagged calls with 34 outputs, 633360 elements: none differs'
  verify 0 -n 3 "${split[@]}" --calls 5 --keep kept
  says out '5 tagged calls with 5 outputs'
  # Only the calls, with another strategy, over a mesh.
  "$clients/scene" "$bathymetry" 91 120 .
  run 0 "$sundog" verify -n 4 --device host --view shard --split H:y,W:x \
    --mesh y=2,x=2 --strategy extend --calls 100 --input level.npy \
    --input depth.npy -- "$clients/shallow" --in level.npy --depth depth.npy \
    --out /dev/null $shallow
  says out '34 tagged calls with 34 outputs'
}
whole_views_are_compared() {
  verify 0 -n 3 --device host --split H --view whole --calls 500
  says out '34 tagged calls with 34 outputs, 633360 elements: none differs'
  says out 'out.npy: 3 ranks against one: 0 of 10920 elements differ'
}
# pieces PROGRAM PARTS WORDS...: ./prog works on all of it where it is alone.
pieces() {
  printf '#!/bin/sh\n[ "$SUNDOG_SIZE" = 1 ] || set -- "$@" --parts %s --part $SUNDOG_RANK\nexec "%s" "$@"\n' \
    "$2" "$clients/$1" >prog
  chmod +x prog
}
products_are_compared() {
  # A program without cuDNN; sums are made in another order.
  run 0 "$sundog" verify -n 3 --device host --rules "$here/../clients/nets/linear.rules" \
    --calls 200 -- "$clients/linear" --steps 6
  says out '42 tagged calls with 42 outputs, 53760 elements: none differs'
  pieces linear 11,11,10
  run 0 "$sundog" verify -n 3 --device host \
    --rules "$here/../clients/nets/linear_pieces.rules" --calls 200 -- ./prog --steps 6
  says out '12 tagged calls with 12 outputs, 43200 elements: none differs'
  # Terms that are left to the program are no sums.
  sed 's/^split = K:y/&\nsum = no/' "$here/../clients/nets/linear_pieces.rules" >no.ini
  grep -q 'sum = no' no.ini
  run 125 "$sundog" verify -n 3 --device host --rules no.ini --calls 200 \
    -- ./prog --steps 6
  lacks out 'first difference'
}
transformers_are_compared() {
  # Attention, products, and norms, of which several outputs have one role.
  pieces processor 20,13,17
  run 0 "$sundog" verify -n 3 --device host --rules "$here/../clients/nets/processor.rules" \
    --view shard --calls 1000 -- ./prog --steps 3
  says out '288 tagged calls with 348 outputs, 186873 elements: none differs'
  grep -v '^sizes' "$here/../clients/nets/processor.rules" >whole.ini
  run 0 "$sundog" verify -n 3 --device host --rules whole.ini \
    --view whole --calls 1000 -- \
    "$clients/processor" --steps 3
  says out '294 tagged calls with 354 outputs, 215481 elements: none differs'
}
products_of_cublas_lt_are_compared() {
  {
    printf 'case\nmemory a 120\nmemory b 240\nmemory c 288\n'
    echo "call matmul_lt a=a b=b c=c ta=N tb=T type=float ctype=float" \
      "alpha=1 beta=0 follow=relu rows=0 ondevice=0 halves=0 m=6 n=12 k=5" \
      "batch=0 lda=6 sa=0 ldb=12 sb=0 ldc=6 sc=0"
    echo run
  } >script
  head -c 648 /dev/zero | tr '\0' A >memory # 12.078 everywhere
  printf '[mesh]\ny = 2\n[shard p]\nmatch = M=6 N K\nsplit = M:y\nview = whole\n' >r.ini
  run 0 "$sundog" verify -n 2 --device host --rules r.ini --calls 9 -- \
    "$op_case" script memory o
  says out '1 tagged calls with 1 outputs, 72 elements: none differs'
  # Several ranks have other numbers.
  printf '#!/bin/sh\n[ "$SUNDOG_SIZE" = 1 ] && exec "%s" script /dev/zero o\nexec "%s" script memory o\n' \
    "$op_case" "$op_case" >prog
  chmod +x prog
  run 1 "$sundog" verify -n 2 --device host --rules r.ini --calls 9 -- ./prog
  grep -q '^first difference: call 1 cublasLtMatmul, d at (0, 0, 0) of the whole: rank 0 of 2 has 729.44' out
}
the_first_call_that_differs_is_named() {
  # Several ranks take longer steps than one.
  cat >prog <<'X'
#!/bin/sh
dt=15
[ "$SUNDOG_SIZE" = 1 ] || dt=16
exec "$0.real" "$@" --dt $dt
X
  chmod +x prog
  ln -s "$clients/shallow" prog.real
  "$clients/scene" "$bathymetry" 91 120 .
  run 1 "$sundog" verify -n 3 "${split[@]}" --calls 500 --input level.npy \
    --input depth.npy -- ./prog --in level.npy --depth depth.npy \
    --out /dev/null ${shallow/--dt 15/}
  grep -qE 'first difference: call [0-9]+ cudnn[A-Za-z]+, y at \(0, [0-9]+, [0-9]+, [0-9]+\) of the whole: rank [0-2] of 3 has .*, one rank ' out
  run 0 "$sundog" verify -n 3 "${split[@]}" --calls 500 --atol 1e30 \
    --input level.npy --input depth.npy -- ./prog --in level.npy \
    --depth depth.npy --out /dev/null ${shallow/--dt 15/}
}
runs_that_fail_are_trouble() {
  run 125 "$sundog" verify -n 2 "${split[@]}" --output o.npy -- false o.npy
  says err 'SDG-730'
  says err 'the run on one rank failed'
  run 64 "$sundog" verify -n 2 "${split[@]}" --output o.npy
  run 64 "$sundog" verify "${split[@]}" --output o.npy -- true
  run 64 "$sundog" verify -n 2 "${split[@]}" -- true
  run 64 "$sundog" verify -n two "${split[@]}" --calls 3 -- true
  run 64 "$sundog" verify -n 2 "${split[@]}" --calls 3x -- true
  run 64 "$sundog" verify -n 2 "${split[@]}" --calls 3 --rtol -1 -- true
}
rounding_is_allowed_by_default() {
  # The first element of several ranks is so much larger, of the largest, 2^10.
  cat >prog <<'X'
#!/bin/sh
printf '{"rank":0,"matched":1,"calls":[]}' >"${SUNDOG_REPORT:-.}/rank-$SUNDOG_RANK.json"
cp "$1" "$2"
[ "$SUNDOG_SIZE" = 1 ] || [ "$SUNDOG_RANK" = 1 ] ||
  printf "$(cat bytes)" | dd of="$2" bs=1 seek=128 conv=notrunc 2>/dev/null
X
  chmod +x prog
  { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"
    printf '\0\0\200\77\0\0\200\104'; } >f.npy # 1, 1024
  local words=(-n 2 "${split[@]}" --input f.npy --output o.npy)
  printf '\\0\\0\\240\\77' >bytes # 1.25: 1.2e-4 of 1024 is 0.125
  run 1 "$sundog" verify "${words[@]}" -- ./prog f.npy o.npy
  says out '1 of 2 elements differ, 1 by more than rounding'
  says out 'largest absolute difference 0.25 at (0, 0): 1.25 and 1'
  printf '\\0\\0\\210\\77' >bytes # 1.0625
  run 0 "$sundog" verify "${words[@]}" -- ./prog f.npy o.npy
  says out '1 of 2 elements differ, 0 by more than rounding'
  says out 'largest absolute difference 0.0625'
  run 1 "$sundog" verify "${words[@]}" --rtol 0 -- ./prog f.npy o.npy
}
names_may_be_spelt_in_another_way() {
  "$clients/scene" "$bathymetry" 31 40 .
  run 0 "$sundog" verify -n 2 "${split[@]}" --input level.npy \
    --input "$PWD/depth.npy" --output out.npy -- "$clients/shallow" \
    --in ./level.npy --depth=.//depth.npy --out "$PWD/./out.npy" $shallow
  says out '0 of 1240 elements differ'
  [ ! -e out.npy ]
  run 125 "$sundog" verify -n 2 "${split[@]}" --input level.npy \
    --output other.npy -- "$clients/shallow" --in level.npy --depth depth.npy \
    --out out.npy $shallow
  says err 'no word of the program is the --output other.npy'
  [ ! -e out.npy ]
}
calls_without_a_tag_are_told() {
  # The first of two products is of another M.
  {
    printf 'case\nmemory a 160\nmemory b 160\nmemory c 256\n'
    for m in 6 8; do
      echo "call matmul_lt a=a b=b c=c ta=N tb=T type=float ctype=float" \
        "alpha=1 beta=0 follow=relu rows=0 ondevice=0 halves=0 m=$m n=8 k=5" \
        "batch=0 lda=8 sa=0 ldb=8 sb=0 ldc=8 sc=0"
    done
    echo run
  } >script
  head -c 576 /dev/zero >memory
  printf '[mesh]\ny = 2\n[shard p]\nmatch = M=8 N K\nsplit = M:y\nview = whole\n' >r.ini
  run 125 "$sundog" verify -n 2 --device host --rules r.ini --calls 1 -- \
    "$op_case" script memory o
  says err 'none of the first 1 calls is tagged'
  says err '--calls'
  run 0 "$sundog" verify -n 2 --device host --rules r.ini --calls 2 -- \
    "$op_case" script memory o
  says out '1 tagged calls with 1 outputs'
}

cases equal_runs_are_equal pieces_and_meshes_are_passed_on \
  every_rank_of_the_whole_view_has_whole_files \
  calls_are_compared whole_views_are_compared \
  products_are_compared transformers_are_compared \
  products_of_cublas_lt_are_compared \
  the_first_call_that_differs_is_named \
  runs_that_differ_are_told rounding_is_allowed_by_default \
  names_may_be_spelt_in_another_way calls_without_a_tag_are_told \
  runs_that_fail_are_trouble
