#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog exec` under the launchers of Open MPI, MPICH and Slurm, if they are
# installed: ranks find each other without a rendezvous.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(dirname "$0") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$(realpath "$here/../../clients/bathymetry.npy")
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1
shallow="--order 2 --steps 10 --dx 2400 --dt 15 --friction 0"

openmpi="mpirun.openmpi --oversubscribe --mca btl self,vader"
[ "$(id -u)" != 0 ] || openmpi="$openmpi --allow-run-as-root"
mpich=mpiexec.hydra
limit=300 # seconds for a hang to be one, however busy this machine is

# gives_one_ranks_file LAUNCHER...: three ranks write the file of one rank.
gives_one_ranks_file() {
  "$clients/scene" "$bathymetry" 91 120 .
  LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
    --out whole.npy $shallow
  for file in level depth; do run 0 "$sundog" split -n 3 $file.npy; done
  # Launchers and their daemons write below this folder.
  mkdir launcher
  TMPDIR=$work/launcher run 0 timeout $limit "$@" -n 3 "$sundog" exec \
    --device host --split H --view shard -- "$clients/shallow" \
    --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'out.{rank}.npy' $shallow
  lacks err SDG-
  run 0 "$sundog" join joined.npy 'out.{rank}.npy'
  run 0 "$sundog" diff joined.npy whole.npy
}
# fails_as_the_program LAUNCHER...: checks that a failing rank ends the others.
fails_as_the_program() {
  mkdir launcher
  export TMPDIR=$work/launcher
  local status=0
  timeout $limit "$@" -n 2 "$sundog" exec --device host --split H --view shard \
    -- sh -c '[ {rank} = 1 ] && exit 7; exec sleep 1000' >out 2>err || status=$?
  [ "$status" -eq 7 ] || { echo "# status $status"; cat err; return 1; }
}
openmpi_gives_one_ranks_file() { gives_one_ranks_file $openmpi; }
mpich_gives_one_ranks_file() { gives_one_ranks_file $mpich; }
openmpi_ends_with_a_rank_that_fails() { fails_as_the_program $openmpi; }
# hydra itself waits for the other ranks, which may wait for this one.
mpich_ends_with_a_rank_that_fails() {
  fails_as_the_program $mpich
  folders_wait
  export TMPDIR=$work/tmp
  local exec=("$sundog" exec --device host --split H --view shard --)
  run 139 timeout $limit $mpich -n 2 "${exec[@]}" \
    sh -c '[ {rank} = 1 ] && kill -SEGV $$; exec sleep 1000'
  run 125 timeout $limit $mpich -n 2 "${exec[@]}" \
    sh -c "[ {rank} = 1 ] && exit; $matched; sleep 1000"
  says err 'SDG-717 [rank 1]'
  folders_wait
}
# Each rank has a process of its own between the launcher and the command, which
# may close what it does not know.
mpich_starts_scripts() {
  local way
  echo '"$@"; exit $?' >script
  echo 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))' >close
  for way in 'sh script' 'sh script' 'python3 close'; do
    run 0 timeout $limit $mpich -n 3 $way "$sundog" exec --device host --split H \
      --view shard -- sh -c "echo at \$SUNDOG_RENDEZVOUS; $matched"
    [ "$(grep -c '^at file:/' out)" = 3 ]
    [ "$(grep '^at file:/' out | sort -u | tee -a places | wc -l)" = 1 ]
  done
  [ "$(sort -u places | wc -l)" = 3 ]
}
mpich_serves_the_program() {
  local rank="'$sundog' exec --device host --split H --view shard -- sh"
  echo "$matched" >first
  printf '%s\n' "python3 '$here/sums.py' mpich || exit" "$matched" >program
  # An earlier command does not use up the launcher's service.
  run 0 timeout $limit $mpich -n 3 sh -c "$rank first && $rank program"
  # Python can write a line and its end apart, and hydra mixes what ranks write.
  [ "$(grep -o 'sum 6' out | wc -l)" = 3 ]
  # What it says at its end, hydra judges: this rank leaves too early.
  local status=0
  echo "python3 '$here/sums.py' mpich 1" >program
  timeout $limit $mpich -n 3 sh -c "$rank program" >out 2>err || status=$?
  [ $status != 0 ]
  folders_wait
}

. "$here/slurm.sh"
trap 'slurm_end; rm -rf "$top"' EXIT
srun="srun --overcommit"
srun_gives_one_ranks_file() { gives_one_ranks_file $srun; }
# On one machine the place is a folder, with PMIx too.
srun_with_pmix_gives_one_ranks_file() {
  gives_one_ranks_file $srun --mpi=pmix
  run 0 $srun --mpi=pmix -n 2 "$sundog" exec --device host --split H \
    --view shard -- sh -c "echo at \$SUNDOG_RENDEZVOUS; $matched"
  [ "$(grep -c '^at file:/' out)" = 2 ]
}
# solves NAME LAUNCHER...: three ranks write the file of one.
solves() {
  local name=$1
  shift
  # Two mpirun that make the same folder at once can fail.
  mkdir "launcher/$name"
  TMPDIR=$work/launcher/$name "$@" -n 3 "$sundog" exec --device host --split H --view shard -- \
    "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out "$name.{rank}.npy" $shallow >"$name.out" 2>"$name.err" ||
    { cat "$name.err"; return 1; }
  run 0 "$sundog" join "$name.npy" "$name.{rank}.npy"
  run 0 "$sundog" diff "$name.npy" joined.npy
}
two_jobs_at_once() {
  gives_one_ranks_file "$@"
  solves first timeout $limit "$@" >first.log 2>&1 &
  local first=$!
  solves second timeout $limit "$@"
  wait $first || { cat first.log; return 1; }
}
two_jobs_of_openmpi_run_at_once() { two_jobs_at_once $openmpi; }
two_jobs_of_mpich_run_at_once() { two_jobs_at_once $mpich; }
two_jobs_of_srun_run_at_once() { two_jobs_at_once $srun --mpi=pmix; }
# srun's status is the largest of the tasks': 128 + 15 for a task that it ended.
srun_ends_with_a_rank_that_fails() {
  local status=0
  timeout $limit $srun --kill-on-bad-exit -n 2 "$sundog" exec --device host \
    --split H --view shard -- sh -c '[ {rank} = 1 ] && exit 7; exec sleep 1000' \
    >out 2>err || status=$?
  [ "$status" -eq 143 ]
  says err 'task 1: Exited with exit code 7'
}
# The secret is in the environment and in no command line.
srun_ranks_connect_over_tcp() {
  SUNDOG_RENDEZVOUS=tcp://127.0.0.1:$(free_port)
  export SUNDOG_RENDEZVOUS SUNDOG_SECRET=secret_of_$$_and_of_no_other_test
  gives_one_ranks_file $srun
  $srun -n 2 "$sundog" exec --device host --split H --view shard -- \
    sh -c 'cat /proc/[0-9]*/cmdline' >seen 2>/dev/null || :
  ! grep -q "$(printf 'secret_of_%s' $$)_and_of_no_other" seen
}

found=()
if command -v mpirun.openmpi >/dev/null; then
  found+=(openmpi_gives_one_ranks_file openmpi_ends_with_a_rank_that_fails
    two_jobs_of_openmpi_run_at_once)
fi
if command -v mpiexec.hydra >/dev/null; then
  found+=(mpich_gives_one_ranks_file mpich_ends_with_a_rank_that_fails
    mpich_starts_scripts mpich_serves_the_program two_jobs_of_mpich_run_at_once)
fi
if slurm_begin; then
  found+=(srun_gives_one_ranks_file srun_with_pmix_gives_one_ranks_file
    two_jobs_of_srun_run_at_once srun_ends_with_a_rank_that_fails
    srun_ranks_connect_over_tcp)
else
  echo '# without srun: needs slurm-wlm, root, and that its daemons start'
  sed 's/^/#   /' "$slurm"/*.log 2>/dev/null | tail -n 5
fi
if [ ${#found[@]} -eq 0 ]; then
  echo '1..0 # SKIP needs openmpi-bin, mpich or slurm-wlm'
  exit 0
fi
cases "${found[@]}"
