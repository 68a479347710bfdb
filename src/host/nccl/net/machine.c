// SPDX-License-Identifier: Apache-2.0
// Identifies this machine and opens its sockets.
#include "src/host/nccl/net/machine.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"

enum { SILENT_SECONDS = 20 };

static const char *value_of(const char *name) {
  const char *value = getenv(name);
  return value && *value != '\0' ? value : NULL;
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) // FNV-1a
    hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return hash;
}

uint64_t host_net_machine(void) {
  char boot[64] = "";
  struct stat space;
  uint64_t hash = 14695981039346656037u;
  const char *given = value_of("NCCL_HOSTID");
  if (given) {
    hash = mix(hash, given, strlen(given));
  } else {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
      if (!fgets(boot, sizeof boot, file))
        boot[0] = '\0';
      fclose(file);
    }
    hash = mix(hash, boot, strlen(boot));
  }
  // Abstract names of local sockets are valid in one network namespace only.
  if (stat("/proc/self/ns/net", &space) == 0)
    hash = mix(hash, &space.st_ino, sizeof space.st_ino);
  return hash;
}

bool host_net_asked(void) {
  const char *rendezvous = value_of("SUNDOG_RENDEZVOUS");
  return value_of("NCCL_SOCKET_IFNAME") ||
         (rendezvous && strncmp(rendezvous, "tcp://", 6) == 0);
}

// Returns whether `name` matches a list such as "eth,ib". The words are
// prefixes of names; after a leading "=" they are whole names.
static bool list_has(const char *list, const char *name) {
  bool exact = *list == '=';
  for (list += exact; *list != '\0';) {
    size_t length = strcspn(list, ",");
    if (length > 0 && strncmp(list, name, length) == 0 &&
        (!exact || name[length] == '\0'))
      return true;
    list += length + (list[length] == ',');
  }
  return false;
}

// Returns the preference for an interface; 0: not used.
static int rank_of(const struct ifaddrs *entry, const char *choice,
                   const char *family) {
  const struct sockaddr *address = entry->ifa_addr;
  if (!address || !(entry->ifa_flags & IFF_UP))
    return 0;
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
    return 0;
  if (family &&
      (strcmp(family, "AF_INET6") == 0) != (address->sa_family == AF_INET6))
    return 0;
  // A link-local address is valid only with the interface's name.
  if (address->sa_family == AF_INET6 &&
      IN6_IS_ADDR_LINKLOCAL(
          &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr))
    return 0;
  int v4 = address->sa_family == AF_INET;
  if (choice && *choice == '^')
    return list_has(choice + 1, entry->ifa_name) ? 0 : 2 + v4;
  if (choice)
    return list_has(choice, entry->ifa_name) ? 2 + v4 : 0;
  if (entry->ifa_flags & IFF_LOOPBACK)
    return 1 + v4;
  return (strncmp(entry->ifa_name, "docker", 6) == 0 ? 3 : 5) + v4;
}

static bool address_choose(host_address_t *out_address) {
  struct ifaddrs *all;
  int best = 0;
  const char *choice = value_of("NCCL_SOCKET_IFNAME");
  const char *family = value_of("NCCL_SOCKET_FAMILY");
  if (getifaddrs(&all) != 0)
    return false;
  memset(out_address, 0, sizeof *out_address);
  for (const struct ifaddrs *e = all; e; e = e->ifa_next) {
    int rank = rank_of(e, choice, family);
    if (rank <= best)
      continue;
    best = rank;
    memcpy(out_address, e->ifa_addr,
           e->ifa_addr->sa_family == AF_INET6 ? sizeof out_address->v6
                                              : sizeof out_address->v4);
  }
  freeifaddrs(all);
  return best > 0;
}

static socklen_t bytes_of(const host_address_t *address) {
  return address->any.sa_family == AF_INET6 ? sizeof address->v6
                                            : sizeof address->v4;
}

static int socket_open(const host_address_t *address) {
  return host_fork_guard(socket(address->any.sa_family,
                                SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int host_net_listen(host_address_t *out_address) {
  host_address_t address;
  if (!address_choose(&address))
    return -1;
  if (address.any.sa_family == AF_INET6)
    address.v6.sin6_port = 0;
  else
    address.v4.sin_port = 0;
  int fd = socket_open(&address);
  socklen_t bytes = sizeof(address);
  if (fd >= 0 && bind(fd, &address.any, bytes_of(&address)) == 0 &&
      listen(fd, 128) == 0 && getsockname(fd, &address.any, &bytes) == 0) {
    *out_address = address;
    return fd;
  }
  host_fork_close(fd);
  return -1;
}

int host_net_connect_begin(const host_address_t *address) {
  if (address->any.sa_family != AF_INET && address->any.sa_family != AF_INET6)
    return -1;
  int fd = socket_open(address);
  if (fd >= 0 && connect(fd, &address->any, bytes_of(address)) != 0 &&
      errno != EINPROGRESS) {
    host_fork_close(fd);
    return -1;
  }
  return fd;
}

void host_net_tune(int fd) {
  const int on = 1, idle = SILENT_SECONDS / 2, each = SILENT_SECONDS / 4,
            probes = 2;
  const unsigned limit_ms = SILENT_SECONDS * 1000;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms,
                   sizeof limit_ms);
}
