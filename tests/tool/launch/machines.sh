# shellcheck shell=bash disable=SC2034,SC2154 # $top is of harness.sh
# SPDX-License-Identifier: Apache-2.0
# Two machines for tests: network namespaces of this machine with a link between
# them, names of their own (node0, node1), and no shared memory. Needs root.

# Two processes hold the namespaces; when they end, the namespaces are removed.
holder=()
hosts_end() {
  for pid in "${holder[@]}"; do kill "$pid" 2>/dev/null; done
}
hosts_begin() {
  command -v ip >/dev/null && command -v unshare >/dev/null || return 1
  printf '127.0.0.1 localhost\n192.0.2.1 node0\n192.0.2.2 node1\n' >"$top/hosts"
  for i in 0 1; do
    # Each has its own /dev/shm and System V memory, too. UCX, which MPICH uses,
    # looks for networks in /sys, and slurmd for control groups.
    mkdir -p "$top/cgroup$i"
    unshare --net --mount --ipc --uts sh -c \
      "hostname node$i && mount -t tmpfs none /dev/shm &&
       mount --rbind /sys/fs/cgroup '$top/cgroup$i' &&
       mount -t sysfs none /sys &&
       mount --rbind '$top/cgroup$i' /sys/fs/cgroup &&
       umount -l '$top/cgroup$i' &&
       mount --bind '$top/hosts' /etc/hosts && exec sleep 3600" 2>/dev/null &
    holder+=($!)
  done
  for pid in "${holder[@]}"; do
    local try=0
    until [ "$(readlink "/proc/$pid/ns/net" 2>/dev/null)" != \
      "$(readlink /proc/self/ns/net)" ] &&
      [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sleep ]; do
      kill -0 "$pid" 2>/dev/null && [ $((try += 1)) -lt 6000 ] || return 1
      sleep 0.01
    done
  done
  wire_begin
}
# The wire between the machines.
wire_begin() {
  ip link add sundog0 netns "${holder[0]}" type veth peer name sundog0 \
    netns "${holder[1]}" 2>/dev/null || return 1
  for i in 0 1; do
    on $i ip link set lo up &&
      on $i ip address add 192.0.2.$((i + 1))/24 dev sundog0 &&
      on $i ip address add 2001:db8::$((i + 1))/64 dev sundog0 nodad &&
      on $i ip link set sundog0 up || return 1
  done
}
# become HOST COMMAND...: this process becomes the command on a machine.
become() {
  local pid=${holder[$1]}
  shift
  exec nsenter --target "$pid" --net --mount --ipc --uts --wdns="$PWD" -- "$@"
}
# on HOST COMMAND...: runs the command on a machine.
on() { (become "$@"); }
