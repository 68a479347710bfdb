// SPDX-License-Identifier: Apache-2.0
// Makes and reads the memory in which the ranks count.
#include "tools/live/totals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "tools/program/setting.h"

sdg_status_t totals_create(int size, sdg_live_t **out) {
  size_t bytes = sdg_live_bytes(size);
  char path[64];
  sdg_live_t *live = MAP_FAILED;
  // Not a file: a store into a file whose disk is full would end the program.
  int fd = sdg_fd_raise(memfd_create("sundog-live", MFD_CLOEXEC));
  int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
  if (!error) {
    live = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = live == MAP_FAILED ? errno : 0;
  }
  // Stays open as long as this process lives, because ranks open it by this
  // path: a program that closes all descriptors can do so, too.
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
  if (error)
    return sdg_fail(SDG_E_START, "memory for --progress: %s", strerror(error));
  SDG_TRY(setting_make("SUNDOG_LIVE", path, SDG_ORIGIN_COMMAND));
  live->magic = SDG_LIVE_MAGIC;
  live->rank_bytes = sizeof(sdg_live_rank_t);
  live->ranks = (uint32_t)size;
  *out = live;
  return SDG_OK;
}

// Reads the call that a thread has reached; false while it is being written.
static bool call_read(const sdg_live_thread_t *thread, rank_now_t *out) {
  uint64_t words[SDG_LIVE_NAME_WORDS];
  uint32_t version = atomic_load(&thread->version);
  uint64_t number = atomic_load(&thread->number);
  for (int i = 0; i < SDG_LIVE_NAME_WORDS; i++)
    words[i] = atomic_load(&thread->name[i]);
  if (version % 2 != 0 || atomic_load(&thread->version) != version)
    return false;
  out->number = number;
  memcpy(out->name, words, sizeof out->name);
  out->name[sizeof out->name - 1] = '\0';
  return true;
}

void totals_read(const sdg_live_t *live, int rank, int64_t now_ns,
                 rank_now_t *out) {
  const sdg_live_rank_t *row = &live->rank[rank];
  enum { READS = 100 }; // a writer between two of its stores was interrupted
  *out = (rank_now_t){.state = (sdg_live_state_t)atomic_load(&row->state),
                      .pid = atomic_load(&row->pid)};
  const sdg_live_thread_t *shown = &row->thread[0];
  for (int channel = SDG_CHANNEL_THREADS; channel-- > 0;) {
    const sdg_live_thread_t *thread = &row->thread[channel];
    int64_t since_ns = atomic_load(&thread->waits_since_ns);
    out->calls += atomic_load(&thread->calls);
    out->received_bytes += atomic_load(&thread->received_bytes);
    out->host_wait_ns[channel] =
        atomic_load(&thread->host_wait_ns) + (since_ns ? now_ns - since_ns : 0);
    out->stream_wait_ns[channel] = atomic_load(&thread->stream_wait_ns);
    bool waits = since_ns || atomic_load(&thread->in_flight);
    out->waits |= waits;
    if (waits)
      shown = thread;
  }
  for (int i = 0; i < READS && !call_read(shown, out); i++)
    continue;
}
