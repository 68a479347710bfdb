#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog inspect` sees the calls of a program, changes nothing, and drafts
# rules that work.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4") pooled=$(realpath "$5") op_case=$(realpath "$6")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 4 --steps 10 --dx 2400 --dt 15 --friction 0"
inspect=(inspect --device host)

the_solvers_calls_are_seen() {
  "$clients/scene" "$bathymetry" 91 120 .
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$clients/shallow" \
    --in level.npy --depth depth.npy --out whole.npy $shallow
  tr -s ' ' <out >words
  grep -q '^ 10 cudnnConvolutionForward float x 1x1x91x120 w 2x1x5x5 y 1x2x91x120 window 5x5 pad 2x2$' words
  grep -q '^ 10 cudnnConvolutionForward float x 1x2x91x120 w 1x2x5x5 y 1x1x91x120 window 5x5 pad 2x2$' words
  grep -q '^ 11 cudnnOpTensor float ' words
  grep -q "needs libcudnn.so.9" words
  grep -q "used $host/libcudnn.so.9" words
  # Filters of five rows on one and two channels: two rows in each direction at
  # each inner border.
  rows=$((10 * 2 * 2 * (1 + 2) + 2 * 2 * 1))
  grep -q "^H 2 $((2 * 2 * (1 + 2) * 120 * 4)) $((rows * 120 * 4)) 45 any" words
  says out 'splits in the shard view, 10 steps'
  lacks out conflict
  says out 'best: H, view shard'
  silent err
}
drafted_rules_run_as_they_are() {
  "$clients/scene" "$bathymetry" 91 120 .
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$clients/shallow" \
    --in level.npy --depth depth.npy --out whole.npy $shallow
  predicted=$(tr -s ' ' <out | sed -n 's/^H 2 [0-9]* \([0-9]*\) .*/\1/p')
  run 0 "$sundog" split --dim H -n 2 level.npy
  run 0 "$sundog" split --dim H -n 2 depth.npy
  run 0 "$sundog" run --device host -n 2 --rules r.ini -- sh -c \
    'cp "$SUNDOG_RULES" seen; exec "$@"' - "$clients/shallow" \
    --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' --out 'o.{rank}.npy' \
    $shallow
  run 0 "$sundog" join joined.npy 'o.{rank}.npy'
  run 0 "$sundog" diff joined.npy whole.npy
  # The run exchanged the bytes that inspect printed.
  run 0 "$sundog" run --device host -v -n 2 --rules r.ini -- \
    "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'o.{rank}.npy' $shallow
  moved=$(sed -n 's/^field cudnnConvolutionForward *//p; /^total/q' err | awk '{print $3}')
  awk -v a="$moved" -v b="$predicted" \
    'BEGIN { d = a - b / 1e6; exit !(d < 6e-4 && d > -6e-4) }'
}
long_words_do_not_spoil_the_draft() {
  local long
  long=$(printf 'folder-%.0s' $(seq 30))
  mkdir "$long"
  cp "$pooled" "$long/pooled"
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$long/pooled" 3 exit
  run 125 "$sundog" run --device host -n 1 --rules r.ini -- true
  [ "$(grep -o 'SDG-...' err)" = SDG-717 ] # the rules are read
}
the_program_is_untouched() {
  LD_LIBRARY_PATH=$host "$pooled" 3 exit >alone
  run 0 "$sundog" "${inspect[@]}" -- "$pooled" 3 exit
  grep -qxF "$(cat alone)" out
  export SUNDOG_SPLIT=H SUNDOG_VIEW=shard SUNDOG_RANK=1 SUNDOG_SIZE=2
  run 0 "$sundog" "${inspect[@]}" -- "$pooled" 3 exit
  grep -qxF "$(cat alone)" out
  run 7 "$sundog" "${inspect[@]}" -- sh -c '"$0" 1 exit; exit 7' "$pooled"
  says out cudnnPoolingForward
}
pooling_is_seen() {
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$pooled" 5 exit
  tr -s ' ' <out >words
  grep -qE '^ 5 cudnnPoolingForward( \(no rule\))? float x 1x4x32x32 y 1x4x16x16 window 2x2 stride 2x2$' words
  grep -qE '^ 5 cudnnPoolingForward( \(no rule\))? float x 1x4x16x16 y 1x4x1x1 window 16x16 stride 16x16$' words
  grep -q '^ 5 cudnnActivationForward float x 1x4x32x32 y 1x4x32x32$' words
  if grep -q 'no rule' words; then
    says out 'this version has no rule for it (SDG-600)'
    # Every rank pools all rows.
    says out 'best: H, view whole'
    grep -q '^view = whole' r.ini
  else
    grep -q '^window = global' r.ini
  fi
  grep -q '^match = H>=16$' r.ini
  # The rules can be read, even if nothing matches them.
  run 125 "$sundog" run --device host -n 2 --rules r.ini -- true
  says err SDG-717
}
rules_for_the_whole_view_run_as_they_are() {
  "$clients/scene" "$bathymetry" 91 120 .
  run 0 "$sundog" "${inspect[@]}" --view whole -o r.ini -- "$clients/shallow" \
    --in level.npy --depth depth.npy --out whole.npy $shallow
  run 0 "$sundog" run --device host -n 3 --rules r.ini -- "$clients/shallow" \
    --in level.npy --depth depth.npy --out out.npy $shallow
  cmp whole.npy out.npy
  # Ops without a rule between convolutions.
  LD_LIBRARY_PATH=$host "$pooled" 5 exit >alone
  run 0 "$sundog" "${inspect[@]}" --view whole -o p.ini -- "$pooled" 5 exit
  run 0 "$sundog" run --device host -n 2 --rules p.ini -- "$pooled" 5 exit
  cmp alone out
}
sums_of_the_program_are_of_the_whole() {
  # cuBLAS computes values of vectors, which would differ for pieces.
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$clients/solver_habits" alone.npy 24 20 4
  says out 'best: H, view whole'
  grep -q '^conflict of H over 2, 4, 8: cublasNrm2Ex ' out
  run 0 "$sundog" run --device host -n 3 --rules r.ini -- \
    "$clients/solver_habits" ranks.npy 24 20 4
  # Values of pieces are rounded in another order.
  run 0 "$sundog" diff --rtol 2e-6 --atol 2e-6 alone.npy ranks.npy
  run 0 "$sundog" "${inspect[@]}" --view shard -o r.ini -- \
    "$clients/solver_habits" again.npy 24 20 4
  cmp alone.npy again.npy
  grep -q '^; conflict: cublasNrm2Ex ' r.ini
}
products_of_matrices_are_of_the_whole() {
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$clients/mixed" alone.npy 24 20
  grep -q '^conflict of H over 2, 4, 8: cublasSgemm_v2 ' out
  says out 'best: H, view whole'
  run 0 "$sundog" run --device host -n 2 --rules r.ini --ranks-output others \
    -- "$clients/mixed" 'ranks.{rank}.npy' 24 20
  run 0 "$sundog" diff --rtol 1e-5 --atol 1e-6 alone.npy ranks.1.npy
}
tokens_of_a_transformer_are_drafted() {
  run 0 "$sundog" "${inspect[@]}" -o r.ini -- "$clients/processor" --steps 3
  cp out seen
  grep '^step' out >alone
  tr -s ' ' <seen >words
  grep -q '^ 6 cublasSgemm_v2 M 24 N 50 K 8 float a 8x24 b 50x8 c 50x24$' words
  grep -q '^ 6 cudnnMultiHeadAttnForward float q 50x1x1x8 .* window 5,5$' words
  says out 'best: SEQ, view shard'
  predicted=$(sed -n 's/^SEQ 2 [0-9]* \([0-9]*\) .*/\1/p' words | head -n 1)
  for line in 'match = SEQ=50 BATCH' 'window = 5,5' 'match = C=50' \
    'match = M=24 N=50 K=8' 'match = M=8 N=24 K=50' 'split = K:ranks' \
    'a = K:ranks' 'b = K:ranks' 'a = replicated' 'b = N:ranks'; do
    grep -qxF "$line" r.ini
  done
  [ "$(grep -c '^sizes = piece ' r.ini)" = "$(grep -c '^match = M=' r.ini)" ]
  # The rules run and move the bytes that inspect printed, plus the sums of
  # ReduceTensor.
  run 0 "$sundog" run --device host -n 2 -v --rules r.ini -- \
    "$clients/processor" --steps 3 --parts 25,25 --part '{rank}'
  [ "$(grep -c '^step' out)" = 6 ]
  grep '^step' out | sort -u | awk 'NR == FNR { right[$2] = $4; next }
    { off = ($4 - right[$2]) / $4; if (off * off > 1e-10) exit 1 }' alone -
  moved=$(awk '$2 ~ /Attn|gemm/ { sum += $5 }
    $1 == "total" { exit } END { printf "%.0f", sum * 1e6 }' err)
  [ "$moved" = "$predicted" ]
  # The whole view.
  run 0 "$sundog" "${inspect[@]}" --view whole -o w.ini -- \
    "$clients/processor" --steps 3
  lacks w.ini 'window ='
  run 0 "$sundog" run --device host -n 3 -v --rules w.ini -- \
    "$clients/processor" --steps 3
  grep -q '^tokens-. cudnnMultiHeadAttnBackwardData  *window' err
  grep '^step' out | awk 'NR == FNR { right[$2] = $4; next }
    { off = ($4 - right[$2]) / $4; if (off * off > 1e-10) exit 1 }' alone -
}
masks_of_attention_in_graphs_are_seen() {
  local mask line left right shift
  for mask in none causal right left band bottom; do
    SUNDOG_HOST_MODEL=any run 0 "$sundog" "${inspect[@]}" -- \
      "$clients/graph_attention" S 5 1 list whole forward new $mask
    line=$(grep '^5: right: forward' out)
    # Bounds count columns from a row's, or with the last row at the last column.
    right=$(sed -n 's/.* r \([0-9]*\).*/\1/p' <<<"$line")
    left=$(sed -n 's/.* l \([0-9]*\).*/\1/p' <<<"$line")
    shift=$(sed -n 's/.* s \([0-9]*\)x\([0-9]*\) .*/\2 - \1/p' <<<"$line")
    [[ $line = *bottom* ]] || shift=0
    right=${right:+$((right + shift))}
    left=${left:+$((left - 1 - (shift)))}
    tr -s ' ' <out | grep -q " 1 attention .* window ${left:-all},${right:-all}$"
  done
}
products_alone_are_said_to_be_left_out() {
  run 125 "$sundog" "${inspect[@]}" -o r.ini -- "$clients/linear" --steps 2
  tr -s ' ' <out | grep -q '^ 2 cublasSgemm_v2 M 32 N 60 K 24 float '
  says out 'for products of matrices alone nothing is drafted'
  [ ! -e r.ini ]
}
products_of_cublas_lt_are_seen() {
  # A ReLU follows.
  {
    printf 'case\nmemory a 120\nmemory b 240\nmemory c 288\n'
    echo "call matmul_lt a=a b=b c=c ta=N tb=T type=float ctype=float" \
      "alpha=1 beta=0 follow=relu rows=0 ondevice=0 halves=0 m=6 n=12 k=5" \
      "batch=0 lda=6 sa=0 ldb=12 sb=0 ldc=6 sc=0"
    printf 'run\nrun\n'
  } >script
  run 125 "$sundog" "${inspect[@]}" -o r.ini -- "$op_case" script /dev/zero o
  tr -s ' ' <out |
    grep -q '^ 2 cublasLtMatmul M 6 N 12 K 5 BATCH 1 float a 5x6 b 5x12 d 12x6$'
}
the_view_and_dimension_can_be_chosen() {
  run 64 "$sundog" "${inspect[@]}" --view none -- "$pooled" 2 exit
  run 0 "$sundog" "${inspect[@]}" --view shard -o r.ini -- "$pooled" 2 exit
  grep -q '^view = shard' r.ini
  if grep -q 'no rule' out; then
    grep -q '^; conflict: cudnnPoolingForward' r.ini
  fi

  run 0 "$sundog" "${inspect[@]}" --split W --steps 1 -o r.ini -- "$pooled" 2 exit
  grep -q '^split = W:' r.ini
  run 125 "$sundog" "${inspect[@]}" --split N -o n.ini -- "$pooled" 2 exit
  [ ! -e n.ini ] # a batch of one
  run 64 "$sundog" "${inspect[@]}" --split C -- "$pooled" 2 exit
}
ranks_and_meshes_that_do_not_fit_are_refused() {
  run 0 "$sundog" "${inspect[@]}" -n 3 -o r.ini -- "$pooled" 2 exit
  tr -s ' ' <out | grep -q '^H 3 '
  grep -q '^split = H:ranks' r.ini
  run 64 "$sundog" "${inspect[@]}" -n 3 --mesh data=2,y=2 -- "$pooled" 2 exit
  says err '"data=2,y=2" lays out 4 ranks, but the job has 3'
  run 64 "$sundog" "${inspect[@]}" --mesh data=2,y -- "$pooled" 2 exit
  says err SDG-100
  run 64 "$sundog" "${inspect[@]}" --mesh '' -- "$pooled" 2 exit
  run 64 "$sundog" "${inspect[@]}" --mesh y=1 -- "$pooled" 2 exit
  for ranks in 0 1 -2 2000 99999999999 x ''; do
    run 64 "$sundog" "${inspect[@]}" -n "$ranks" -- "$pooled" 2 exit
    says err 'from 2 to'
  done
  for split in Q H:z N:data,H:data H:data,H:y N,H SEQ:data,H:y '' N:data,H; do
    run 64 "$sundog" "${inspect[@]}" --mesh data=2,y=2 --split "$split" -- \
      "$pooled" 2 exit
    says err --split
  done
  run 64 "$sundog" "${inspect[@]}" --split H:y -- "$pooled" 2 exit
  says err '--mesh data=2,y=4'
}
tokens_on_a_mesh_are_drafted() {
  run 0 "$sundog" "${inspect[@]}" --mesh data=2,seq=2 --view whole -o w.ini -- \
    "$clients/processor" --steps 2
  grep '^step' out >alone
  says out 'best: SEQ:data+seq, view whole'
  run 0 "$sundog" run --device host -n 4 --rules w.ini -- \
    "$clients/processor" --steps 2
  grep '^step' out | awk 'NR == FNR { right[$2] = $4; next }
    { off = ($4 - right[$2]) / $4; if (off * off > 1e-10) exit 1 }' alone -
  run 0 "$sundog" "${inspect[@]}" --mesh data=2,seq=2 --view shard -o r.ini -- \
    "$clients/processor" --steps 2
  run 0 "$sundog" run --device host -n 4 --rules r.ini -- \
    "$clients/processor" --steps 2 --parts 13,12,12,13 --part '{rank}'
  grep '^step' out | sort -u | awk 'NR == FNR { right[$2] = $4; next }
    { off = ($4 - right[$2]) / $4; if (off * off > 1e-10) exit 1 }' alone -
}
distinct_calls_are_told_apart() {
  # The equivalence tester's client makes three convolutions, the second one
  # twice.
  convolution() { # X Y W WORDS...: the extents, and what else the call is told
    echo "case"
    echo "packed x float nchw $1 $((${1//x/*} * 4))"
    echo "filter w float nchw $3 $((${3//x/*} * 4))"
    echo "packed y float nchw $2 $((${2//x/*} * 4))"
    echo "call conv_forward x=x w=w y=y ${*:4}"
    echo "run"
  }
  {
    convolution 1x3x40x30 1x2x40x30 2x3x3x3 stride=1x1 dilation=1x1 pad=1x1
    convolution 1x3x40x30 1x2x20x15 2x3x3x3 stride=2x2 dilation=1x1 pad=1x1
    echo "run"
    convolution 1x3x40x30x9 1x2x40x30x9 2x3x5x3x3 stride=1x1x1 dilation=2x1x1 \
      pad=4x1x1
  } >script
  run 0 "$sundog" "${inspect[@]}" -- "$op_case" script /dev/zero out.bin
  tr -s ' ' <out >words
  grep -q '^ 1 cudnnConvolutionForward float x 1x3x40x30 w 2x3x3x3 y 1x2x40x30 window 3x3 pad 1x1$' words
  grep -q '^ 2 cudnnConvolutionForward float x 1x3x40x30 w 2x3x3x3 y 1x2x20x15 window 3x3 stride 2x2 pad 1x1$' words
  grep -q '^ 1 cudnnConvolutionForward float x 1x3x40x30x9 w 2x3x5x3x3 y 1x2x40x30x9 window 5x3x3 pad 4x1x1 dilation 2x1x1$' words
}
# late.py: a program that loads its libraries with dlopen.
late() {
  cat >late.py <<'X'
import ctypes
rt, dnn = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcudnn.so.9")
handle, desc, memory = (ctypes.c_void_p() for _ in range(3))
assert dnn.cudnnCreate(ctypes.byref(handle)) == 0
assert dnn.cudnnCreateTensorDescriptor(ctypes.byref(desc)) == 0
assert dnn.cudnnSetTensor4dDescriptor(desc, 0, 0, 1, 2, 8, 6) == 0
assert rt.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4 * 2 * 8 * 6)) == 0
value = ctypes.c_float(3)
for _ in range(4):
    assert dnn.cudnnSetTensor(handle, desc, memory, ctypes.byref(value)) == 0
X
}
libraries_that_are_loaded_late_are_seen() {
  late
  run 0 "$sundog" "${inspect[@]}" -- python3 late.py
  tr -s ' ' <out | grep -q '^ 4 cudnnSetTensor float y 1x2x8x6$'
}
splits_without_a_gain_are_not_drafted() {
  late
  run 125 "$sundog" "${inspect[@]}" -o r.ini -- python3 late.py
  says out 'no rules are drafted: of the calls that this version can split, only elementwise'
  lacks out 'best:'
  [ ! -e r.ini ]
}
managed_memory_is_reported() {
  late
  sed -i 's/cudaMalloc(\(.*\)) == 0/cudaMallocManaged(\1, 1) == 0/' late.py
  grep -q cudaMallocManaged late.py
  run 0 "$sundog" "${inspect[@]}" -- python3 late.py
  tr -s ' ' <out | grep -q '^ 4 cudnnSetTensor float y 1x2x8x6 (managed)$'
  says out '1 tensors of these calls are in memory of cudaMallocManaged'
}
calls_that_are_not_recorded_are_reported() {
  late
  sed -e 's/range(4)/range(12400)/' \
    -e 's/^    assert/    dnn.cudnnSetTensor4dDescriptor(desc, 0, 0, 1, 1, 1 + _ % 4, 1 + _ \/\/ 4)\n    assert/' \
    -e 's/8 \* 6))/8 * 40000))/' late.py >many.py
  run 0 "$sundog" "${inspect[@]}" -- python3 many.py
  says out 'the later ones are left out'
}
several_processes_are_added_up() {
  run 0 "$sundog" "${inspect[@]}" -- sh -c '"$0" 1 exit; "$0" 2 exit' "$pooled"
  says out '2 processes called cuDNN'
  tr -s ' ' <out | grep -q '^ 3 cudnnConvolutionForward '
}
processes_that_end_badly_leave_their_calls() {
  run 0 "$sundog" "${inspect[@]}" -- "$pooled" 2 _exit
  says out 'counts are 1'
  says out cudnnPoolingForward
  ulimit -c 0
  run 134 "$sundog" "${inspect[@]}" -- "$pooled" 2 abort
  says out cudnnPoolingForward
}
a_signal_reaches_the_program() {
  env --default-signal=INT "$sundog" "${inspect[@]}" -- \
    sh -c 'trap "echo told; exit 9" TERM INT; echo $$ >pid; while :; do sleep 0.1; done' >out &
  local pid=$! status=0
  until [ -s pid ]; do sleep 0.05; done
  kill -TERM "$pid"
  wait "$pid" || status=$?
  [ "$status" -eq 9 ]
  says out told
  gone "$(cat pid)"
}
a_program_without_cudnn_is_an_error() {
  run 125 "$sundog" "${inspect[@]}" -- true
  says err 'no cuDNN call of the program was seen'
  run 1 "$sundog" "${inspect[@]}" -- false
  run 127 "$sundog" "${inspect[@]}" -- ./nowhere
  run 64 "$sundog" "${inspect[@]}"
}

cases the_solvers_calls_are_seen drafted_rules_run_as_they_are \
  long_words_do_not_spoil_the_draft \
  the_program_is_untouched pooling_is_seen \
  rules_for_the_whole_view_run_as_they_are \
  sums_of_the_program_are_of_the_whole \
  products_of_matrices_are_of_the_whole \
  tokens_of_a_transformer_are_drafted masks_of_attention_in_graphs_are_seen \
  products_alone_are_said_to_be_left_out products_of_cublas_lt_are_seen \
  the_view_and_dimension_can_be_chosen \
  ranks_and_meshes_that_do_not_fit_are_refused tokens_on_a_mesh_are_drafted \
  libraries_that_are_loaded_late_are_seen \
  splits_without_a_gain_are_not_drafted managed_memory_is_reported \
  calls_that_are_not_recorded_are_reported distinct_calls_are_told_apart \
  several_processes_are_added_up \
  processes_that_end_badly_leave_their_calls a_signal_reaches_the_program \
  a_program_without_cudnn_is_an_error
