#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog verify`: one rank against several.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") opcase=$(realpath "$5")
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
  cmp kept/many0.0.npy kept/many0.2.npy
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
calls_are_compared() {
  verify 0 -n 3 "${split[@]}" --calls 500 --keep kept
  says out 'out.npy: 3 ranks against one: 0 of 10920 elements differ'
  # Of each of ten steps three calls, and what comes before.
  says out '34 tagged calls with 34 outputs, 633360 elements: none differs'
  verify 0 -n 3 "${split[@]}" --calls 5 --keep kept
  says out '5 tagged calls with 5 outputs'
  # Nothing but the calls, by another strategy, over a mesh.
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
  run 0 "$sundog" verify -n 3 --device host --rules "$here/../clients/linear.rules" \
    --calls 200 --rtol 1e-4 --atol 1e-5 -- "$clients/linear" --steps 6
  says out '42 tagged calls with 42 outputs, 53760 elements: none differs'
  pieces linear 11,11,10
  run 0 "$sundog" verify -n 3 --device host \
    --rules "$here/../clients/linear_pieces.rules" --calls 200 --rtol 1e-4 \
    --atol 1e-5 -- ./prog --steps 6
  says out '12 tagged calls with 12 outputs, 43200 elements: none differs'
  # Terms that are left to the program are no sums.
  sed 's/^split = K:y/&\nsum = no/' "$here/../clients/linear_pieces.rules" >no.ini
  grep -q 'sum = no' no.ini
  run 125 "$sundog" verify -n 3 --device host --rules no.ini --calls 200 \
    --rtol 1e-4 --atol 1e-5 -- ./prog --steps 6
  lacks out 'first difference'
}
transformers_are_compared() {
  # Attention, products, and norms, of which several outputs have one role.
  pieces processor 20,13,17
  run 0 "$sundog" verify -n 3 --device host --rules "$here/../clients/processor.rules" \
    --view shard --calls 1000 --rtol 1e-3 --atol 1e-5 -- ./prog --steps 3
  says out '288 tagged calls with 348 outputs, 186873 elements: none differs'
  grep -v '^sizes' "$here/../clients/processor.rules" >whole.ini
  run 0 "$sundog" verify -n 3 --device host --rules whole.ini \
    --view whole --calls 1000 --rtol 1e-3 --atol 1e-5 -- \
    "$clients/processor" --steps 3
  says out '294 tagged calls with 354 outputs, 215481 elements: none differs'
}
products_of_cublaslt_are_compared() {
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
    "$opcase" script memory o
  says out '1 tagged calls with 1 outputs, 72 elements: none differs'
  # Several ranks have other numbers.
  printf '#!/bin/sh\n[ "$SUNDOG_SIZE" = 1 ] && exec "%s" script /dev/zero o\nexec "%s" script memory o\n' \
    "$opcase" "$opcase" >prog
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
  run 125 "$sundog" verify -n 2 "${split[@]}" --output o.npy -- false
  says err 'SDG-730'
  says err 'the run on one rank failed'
  run 64 "$sundog" verify -n 2 "${split[@]}" --output o.npy
  run 64 "$sundog" verify "${split[@]}" --output o.npy -- true
  run 64 "$sundog" verify -n 2 "${split[@]}" -- true
}

cases equal_runs_are_equal pieces_and_meshes_are_passed_on \
  every_rank_of_the_whole_view_has_whole_files \
  calls_are_compared whole_views_are_compared \
  products_are_compared transformers_are_compared \
  products_of_cublaslt_are_compared \
  the_first_call_that_differs_is_named \
  runs_that_differ_are_told runs_that_fail_are_trouble
