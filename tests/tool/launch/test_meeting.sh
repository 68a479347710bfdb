#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Launchers that offer PMIx or PMI start ranks on two machines (machines.sh), and no
# variable of sundog is set: the ranks find each other by themselves.
# shellcheck disable=SC2154,SC2317,SC1091,SC2086,SC2016,SC2206 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(realpath "$(dirname "$0")") host=$(dirname "$(realpath "$3")")
clients=$(realpath "$4")
bathymetry=$here/../../clients/bathymetry.npy
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
cp "$(realpath "$5")" "$top/build/interpose/sundog-libraries"
export OMP_NUM_THREADS=1
shallow="--order 2 --steps 10 --dx 2400 --dt 15 --friction 0"
. "$here/machines.sh"
. "$here/slurm.sh"
trap 'slurm_end; hosts_end; rm -rf "$top"' EXIT
if [ "$(id -u)" != 0 ] || ! hosts_begin 2>"$top/why"; then
  echo '1..0 # SKIP needs root, and a machine that can make network namespaces'
  sed 's/^/# /' "$top/why"
  exit 0
fi
# Open MPI and MPICH start their daemon on the other machine by this in place of
# ssh.
cat >"$top/remote" <<END
#!/bin/bash
holder=(${holder[@]})
. "$here/machines.sh"
holder=(${holder[@]})
while [ "\${1#node}" = "\$1" ]; do shift; done # options of rsh
machine=\${1#node}
shift
become "\$machine" sh -c "\$*"
END
chmod +x "$top/remote"

# Seconds for a hang to be one, however busy this machine is. What a failing rank
# has to end lasts longer.
limit=300
ages=1000
# Each starts four ranks, two on each machine.
openmpi() {
  # Two mpirun that make the same folder at once can fail.
  local base=$work/launcher/$BASHPID
  mkdir -p "$base"
  on 0 timeout $limit mpirun.openmpi --allow-run-as-root --oversubscribe \
    --mca plm_rsh_agent "$top/remote" --mca orte_tmpdir_base "$base" \
    --mca btl self,vader,tcp -H node0:2,node1:2 -n 4 "$@"
}
slurm() {
  on 0 timeout $limit srun --overcommit -N 2 -n 4 --kill-on-bad-exit --mpi=pmix "$@"
}
mpich() {
  on 0 timeout $limit mpiexec.hydra -launcher rsh -launcher-exec "$top/remote" \
    -hosts node0:2,node1:2 -n 4 "$@"
}
split=(--device host --split H --view shard)

pieces() {
  mkdir launcher
  "$clients/scene" "$bathymetry" 91 120 .
  LD_LIBRARY_PATH=$host "$clients/shallow" --in level.npy --depth depth.npy \
    --out whole.npy $shallow
  for file in level depth; do run 0 "$sundog" split -n 4 $file.npy; done
}
# solves NAME LAUNCHER...: four ranks write the file of one.
solves() {
  local name=$1
  shift
  "$@" "$sundog" exec "${split[@]}" -- "$clients/shallow" \
    --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out "$name.{rank}.npy" $shallow >"$name.out" 2>"$name.err" ||
    { cat "$name.err"; return 1; }
  lacks "$name.err" SDG-
  run 0 "$sundog" join "$name.npy" "$name.{rank}.npy"
  run 0 "$sundog" diff "$name.npy" whole.npy
}
one_ranks_file() {
  pieces
  solves only "$1"
}
two_jobs_at_once() {
  pieces
  solves first "$1" >first.log 2>&1 &
  local first=$!
  solves second "$1"
  wait $first || { cat first.log; return 1; }
}
# lines COUNT TEXT: the output has the text so many times.
lines() {
  [ "$(grep -o -- "$2" out | wc -l)" -eq "$1" ] && return 0
  echo "# not $1 times $2:"
  sed 's/^/#   /' out err
  return 1
}
# Waits until the network is up, which UCX, of MPICH, does not do.
network_wait() {
  local i
  for i in 0 1; do
    until [ "$(on $i cat /sys/class/net/sundog0/operstate)" = up ]; do
      sleep 0.1
    done
  done
  export UCX_TLS=tcp,self UCX_NET_DEVICES=sundog0
}
# One rank is late in each round, another one each time.
programs_one_after_the_other() {
  pieces
  cat >program <<END
for round in 1 2 3; do
  [ "\$((round % 4))" != "\$PMIX_RANK" ] || sleep 0.5
  "$sundog" exec ${split[@]} -- "$clients/shallow" --in 'level.{rank}.npy' \
    --depth 'depth.{rank}.npy' --out "round\$round.{rank}.npy" $shallow || exit
done
END
  run 0 "$1" sh program
  lacks err SDG-
  for round in 1 2 3; do
    run 0 "$sundog" join joined.npy "round$round.{rank}.npy"
    run 0 "$sundog" diff joined.npy whole.npy
    rm joined.npy
  done
}
programs_of_mpi() {
  local library=openmpi
  mkdir launcher
  [ "$1" != mpich ] || { library=mpich && network_wait; }
  cat >program <<END
[ "\$SUNDOG_RANK" != 1 ] || sleep 1
python3 "$here/sums.py" $library || exit
$matched
END
  for _ in 1 2 3; do
    run 0 "$1" "$sundog" exec "${split[@]}" -- sh program
    lines 4 'sum 10'
  done
}
# On a busy machine Open MPI's servers took the helper's end for a failure: they
# note that a client has left only after they have told it so.
servers_that_are_late_count_right() {
  mkdir launcher
  "${CC:-cc}" -D_GNU_SOURCE -shared -fPIC "$here/late.c" -o late.so
  printf '%s\n' "python3 '$here/sums.py' openmpi || exit" "$matched" >program
  LD_PRELOAD=$PWD/late.so run 0 openmpi env -u LD_PRELOAD "$sundog" exec \
    "${split[@]}" -- sh program
  lines 4 'sum 10'
}
# Each job has a secret of its own, and no command line holds it.
secrets() {
  mkdir launcher
  cat >program <<END
echo secret \$SUNDOG_SECRET
sleep 0.3
case "\$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ')" in
*\$SUNDOG_SECRET*) echo shown ;;
esac
$matched
END
  for _ in 1 2; do
    run 0 "$1" "$sundog" exec "${split[@]}" -- sh program
    lines 4 'secret [0-9a-f]\{64\}'
    lacks out shown
    [ "$(sort -u out | wc -l)" = 1 ]
    sort -u out >>all
  done
  [ "$(sort -u all | wc -l)" = 2 ]
}
a_missing_rank_is_named() {
  mkdir launcher
  cat >program <<END
[ "\${PMIX_RANK-\$PMI_RANK}" != 2 ] || { sleep $ages; exit 1; }
"$sundog" exec ${split[@]} -- touch started
END
  local status=0
  SUNDOG_TIMEOUT=8 "$1" sh program >out 2>err || status=$?
  [ $status != 0 ]
  says err 'SDG-203'
  if [ "$1" = mpich ]; then
    says err 'not all ranks started `sundog exec` within 8 s'
  else
    says err 'rank 2 of 4 did not start `sundog exec` within 8 s'
  fi
  [ ! -e started ]
}
a_failing_program_ends_the_job() {
  mkdir launcher
  local status=0
  "$@" "$sundog" exec "${split[@]}" -- \
    sh -c "[ {rank} = 3 ] && exit 7; exec sleep $ages" >out 2>err || status=$?
  [ $status = 7 ] || [ $status = 143 ] || { echo "# $status"; return 1; }
  folders_wait
}
a_lost_server_is_an_error() {
  mkdir launcher
  local status=0
  cat >program <<END
for name in 2 21 3 4 41; do
  export "PMIX_SERVER_URI\$name=pmix-server.1;tcp4://127.0.0.1:9"
done
"$sundog" exec ${split[@]} -- touch started
END
  "$1" sh program >out 2>err || status=$?
  [ $status != 0 ]
  says err 'SDG-212'
  says err 'PMIx_Init: UNREACH'
  # The user's own rendezvous does without PMIx.
  sed -i "s/touch started/sh -c 'echo \$SUNDOG_RENDEZVOUS; $(printf %s "$matched" |
    sed 's/[\/&]/\\&/g')'/" program
  export SUNDOG_RENDEZVOUS=tcp://node0:29400 SUNDOG_SECRET=0123456789abcdef
  if [ "$1" = openmpi ]; then
    run 0 openmpi -x SUNDOG_RENDEZVOUS -x SUNDOG_SECRET sh program
  else
    run 0 "$1" sh program
  fi
  lines 4 tcp://node0:29400
}
a_missing_library_is_an_error() {
  mkdir launcher other
  local status=0
  echo text >other/libpmix.so.2
  "$1" sh -c "LD_LIBRARY_PATH=$PWD/other exec '$sundog' exec ${split[*]} -- \
    touch started" >out 2>err || status=$?
  [ $status != 0 ]
  says err 'SDG-212'
  says err 'libpmix.so.2'
  printf 'const char *PMIx_Get_version(void) { return "PMIx 2.2.5"; }\n' >old.c
  for name in Init Finalize Put Commit Get Fence_nb Error_string; do
    echo "void PMIx_$name(void) {}" >>old.c
  done
  "${CC:-cc}" -shared -fPIC old.c -o other/libpmix.so.2
  status=0
  "$1" sh -c "LD_LIBRARY_PATH=$PWD/other exec '$sundog' exec ${split[*]} -- \
    touch started" >out 2>err || status=$?
  says err 'libpmix.so.2 is version 2.2.5; sundog needs 3 or later'
  [ ! -e started ]
}
# Both machines have a network of their own with the same address, as docker's.
networks_that_look_alike_are_told_apart() {
  mkdir launcher
  local i status=0
  for i in 0 1; do
    on $i ip address flush dev sundog0
    on $i ip address add 172.17.0.1/32 dev sundog0
    on $i ip address add 192.0.2.$((i + 1))/24 dev sundog0
  done
  run 0 "$1" "$sundog" exec "${split[@]}" -- \
    sh -c "echo at \$SUNDOG_RENDEZVOUS; $matched" || status=$?
  for i in 0 1; do on $i ip address del 172.17.0.1/32 dev sundog0; done
  [ $status = 0 ]
  lines 4 'at tcp://192.0.2.1:'
}
the_number_of_ranks_is_asked_for() {
  pieces
  mkdir tool
  local unsized="env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE
    -u OMPI_COMM_WORLD_LOCAL_RANK -u OMPI_COMM_WORLD_LOCAL_SIZE"
  unsized() { openmpi $unsized "$@"; }
  solves only unsized
  run 0 unsized "$sundog" doctor --device host
  lines 4 'launcher: rank [0-3] of a number that PMIx knows'
  run 0 unsized "$sundog" exec "${split[@]}" -- \
    sh -c "echo {rank}/{size}/{local_rank}; $matched"
  [ "$(sort out | tr '\n' ' ')" = '0/4/0 1/4/1 2/4/0 3/4/1 ' ]
  # On one machine the place is a folder.
  run 0 on 1 timeout $limit mpirun.openmpi --allow-run-as-root --oversubscribe \
    --mca orte_tmpdir_base "$work/launcher" -n 2 $unsized "$sundog" exec \
    "${split[@]}" -- sh -c "echo {size} \$SUNDOG_RENDEZVOUS; $matched"
  lines 2 '^2 file:/'
}
the_doctor_says_how_the_ranks_would_meet() {
  mkdir launcher
  run 0 "$1" "$sundog" doctor --device host
  lines 4 'ok    rendezvous: by PMIx [0-9.a-z]* (.*libpmix.so.2), job '
  mkdir other
  echo text >other/libpmix.so.2
  run 0 "$1" sh -c "LD_LIBRARY_PATH=$PWD/other '$sundog' doctor --device host || :"
  grep -q 'fail  rendezvous: .*libpmix.so.2' out
}
without_pmix_nothing_is_started() {
  local status plugin
  for plugin in none pmi2; do
    status=0
    on 0 timeout $limit srun --overcommit -N 2 -n 2 --mpi=$plugin "$sundog" exec \
      "${split[@]}" -- touch started >out 2>err || status=$?
    [ $status != 0 ]
    says err SDG-200
    says err 'the 2 ranks are on 2 machines (SLURM_STEP_NUM_NODES)'
    says err 'srun --mpi=pmix'
    [ ! -e started ]
  done
}
the_doctor_names_pmi() {
  run 0 mpich "$sundog" doctor --device host
  lines 4 "ok    rendezvous: by the launcher's PMI (PMI_FD=[0-9]*)"
  # PMI is not needed on one machine.
  run 0 mpiexec.hydra -n 2 "$sundog" doctor --device host
  lines 2 'ok    rendezvous: file:/'
}
# The status is that of the program, each time, and no message is lost.
a_failing_program_ends_the_job_with_its_status() {
  for _ in 1 2 3 4 5; do
    run 7 mpich "$sundog" exec "${split[@]}" -- sh -c \
      "[ {rank} = 3 ] && { echo broken >&2; exit 7; }; exec sleep $ages"
    says err broken
  done
  run 125 mpich "$sundog" exec "${split[@]}" -- sh -c \
    "[ {rank} = 3 ] && exit; $matched; sleep $ages"
  says err 'SDG-717 [rank 3]'
  folders_wait
}
# hydra does not always notice by itself that a signal has ended a rank.
a_signal_ends_the_job() {
  local time=$ages.$RANDOM$RANDOM try=0
  run 139 mpich "$sundog" exec "${split[@]}" -- sh -c \
    "[ {rank} = 3 ] && sleep 1 && kill -SEGV \$\$; exec sleep $time"
  until ! pgrep -fx "sleep $time" >/dev/null; do
    [ $((try += 1)) -lt 600 ]
    sleep 0.1
  done
  folders_wait
}
# No thread has room for such a stack.
a_program_that_pmi_would_miss_is_ended() {
  run 125 mpich sh -c "ulimit -s 214748364800 && exec '$sundog' exec ${split[*]} \
    -- sleep $ages"
  says err 'SDG-212'
  says err "no thread for the program's PMI"
  folders_wait
}
# hydra takes a rank that leaves MPI without MPI_Finalize for a failed one.
a_program_that_leaves_mpi_too_early_fails_the_job() {
  local status=0
  network_wait
  echo "python3 '$here/sums.py' mpich 3 || exit; $matched" >program
  mpich "$sundog" exec "${split[@]}" -- sh program >out 2>err || status=$?
  [ $status != 0 ]
  folders_wait
}
# A daemon's way; hydra must not take it for the end of the rank.
a_program_that_closes_all_descriptors_ends_well() {
  echo 'import os; os.closerange(3, 256)' >program
  run 0 mpich "$sundog" exec "${split[@]}" -- sh -c \
    "python3 program; $matched"
}
# Bridges of containers are up, too, and a machine may have many.
many_bridges_do_not_hide_the_network() {
  local i status=0
  on 0 ip link delete sundog0
  for i in {1..9}; do
    on 0 ip link add bridge$i type bridge
    on 0 ip address add 172.17.$i.1/24 dev bridge$i
    on 0 ip link set bridge$i up
  done
  wire_begin
  network_wait
  SUNDOG_TIMEOUT=10 run 0 mpich "$sundog" exec "${split[@]}" -- \
    sh -c "echo at \$SUNDOG_RENDEZVOUS; $matched" || status=$?
  for i in {1..9}; do on 0 ip link delete bridge$i; done
  [ $status = 0 ]
  lines 4 'at tcp://192.0.2.1:'
}
a_second_command_of_a_rank_is_refused() {
  local status=0
  echo "$matched" >first
  mpich sh -c "'$sundog' exec ${split[*]} -- sh first &&
    '$sundog' exec ${split[*]} -- touch started" >out 2>err || status=$?
  [ $status = 125 ]
  says err SDG-212
  says err 'only one `sundog exec` or program with MPI can use it in a rank'
  folders_wait
  [ ! -e started ]
}
# torchrun's ranks are not those that PMIx knows.
numbers_of_torchrun_are_not_asked_for() {
  local status=0
  slurm sh -c 'RANK=$PMIX_RANK WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 exec "$@"' sh \
    "$sundog" exec "${split[@]}" -- touch started >out 2>err || status=$?
  [ $status != 0 ]
  says err 'are on this machine (LOCAL_WORLD_SIZE)'
  [ ! -e started ]
}

found=()
common="one_ranks_file two_jobs_at_once programs_of_mpi secrets
  a_missing_rank_is_named a_failing_program_ends_the_job
  networks_that_look_alike_are_told_apart"
pmix="programs_one_after_the_other a_lost_server_is_an_error
  a_missing_library_is_an_error the_doctor_says_how_the_ranks_would_meet"
for name in mpich openmpi slurm; do
  if [ $name = mpich ]; then
    command -v mpiexec.hydra >/dev/null || continue
    found+=(the_doctor_names_pmi a_failing_program_ends_the_job_with_its_status
      a_signal_ends_the_job a_program_that_pmi_would_miss_is_ended
      a_program_that_leaves_mpi_too_early_fails_the_job
      a_program_that_closes_all_descriptors_ends_well
      a_second_command_of_a_rank_is_refused)
  elif [ $name = openmpi ]; then
    command -v mpirun.openmpi >/dev/null || continue
    found+=(the_number_of_ranks_is_asked_for servers_that_are_late_count_right)
  elif slurm_begin machines; then
    found+=(without_pmix_nothing_is_started
      numbers_of_torchrun_are_not_asked_for)
  else
    echo '# without srun: needs slurm-wlm, root, and that its daemons start'
    sed 's/^/#   /' "$slurm"/*.log 2>/dev/null | tail -n 5
    continue
  fi
  [ $name = mpich ] && cases_of=$common || cases_of="$common $pmix"
  for case in $cases_of; do
    eval "${case}_of_$name() { $case $name; }"
    found+=("${case}_of_$name")
  done
done
# Last: Open MPI's daemons do not connect over the wire that it makes.
! command -v mpiexec.hydra >/dev/null ||
  found+=(many_bridges_do_not_hide_the_network)
if [ ${#found[@]} -eq 0 ]; then
  echo '1..0 # SKIP needs openmpi-bin, mpich or slurm-wlm'
  exit 0
fi
cases "${found[@]}"
