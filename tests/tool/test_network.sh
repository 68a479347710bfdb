#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rules that `sundog inspect` drafts for many networks give the results of one
# rank.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
host=$(dirname "$(realpath "$3")") network=$(realpath "$4")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

# array EXTENT,...: writes in.npy with small whole numbers.
array() {
  python3 - "$1" <<'X'
import struct, sys
shape = tuple(map(int, sys.argv[1].split(",")))
count = 1
for extent in shape:
    count *= extent
text = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)
text += " " * (-(11 + len(text)) % 64) + "\n"
values = [((i * i * 7 + i * 13) % 11) - 5 for i in range(count)]
with open("in.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)))
    file.write(text.encode() + struct.pack("<%df" % count, *values))
X
}
# drafts DIM EXTENT,... WORDS...: drafts r.ini, which splits that dimension.
drafts() {
  local dim=$1
  array "$2"
  shift 2
  rm -f r.ini
  run 0 "$sundog" inspect --device host -o r.ini -- "$network" in.npy out.npy "$@"
  mv out seen
  grep -q "^split = $dim:" r.ini || { cat r.ini; return 1; }
}
# works VIEW RANKS DIM EXTENT,... WORDS...: checks that the drafted rules give
# the right result.
works() {
  local view=$1 ranks=$2 dim=$3 index names=(N C H W)
  shift 2
  drafts "$@"
  grep -q "^view = $view" r.ini || { cat r.ini; return 1; }
  [ "$view" = whole ] || ! grep "^conflict of $dim over .*\b$ranks\b.*: " seen
  [[ $2 != *,*,*,*,* ]] || names=(N C D H W)
  for index in "${!names[@]}"; do
    [ "${names[$index]}" != "$dim" ] || break
  done
  shift 2
  run 0 "$sundog" verify -n "$ranks" --device host --rules r.ini --calls 100 \
    --dim "$index" --input in.npy --output out.npy -- "$network" in.npy \
    out.npy "$@"
  says out ' tagged calls with '
  says out " $ranks ranks against one: 0 of "
}

# meshed VIEW MESH SPLIT EXTENT,... WORDS...: checks that rules drafted for a
# mesh, or SPLIT, give the right result. SPLIT has no blanks.
meshed() {
  local view=$1 mesh=$2 split=$3 extents=$4
  shift 4
  array "$extents"
  rm -f r.ini
  run 0 "$sundog" inspect --device host --view "$view" --mesh "$mesh" \
    ${fixed+--split "$fixed"} -o r.ini -- "$network" in.npy out.npy "$@"
  mv out seen
  grep -qF "best: $split, view $view" seen || { cat seen; return 1; }
  mv out.npy alone.npy
  if [ "$view" = whole ]; then
    run 0 "$sundog" run --device host --mesh "$mesh" --rules r.ini -- \
      "$network" in.npy out.npy "$@"
    run 0 "$sundog" diff --rtol 1e-5 --atol 1e-5 alone.npy out.npy
    return
  fi
  run 0 "$sundog" split --mesh "$mesh" --dim "$split" \
    ${parts+--parts "$parts"} in.npy
  run 0 "$sundog" run --device host -v -n "$(ls in.*.npy | wc -l)" \
    --rules r.ini -- "$network" 'in.{rank}.npy' 'out.{rank}.npy' "$@"
  run 0 "$sundog" join --mesh "$mesh" --dim "$split" out.npy 'out.{rank}.npy'
  run 0 "$sundog" diff --rtol 1e-5 --atol 1e-5 alone.npy out.npy
}
meshes() {
  local view
  for view in shard whole; do
    meshed "$view" data=2,y=2 N:data,H:y 4,3,40,24 conv=4,3,1,1 relu conv=2,5,1,2
    grep -qx 'data = 2' r.ini
    grep -q 'axis data=2: N, 2 distinct calls gain' seen
    rm -f in.*.npy out.*.npy
    meshed "$view" y=2,x=2 H:y,W:x 1,3,40,24 conv=4,3,1,1 relu conv=2,3,1,1
    rm -f in.*.npy out.*.npy
    # If the axes' names mean nothing, two dimensions are split rather than one.
    meshed "$view" a=2,b=2 H:a,W:b 2,3,20,24 conv=4,3,1,1 relu conv=2,3,1,1
    rm -f in.*.npy out.*.npy
  done
}
joined_axes() {
  local fixed=H:data+y
  meshed shard data=2,y=2 H:data+y 1,3,40,24 conv=4,3,1,1 relu conv=2,3,1,1
  fixed=H
  meshed whole data=2,y=2 H:data+y 1,3,40,24 conv=4,3,1,1 relu conv=2,3,1,1
}
tensors_with_a_part_of_the_dimensions() {
  # The last tensors have no H, so only the batch is divided.
  meshed shard data=2,y=2 N:data,H:y 4,3,40,24 conv=4,3,1,1 relu pool=2,2 \
    conv=2,3,1,1
  meshed whole data=2,y=2 N:data,H:y 4,3,40,24 conv=4,3,1,1 relu pool=2,2 \
    conv=2,3,1,1
}
the_parts_of_a_chain_on_a_mesh() {
  local parts
  array 2,3,36,32
  run 0 "$sundog" inspect --device host --view shard --mesh data=2,y=2 -o r.ini \
    -- "$network" in.npy out.npy own conv=4,3,2,1 relu conv=2,3,2,1
  grep -q '^N:data,H:y .* N:any H:even/4$' out || { cat out; return 1; }
  grep -q '^; Cut H of the input with .*even/4' r.ini
  parts='N:even H:even/4'
  meshed shard data=2,y=2 N:data,H:y 2,3,36,32 own conv=4,3,2,1 relu \
    conv=2,3,2,1
}
axes_that_nothing_uses() {
  # Six rows and five columns are too few for eight.
  meshed shard q=8,y=2 H:y 1,3,6,5 conv=4,3,1,1 relu conv=2,3,1,1
  says seen 'axis q=8: no section splits over it'
  grep -q '^same = q ' r.ini
}
halos_of_a_mesh() {
  # A 3 x 3 filter on one channel: each of four ranks has 10 x 6 of 20 x 12
  # elements and lacks those around.
  array 1,1,20,12
  run 0 "$sundog" inspect --device host --mesh y=2,x=2 -- "$network" in.npy \
    out.npy conv=1,3,1,1
  tr -s ' ' <out | grep -q "^H:y,W:x 4 $((4 * 4 * (11 * 7 - 10 * 6))) "
}

plain_ones() {
  works shard 3 H 1,3,40,24 conv=4,3,1,1 relu conv=2,5,1,2
  works shard 4 W 1,1,4,200 conv=4,3,1,1 relu conv=2,3,1,1
}
channels_innermost() { works shard 3 H 1,3,40,24 nhwc conv=4,3,1,1 relu conv=2,5,1,2; }
three_dimensions() { works shard 3 D 1,2,24,10,12 conv=4,3,1,1 relu conv=2,3,1,1; }
several_resolutions() {
  works shard 4 H 1,3,64,32 conv=4,3,2,1 relu conv=4,3,2,1 conv=2,3,1,1
}
sizes_that_the_program_works_out() {
  works shard 2 H 1,3,64,32 own conv=4,3,2,1 relu conv=2,3,2,1
  works shard 2 H 1,3,64,32 own conv=4,4,4,0 relu conv=2,2,2,0
  # Sizes of pieces would not add up, so only the whole view is possible.
  works whole 2 H 1,3,40,24 own conv=4,3,1,0
  grep -q "^conflict of H over .*SDG-401" seen
}
ops_that_have_no_rule() {
  works whole 2 H 1,3,40,24 conv=4,3,1,1 relu divide conv=2,3,1,1
  grep -q "^conflict of H over .*SDG-600" seen
}
poolings() {
  works shard 2 H 1,3,40,24 conv=4,3,1,1 relu pool=2,2 conv=2,3,1,1
  works shard 3 H 1,3,61,24 pool=3,2 conv=4,3,1,1 pool=2,3
}
softmax_over_channels() {
  works shard 3 H 1,3,40,24 conv=4,3,1,1 softmax conv=2,3,1,1
}
windows_without_padding() { works shard 2 H 1,3,40,24 conv=4,3,1,0 relu conv=2,3,1,0; }
nothing_but_a_batch() { works shard 4 N 8,3,1,1 conv=4,1,1,0 relu; }
a_batch_of_images() {
  works shard 2 H 2,3,32,32 conv=4,3,1,1 relu conv=2,3,1,1
}

cases plain_ones channels_innermost three_dimensions several_resolutions \
  sizes_that_the_program_works_out ops_that_have_no_rule poolings \
  softmax_over_channels windows_without_padding nothing_but_a_batch \
  a_batch_of_images meshes joined_axes tensors_with_a_part_of_the_dimensions \
  the_parts_of_a_chain_on_a_mesh axes_that_nothing_uses halos_of_a_mesh
