#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the shard view sundog says if every rank has read the whole input, and says
# nothing of pieces.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"
here=$(realpath -s "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

scene() { # ROWS: a level and a depth that vary, from the bathymetry
  "$clients/scene" "$here/../clients/bathymetry.npy" "$1" 120 .
}
solved() { # RANKS LEVEL DEPTH WORDS...
  local ranks=$1 level=$2 depth=$3
  shift 3
  run 0 "$sundog" run -n "$ranks" --device host --split H --view shard \
    --piece-values local "$@" -- "$clients/shallow" --in "$level" \
    --depth "$depth" --out 'out.{rank}.npy' --order 4 --steps 4 --dx 2400 \
    --dt 15 --friction 0
}
text='all ranks have the same values in their pieces of x'

a_whole_input_on_every_rank_is_said_once() {
  scene 48
  solved 3 level.npy depth.npy
  says err "$text"
  says err 'sundog split'
  [ "$(grep -c "$text" err)" = 1 ]
  # Along both axes of a mesh, too.
  solved 4 level.npy depth.npy --split H:y,W:x --mesh y=2,x=2
  says err "$text"
}
pieces_are_not_spoken_of() {
  local parts
  scene 48
  for parts in 16,16,16 20,9,19; do
    for file in level depth; do
      run 0 "$sundog" split --parts $parts $file.npy
    done
    solved 3 'level.{rank}.npy' 'depth.{rank}.npy'
    lacks err "$text"
  done
}
the_comparison_can_be_left_out() {
  scene 48
  SUNDOG_COMPARE=off solved 3 level.npy depth.npy
  lacks err "$text"
}
fields_that_vary_along_the_other_dimension_alone_are_not_spoken_of() {
  python3 - <<'PY'
import struct
def save(name, rows, columns, value):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00\x76\x00" + ("%-117s\n" % head).encode())
        for r in range(rows):
            file.write(struct.pack("<%df" % columns, *(value(c) for c in range(columns))))
save("level.npy", 16, 40, lambda c: c / 40)
save("depth.npy", 16, 40, lambda c: 50.0)
PY
  solved 3 level.npy depth.npy
  lacks err "$text"
}

cases a_whole_input_on_every_rank_is_said_once pieces_are_not_spoken_of \
  the_comparison_can_be_left_out \
  fields_that_vary_along_the_other_dimension_alone_are_not_spoken_of
