#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog doctor` names what it finds, and fails for what is missing.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"
helper=$(realpath "$3") host=$(dirname "$(realpath "$4")")
cp "$helper" "$top/build/interpose/sundog-libraries"
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"

# Uses the host device in $work/other.
host_copy() {
  find "$host" -maxdepth 1 -type f -name 'lib*.so.*' \
    -exec cp -t other/src/host/lib {} +
}

a_sound_machine_passes() {
  run 0 "$sundog" doctor --device host
  says out 'ok    device: host, by --device'
  says out "ok    preload: $top/build/interpose/libsundog.so"
  grep -qE "^ok    CUDA runtime: 13\.[0-9]+, .*/libcudart.so.13" out
  grep -qE "^ok    cuDNN: 9\.[0-9]+\.[0-9]+, .*/libcudnn.so.9" out
  grep -qE "^ok    NCCL: 2\.[0-9]+\.[0-9]+, .*/libnccl.so.2" out
  says out 'ok    devices: 1, the first is sundog host device'
  says out 'ok    launcher: none found'
  says out ' 0 fail'
  lacks out 'fail '
  silent err
}
a_library_that_cannot_be_loaded_fails() {
  layout "$work/other"
  cp "$helper" other/interpose/sundog-libraries
  host_copy
  echo text >other/src/host/lib/libnccl.so.2
  run 1 other/tools/sundog doctor --device host
  says out 'fail  NCCL'
  says out 'fail  library: '
  says out 'libnccl.so.2'
  says out ' 2 fail'
}
an_old_nccl_fails() {
  layout "$work/other"
  cp "$helper" other/interpose/sundog-libraries
  host_copy
  printf 'int ncclGetVersion(int *version) { return *version = %s, 0; }\n' \
    21703 >old.c
  "${CC:-cc}" -shared -fPIC -Wl,-soname,libnccl.so.2 old.c \
    -o other/src/host/lib/libnccl.so.2
  run 1 other/tools/sundog doctor --device host
  says out 'fail  NCCL: 2.17.3, '
  says out 'sundog needs NCCL 2.18 or later'
  says out ' 1 fail'
}
a_missing_helper_fails() {
  layout "$work/other"
  host_copy
  run 1 other/tools/sundog doctor --device host
  says out 'fail  libraries: cannot examine the libraries'
}
a_library_that_is_not_preloaded_fails() {
  layout "$work/other"
  cp "$helper" other/interpose/sundog-libraries
  host_copy
  echo text >other/interpose/libsundog.so
  run 1 other/tools/sundog doctor --device host
  says out 'fail  preload: '
}
faulty_options_fail() {
  SUNDOG_SPILT=H run 1 "$sundog" doctor --device host
  says out 'fail  options and files: '
  says out 'nearest: SUNDOG_SPLIT'
  run 1 "$sundog" doctor --device cuda --view none
}
the_launcher_is_named() {
  RANK=1 WORLD_SIZE=2 run 0 "$sundog" doctor --device host
  says out 'ok    launcher: rank 1 of 2, 1 on this machine, from RANK/WORLD_SIZE'
  RANK=1 run 1 "$sundog" doctor --device host
  says out 'fail  launcher: '
}
the_rendezvous_is_checked() {
  SUNDOG_RENDEZVOUS=file:/a/b run 0 "$sundog" doctor --device host
  says out 'ok    rendezvous: file:/a/b, as SUNDOG_RENDEZVOUS says'
  SUNDOG_RENDEZVOUS=/a/b run 1 "$sundog" doctor --device host
  says out 'fail  rendezvous: '
  RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 run 0 "$sundog" doctor --device host
  says out 'ok    rendezvous: file:/'
  says out ', on this machine'
  RANK=0 WORLD_SIZE=1 run 0 "$sundog" doctor --device host
  says out 'ok    rendezvous: none for one rank; file:/'
}
# What `sundog exec` would refuse, the doctor refuses.
ranks_that_cannot_meet_fail() {
  RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 run 1 "$sundog" doctor --device host
  says out 'fail  rendezvous: SDG-200'
  says out '2 of the 4 ranks are on this machine (LOCAL_WORLD_SIZE)'
  lacks out SUNDOG_RENDEZVOUS=file
  SUNDOG_RENDEZVOUS=tcp://127.0.0.1:29400 RANK=1 WORLD_SIZE=2 run 1 \
    "$sundog" doctor --device host
  says out 'fail  rendezvous: SDG-207'
  says out 'export SUNDOG_SECRET='
  # A left-over PMI_FD is no socket.
  PMI_FD=0 PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=2 run 1 "$sundog" doctor \
    --device host </dev/null
  says out 'fail  rendezvous: SDG-200'
}
low_limits_are_warned_of() {
  ulimit -n 200
  run 0 "$sundog" doctor --device host
  says out 'warn  open files: 200'
  says out ' 1 warn, 0 fail'
}
programs_that_cannot_be_reached_fail() {
  doctor() { run "$1" "$sundog" doctor --device host -- "$2"; }
  doctor 0 true
  says out 'ok    program: '
  cp "$(realpath "$(type -P true)")" prog
  chmod u+s prog
  doctor 1 ./prog
  says out 'setuid'
  chmod u-s prog
  doctor 0 ./prog
  echo 'CUDA driver version is insufficient for CUDA runtime version' >>prog
  doctor 1 ./prog
  says out 'has the CUDA runtime linked in'
  python3 -c 'import sys
sys.stdout.buffer.write(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))' >static
  chmod +x static
  doctor 1 ./static
  says out 'linked statically'
  printf '#! /bin/sh -e\n' >script
  chmod +x script
  doctor 0 ./script
  says out 'is a script of /bin/sh'
  doctor 1 ./nowhere
  says out 'fail  program: '
}
damaged_programs_are_read_safely() {
  local n
  cp "$(realpath "$(type -P true)")" whole
  for n in 0 1 3 5 63 64 100 800 4000 20000; do
    head -c "$n" whole >prog
    chmod +x prog
    "$sundog" doctor --device host -- ./prog >out || [ $? -eq 1 ]
    says out ' fail'
  done
}

cases a_sound_machine_passes a_library_that_cannot_be_loaded_fails \
  an_old_nccl_fails a_missing_helper_fails a_library_that_is_not_preloaded_fails \
  faulty_options_fail the_launcher_is_named the_rendezvous_is_checked \
  ranks_that_cannot_meet_fail \
  low_limits_are_warned_of programs_that_cannot_be_reached_fail \
  damaged_programs_are_read_safely
