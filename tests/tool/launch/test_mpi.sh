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

# gives_one_ranks_file LAUNCHER...: three ranks write the file of one rank.
gives_one_ranks_file() {
  "$clients/scene" "$bathymetry" 91 120 .
  LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
    --out whole.npy $shallow
  for file in level depth; do run 0 "$sundog" split -n 3 $file.npy; done
  # Launchers and their daemons write below this folder.
  mkdir launcher
  TMPDIR=$work/launcher run 0 timeout 60 "$@" -n 3 "$sundog" exec \
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
  timeout 60 "$@" -n 2 "$sundog" exec --device host --split H --view shard \
    -- sh -c '[ {rank} = 1 ] && exit 7; exec sleep 50' >out 2>err || status=$?
  [ "$status" -eq 7 ] || { echo "# status $status"; cat err; return 1; }
}
openmpi_gives_one_ranks_file() { gives_one_ranks_file $openmpi; }
mpich_gives_one_ranks_file() { gives_one_ranks_file $mpich; }
openmpi_ends_with_a_rank_that_fails() { fails_as_the_program $openmpi; }

# Returns a port that is free and outside the range of automatic ports.
free_port() {
  local port
  while
    port=$((12000 + RANDOM % 20000))
    grep -qs "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6
  do :; done
  echo $port
}
# A Slurm cluster of one node in a folder; it runs until the test ends. Its
# daemons run as root, because only these may start processes of users.
slurm=$top/slurm
daemons=()
slurm_begin() {
  local node try=0
  for name in munged slurmctld slurmd srun; do
    command -v $name >/dev/null || return 1
  done
  [ "$(id -u)" = 0 ] || return 1
  node=$(hostname -s)
  chmod 755 "$top"
  mkdir "$slurm" "$slurm/state" "$slurm/spool"
  (umask 077 && head -c 64 /dev/urandom >"$slurm/key")
  cat >"$slurm/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$slurm/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
NodeName=$node NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
END
  export SLURM_CONF=$slurm/slurm.conf
  munged --foreground --force --key-file="$slurm/key" \
    --socket="$slurm/munge" --pid-file="$slurm/munged.pid" \
    --log-file="$slurm/munged.log" --seed-file="$slurm/seed" \
    >"$slurm/out" 2>&1 &
  daemons+=($!)
  until [ -S "$slurm/munge" ]; do
    [ $((try += 1)) -lt 100 ] || return 1
    sleep 0.05
  done
  slurmctld -i -D >"$slurm/out" 2>&1 &
  daemons+=($!)
  slurmd -D >"$slurm/out" 2>&1 &
  daemons+=($!)
  until timeout 5 sinfo -h -o %t 2>/dev/null | grep -q idle; do
    [ $((try += 1)) -lt 150 ] || return 1
    sleep 0.1
  done
}
# slurmd first, then slurmstepd, which would wait for slurmctld.
slurm_end() {
  local i pid
  [ ${#daemons[@]} -gt 0 ] || return 0
  for i in {1..50}; do
    [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break
    sleep 0.1
  done
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
    kill "${daemons[i]}" 2>/dev/null
    timeout 5 tail --pid="${daemons[i]}" -f /dev/null ||
      kill -9 "${daemons[i]}" 2>/dev/null
  done
  for pid in $(pgrep slurmstepd); do
    ! grep -qs "$slurm/" "/proc/$pid/environ" || kill -9 "$pid"
  done
}
trap 'slurm_end; rm -rf "$top"' EXIT
srun="srun --overcommit"
srun_gives_one_ranks_file() { gives_one_ranks_file $srun; }
# srun's status is the largest of the tasks': 128 + 15 for a task that it ended.
srun_ends_with_a_rank_that_fails() {
  local status=0
  timeout 60 $srun --kill-on-bad-exit -n 2 "$sundog" exec --device host \
    --split H --view shard -- sh -c '[ {rank} = 1 ] && exit 7; exec sleep 50' \
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
  found+=(openmpi_gives_one_ranks_file openmpi_ends_with_a_rank_that_fails)
fi
if command -v mpiexec.hydra >/dev/null; then
  found+=(mpich_gives_one_ranks_file)
fi
if slurm_begin; then
  found+=(srun_gives_one_ranks_file srun_ends_with_a_rank_that_fails
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
