# shellcheck shell=bash disable=SC2034,SC2154 # $top is of harness.sh
# SPDX-License-Identifier: Apache-2.0
# A Slurm cluster for tests, in a folder; it runs until the test ends. Its
# daemons run as root, because only these may start processes of users.
slurm=$top/slurm
daemons=()

# Returns a port that is free and outside the range of automatic ports.
free_port() {
  local port
  while
    port=$((12000 + RANDOM % 20000))
    grep -qs "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6
  do :; done
  echo $port
}
# slurm_begin: a cluster of this machine. slurm_begin machines: of those of
# machines.sh.
slurm_begin() {
  local nodes=1 state node try=0 i name
  for name in munged slurmctld slurmd srun; do
    command -v $name >/dev/null || return 1
  done
  [ "$(id -u)" = 0 ] || return 1
  chmod 755 "$top"
  mkdir "$slurm" "$slurm/state"
  (umask 077 && head -c 64 /dev/urandom >"$slurm/key")
  if [ "${1-}" = machines ]; then
    nodes=2
    at() { become "$@"; }
    state="SlurmctldHost=node0
NodeName=node[0-1] CPUs=1 State=UNKNOWN"
    mkdir "$slurm/"{spool,tmp}-node{0,1}
  else
    at() { shift && exec "$@"; }
    node=$(hostname -s)
    state="SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
NodeName=$node NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN"
    mkdir "$slurm/"{spool,tmp}-"$node"
  fi
  cat >"$slurm/slurm.conf" <<END
ClusterName=test
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool-%h
TmpFS=$slurm/tmp-%h
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd-%h.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd-%h.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
$state
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
END
  export SLURM_CONF=$slurm/slurm.conf
  munged --foreground --force --key-file="$slurm/key" \
    --socket="$slurm/munge" --pid-file="$slurm/munged.pid" \
    --log-file="$slurm/munged.log" --seed-file="$slurm/seed" \
    >"$slurm/out" 2>&1 &
  daemons+=($!)
  until [ -S "$slurm/munge" ]; do
    [ $((try += 1)) -lt 1000 ] || return 1
    sleep 0.05
  done
  at 0 slurmctld -i -D >"$slurm/out" 2>&1 &
  daemons+=($!)
  for ((i = 0; i < nodes; i++)); do
    at $i slurmd -D >"$slurm/out" 2>&1 &
    daemons+=($!)
  done
  until (at 0 timeout 30 sinfo -h -o '%D %t') 2>/dev/null |
    grep -q "^$nodes idle"; do
    [ $((try += 1)) -lt 1500 ] || return 1
    sleep 0.1
  done
}
# slurmd first, then slurmstepd, which would wait for slurmctld.
slurm_end() {
  local i pid
  [ ${#daemons[@]} -gt 0 ] || return 0
  for i in {1..50}; do
    [ -z "$( (at 0 timeout 5 squeue -h) 2>/dev/null)" ] && break
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
