#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog exec` under the launchers of Open MPI and MPICH, where they are
# installed: ranks find each other without being told where.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 2 --steps 10 --dx 2400 --dt 15 --friction 0"

openmpi="mpirun.openmpi --oversubscribe --mca btl self,vader"
[ "$(id -u)" != 0 ] || openmpi="$openmpi --allow-run-as-root"
mpich=mpiexec.hydra

# gives_one_ranks_file LAUNCHER...: three ranks under it.
gives_one_ranks_file() {
  "$clients/scene" "$bathymetry" 91 120 .
  LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
    --out whole.npy $shallow
  for file in level depth; do run 0 "$sundog" split -n 3 $file.npy; done
  # Launchers and their daemons write below their own folder.
  mkdir launcher
  TMPDIR=$work/launcher run 0 timeout 60 "$@" -n 3 "$sundog" exec \
    --device host --split H --view shard -- "$clients/shallow" \
    --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'out.{rank}.npy' $shallow
  lacks err SDG-
  run 0 "$sundog" join joined.npy 'out.{rank}.npy'
  run 0 "$sundog" diff joined.npy whole.npy
}
# fails_as_the_program LAUNCHER...: a rank that fails ends the others.
fails_as_the_program() {
  mkdir launcher
  export TMPDIR=$work/launcher
  local status=0
  timeout 60 "$@" -n 2 "$sundog" exec --device host --split H --view shard \
    -- sh -c '[ {rank} = 1 ] && exit 7; exec sleep 50' >out 2>err || status=$?
  [ "$status" -eq 7 ] || { echo "# status $status"; cat err; return 1; }
}
openmpi_gives_one_ranks_file() { gives_one_ranks_file $openmpi; }
mpich_gives_one_ranks_file() { gives_one_ranks_file $mpich; }
openmpi_ends_with_a_rank_that_fails() { fails_as_the_program $openmpi; }

found=()
if command -v mpirun.openmpi >/dev/null; then
  found+=(openmpi_gives_one_ranks_file openmpi_ends_with_a_rank_that_fails)
fi
if command -v mpiexec.hydra >/dev/null; then
  found+=(mpich_gives_one_ranks_file)
fi
if [ ${#found[@]} -eq 0 ]; then
  echo '1..0 # SKIP needs openmpi-bin or mpich'
  exit 0
fi
cases "${found[@]}"
