// SPDX-License-Identifier: Apache-2.0
// The shared memory of one communicator: layout, doorbells, faults, and the
// detection of ranks whose process has ended.
#include "src/host/nccl/net/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"
#include "src/host/nccl/net/wire.h"

enum { PAGE = 4096 };

static size_t page_round(size_t bytes) {
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t header_bytes(int ranks) {
  return page_round(sizeof(host_header_t) +
                    (size_t)ranks * sizeof(host_bell_t));
}

static size_t slots_bytes(int ranks) {
  return page_round((size_t)ranks * (size_t)ranks * HOST_SLOTS *
                    sizeof(host_slot_t));
}

static size_t segment_bytes(int ranks) {
  return header_bytes(ranks) + slots_bytes(ranks) +
         (size_t)ranks * (size_t)ranks * HOST_SLOTS * HOST_SLOT_BYTES;
}

int host_segment_create(int ranks) {
  int fd = memfd_create("nccl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return -1;
  if (fchmod(fd, 0600) != 0 || ftruncate(fd, (off_t)segment_bytes(ranks)) ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

static ncclResult_t endpoint_init(host_endpoint_t *endpoint, void *map,
                                  int rank, int ranks) {
  endpoint->rank = rank;
  endpoint->ranks = ranks;
  endpoint->wire = NULL;
  endpoint->map = map;
  endpoint->map_bytes = segment_bytes(ranks);
  endpoint->header = map;
  endpoint->slots = (host_slot_t *)((char *)map + header_bytes(ranks));
  endpoint->data = (char *)map + header_bytes(ranks) + slots_bytes(ranks);
  endpoint->out = calloc(2 * (size_t)ranks, sizeof *endpoint->out);
  if (!endpoint->out)
    return ncclSystemError;
  endpoint->in = endpoint->out + ranks;
  atomic_init(&endpoint->stopped, false);
  return ncclSuccess;
}

ncclResult_t host_endpoint_open(host_endpoint_t *endpoint, int fd, int rank,
                                int ranks) {
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size != (off_t)segment_bytes(ranks))
    return ncclSystemError;
  // Untouched pages cost nothing, so a ring that is not used takes no memory.
  void *map = mmap(NULL, segment_bytes(ranks), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (map == MAP_FAILED)
    return ncclSystemError;
  // A forked child must neither keep the memory nor appear as this rank.
  madvise(map, segment_bytes(ranks), MADV_DONTFORK);
  ncclResult_t result = endpoint_init(endpoint, map, rank, ranks);
  if (result != ncclSuccess) {
    munmap(map, segment_bytes(ranks));
    return result;
  }
  endpoint->owns_map = true;
  endpoint->fd = fd;
  return ncclSuccess;
}

ncclResult_t host_endpoint_mirror(host_endpoint_t *endpoint, int rank,
                                  int ranks) {
  void *map = mmap(NULL, segment_bytes(ranks), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    return ncclSystemError;
  madvise(map, segment_bytes(ranks), MADV_DONTFORK);
  ncclResult_t result = endpoint_init(endpoint, map, rank, ranks);
  if (result != ncclSuccess) {
    munmap(map, segment_bytes(ranks));
    return result;
  }
  endpoint->owns_map = true;
  endpoint->fd = -1;
  return ncclSuccess;
}

ncclResult_t host_endpoint_share(host_endpoint_t *endpoint,
                                 const host_endpoint_t *other, int rank) {
  endpoint->owns_map = false;
  endpoint->fd = -1;
  return endpoint_init(endpoint, other->map, rank, other->ranks);
}

// Rank r holds a POSIX lock on byte r of the segment. The kernel drops the lock
// when the process ends in any way, before it is reaped. Children of fork do
// not inherit it, and unlike a process id it is never reused.
ncclResult_t host_endpoint_announce(host_endpoint_t *endpoint) {
  struct flock lock = {.l_type = F_WRLCK,
                       .l_whence = SEEK_SET,
                       .l_start = endpoint->rank,
                       .l_len = 1};
  return fcntl(endpoint->fd, F_SETLK, &lock) == 0 ? ncclSuccess
                                                  : ncclSystemError;
}

bool host_endpoint_dead(const host_endpoint_t *endpoint, int peer) {
  if (endpoint->wire && peer != endpoint->rank)
    return host_wire_gone(endpoint->wire, peer);
  if (endpoint->fd < 0 || peer == endpoint->rank)
    return false;
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = peer, .l_len = 1};
  return fcntl(endpoint->fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void host_endpoint_close(host_endpoint_t *endpoint) {
  atomic_store(&endpoint->header->bell[endpoint->rank].left, 1);
  for (int peer = 0; peer < endpoint->ranks; peer++)
    host_bell_ring(endpoint, peer);
  if (endpoint->wire)
    host_wire_stop(endpoint->wire);
  if (endpoint->owns_map)
    munmap(endpoint->map, endpoint->map_bytes);
  host_fork_close(endpoint->fd);
  free(endpoint->out);
  endpoint->out = NULL;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout) {
  return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static void bell_wake(host_bell_t *bell) {
  atomic_fetch_add(&bell->rung, 1);
  futex(&bell->rung, FUTEX_WAKE, INT32_MAX, NULL);
}

bool host_endpoint_settled(const host_endpoint_t *endpoint) {
  return !endpoint->wire || host_wire_settled(endpoint->wire);
}

void host_bell_wake_own(host_endpoint_t *endpoint) {
  host_bell_t *bell = &endpoint->header->bell[endpoint->rank];
  if (atomic_load(&bell->asleep))
    bell_wake(bell);
}

void host_bell_ring(host_endpoint_t *endpoint, int peer) {
  host_bell_t *bell = &endpoint->header->bell[peer];
  if (endpoint->wire && peer != endpoint->rank) {
    host_wire_poke(endpoint->wire);
    return;
  }
  if (atomic_load(&bell->asleep))
    bell_wake(bell);
}

bool host_bell_sleep(host_endpoint_t *endpoint, uint32_t seen,
                     long timeout_ms) {
  host_bell_t *bell = &endpoint->header->bell[endpoint->rank];
  struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
  return futex(&bell->rung, FUTEX_WAIT, seen, &timeout) != 0 &&
         errno == ETIMEDOUT;
}

void host_endpoint_stop(host_endpoint_t *endpoint) {
  atomic_store(&endpoint->stopped, true);
  bell_wake(&endpoint->header->bell[endpoint->rank]);
}

void host_fault_set(host_endpoint_t *endpoint, host_fault_t fault) {
  uint64_t none = 0;
  uint64_t word = (uint64_t)fault.kind | (uint64_t)(fault.origin + 1) << 16 |
                  (uint64_t)(fault.culprit + 1) << 32;
  atomic_compare_exchange_strong(&endpoint->header->fault, &none, word);
  for (int peer = 0; peer < endpoint->ranks; peer++)
    bell_wake(&endpoint->header->bell[peer]);
  if (endpoint->wire)
    host_wire_poke(endpoint->wire);
}

void host_fault_hear(host_endpoint_t *endpoint, uint64_t word) {
  uint64_t none = 0;
  if (word != 0)
    atomic_compare_exchange_strong(&endpoint->header->fault, &none, word);
  bell_wake(&endpoint->header->bell[endpoint->rank]);
}

host_fault_t host_fault_get(const host_endpoint_t *endpoint) {
  uint64_t word = atomic_load(&endpoint->header->fault);
  return (host_fault_t){(host_fault_kind_t)(word & 0xffff),
                        (int)(word >> 16 & 0xffff) - 1,
                        (int)(word >> 32 & 0xffff) - 1};
}

ncclResult_t host_fault_result(const host_endpoint_t *endpoint,
                               host_fault_t fault) {
  switch (fault.kind) {
  case HOST_FAULT_NONE:
    return ncclSuccess;
  case HOST_FAULT_SIZE:
  case HOST_FAULT_MIXED:
    return ncclInvalidUsage;
  case HOST_FAULT_ADDRESS:
  case HOST_FAULT_SKIPPED:
    return fault.origin == endpoint->rank ? ncclUnhandledCudaError
                                          : ncclRemoteError;
  default:
    return ncclRemoteError;
  }
}

void host_fault_text(host_fault_t fault, char *text, size_t text_bytes) {
  const char *what = "no fault";
  switch (fault.kind) {
  case HOST_FAULT_NONE:
    break;
  case HOST_FAULT_DIED:
    what = "the process of the peer has ended";
    break;
  case HOST_FAULT_LEFT:
    what = "the peer has left the communicator";
    break;
  case HOST_FAULT_SIZE:
    what = "sizes of a send and its receive differ";
    break;
  case HOST_FAULT_MIXED:
    what = "the peer is in another operation";
    break;
  case HOST_FAULT_ADDRESS:
    what = "a buffer is not device memory";
    break;
  case HOST_FAULT_SKIPPED:
    what = "a device error kept the operation from running";
    break;
  case HOST_FAULT_INIT:
    what = "initialisation failed";
    break;
  }
  if (fault.culprit >= 0 && fault.culprit != fault.origin)
    snprintf(text, text_bytes, "%s: rank %d, found by rank %d", what,
             fault.culprit, fault.origin);
  else
    snprintf(text, text_bytes, "%s: rank %d", what, fault.origin);
}
