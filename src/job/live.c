// SPDX-License-Identifier: Apache-2.0
// The rank's row of the memory that `sundog run --progress` reads.
#include "src/job/live.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/options.h"

_Atomic(sdg_live_rank_t *) sdg_live_own;

// Returns the memory behind `fd`, which stays mapped as long as the process
// lives; NULL if it is not what the command made.
static sdg_live_t *memory_map(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0)
    return NULL;
  size_t bytes = (size_t)file.st_size;
  errno = EINVAL;
  if (bytes < sizeof(sdg_live_t))
    return NULL;
  sdg_live_t *live =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (live == MAP_FAILED)
    return NULL;
  if (live->magic == SDG_LIVE_MAGIC &&
      live->rank_bytes == sizeof(sdg_live_rank_t) &&
      live->ranks <= (bytes - sizeof *live) / sizeof(sdg_live_rank_t))
    return live;
  munmap(live, bytes);
  errno = EINVAL;
  return NULL;
}

void sdg_live_begin(int rank) {
  const char *path = sdg_options_get()->live;
  if (!*path)
    return;
  int fd = sdg_fd_raise(open(path, O_RDWR | O_CLOEXEC));
  sdg_live_t *live = fd < 0 ? NULL : memory_map(fd);
  if (!live)
    (void)sdg_fail(SDG_E_LIVE, "%s: %s", path, strerror(errno));
  else if ((uint32_t)rank >= live->ranks)
    (void)sdg_fail(SDG_E_LIVE, "%s has %u ranks, and this is rank %d", path,
                   live->ranks, rank);
  else
    atomic_store(&sdg_live_own, &live->rank[rank]);
  if (fd >= 0)
    close(fd);
  sdg_live_rank_t *own = atomic_load(&sdg_live_own);
  // A process that has joined stays in the row while its child tries to.
  if (own && atomic_load(&own->state) != SDG_LIVE_JOINED)
    atomic_store(&own->state, (uint32_t)SDG_LIVE_JOINING);
}

void sdg_live_joined(sdg_status_t status) {
  sdg_live_rank_t *own = atomic_load(&sdg_live_own);
  uint32_t joining = SDG_LIVE_JOINING;
  if (!own)
    return;
  if (status != SDG_OK) {
    (void)atomic_compare_exchange_strong(&own->state, &joining,
                                         (uint32_t)SDG_LIVE_LEFT);
    sdg_live_forget();
    return;
  }
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++) {
    // An earlier process of the rank may have been killed in a wait.
    atomic_store(&own->thread[channel].waits_since_ns, 0);
    atomic_store(&own->thread[channel].in_flight, 0);
  }
  atomic_store(&own->pid, (int32_t)getpid());
  atomic_store(&own->state, (uint32_t)SDG_LIVE_JOINED);
}

void sdg_live_leave(void) {
  sdg_live_rank_t *own = atomic_load(&sdg_live_own);
  if (own)
    atomic_store(&own->state, (uint32_t)SDG_LIVE_LEFT);
}

void sdg_live_forget(void) {
  atomic_store(&sdg_live_own, NULL);
}

void sdg_live_reach(int channel, uint64_t number, const char *entry_name) {
  sdg_live_thread_t *live = sdg_live_thread(channel);
  if (!live)
    return;
  uint64_t words[SDG_LIVE_NAME_WORDS] = {0};
  memcpy(words, entry_name, strnlen(entry_name, sizeof words - 1));
  uint32_t version =
      atomic_load_explicit(&live->version, memory_order_relaxed) | 1;
  atomic_store_explicit(&live->version, version, memory_order_relaxed);
  for (int i = 0; i < SDG_LIVE_NAME_WORDS; i++)
    atomic_store_explicit(&live->name[i], words[i], memory_order_release);
  atomic_store_explicit(&live->number, number, memory_order_release);
  atomic_store_explicit(&live->version, version + 1, memory_order_release);
}
