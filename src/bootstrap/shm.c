// SPDX-License-Identifier: Apache-2.0
// The memory through which the ranks of a job see each other, and which ranks
// are alive.
#include "src/bootstrap/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/bootstrap/process.h"

#define MAGIC UINT64_C(0x7364672d7365676d) // "sdg-segm"
enum { LAYOUT = 5, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
enum { POSTED_NONE, POSTED_WRITING, POSTED_COMPLETE };

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "atomics between processes must be lock-free");

uint32_t sdg_shm_layout(void) {
  return (uint32_t)LAYOUT << 24 ^ (uint32_t)sizeof(sdg_shm_rank_t);
}

static size_t segment_bytes(int ranks) {
  return sizeof(sdg_shm_t) + (size_t)ranks * sizeof(sdg_shm_rank_t);
}

// Takes over `fd`, a file of the right size.
static sdg_status_t view_init(int fd, int ranks, sdg_shm_view_t *out_view) {
  struct stat file;
  size_t bytes = segment_bytes(ranks);
  void *base = MAP_FAILED;
  if (fstat(fd, &file) == 0)
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    int why = errno;
    close(fd);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "cannot map %zu bytes of shared memory: %s", bytes,
                    strerror(why));
  }
  *out_view = (sdg_shm_view_t){.shared = base,
                               .bytes = bytes,
                               .ranks = ranks,
                               .fd = {fd, file.st_dev, file.st_ino},
                               .bell = {{.fd = -1}, {.fd = -1}}};
  return SDG_OK;
}

sdg_status_t sdg_shm_replica(int ranks, sdg_shm_view_t *out_view) {
  int ends[2];
  size_t bytes = segment_bytes(ranks);
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "pipe: %s", strerror(errno));
  for (int i = 0; i < 2; i++)
    ends[i] = sdg_fd_raise(ends[i]);
  void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    close(ends[0]);
    close(ends[1]);
    return sdg_fail(SDG_E_NO_MEMORY, "%zu bytes for %d ranks", bytes, ranks);
  }
  *out_view =
      (sdg_shm_view_t){.shared = base,
                       .bytes = bytes,
                       .ranks = ranks,
                       .fd = {.fd = -1},
                       .mirror = 1,
                       .bell = {sdg_fd_know(ends[0]), sdg_fd_know(ends[1])}};
  return SDG_OK;
}

void sdg_shm_ring(const sdg_shm_view_t *view) {
  if (!view->mirror || !sdg_fd_is(&view->bell[1]))
    return;
  // If the pipe is full, the thread wakes anyway.
  ssize_t written = write(view->bell[1].fd, "", 1);
  (void)written;
}

sdg_status_t sdg_shm_create(int ranks, sdg_shm_view_t *out_view) {
  off_t bytes = (off_t)segment_bytes(ranks);
  int fd = sdg_fd_raise(
      memfd_create("sundog-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "memfd_create: %s", strerror(errno));
  // Allocate every page now: if memory ran out later, the program would get
  // SIGBUS.
  int why = 0;
  sdg_signal_guard_t guard =
      sdg_signal_guard_begin(); // in case of a limit on file sizes
  if (ftruncate(fd, bytes) != 0)
    why = errno;
  while (!why && fallocate(fd, 0, 0, bytes) != 0 && (why = errno) == EINTR)
    why = 0;
  if (!why && fcntl(fd, F_ADD_SEALS, SEALS) != 0)
    why = errno;
  sdg_signal_guard_end(&guard);
  if (why) {
    close(fd);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "cannot reserve %lld bytes of shared memory: %s",
                    (long long)bytes, strerror(why));
  }
  SDG_TRY(view_init(fd, ranks, out_view));
  sdg_shm_t *shared = out_view->shared;
  shared->magic = MAGIC;
  shared->layout = sdg_shm_layout();
  shared->ranks = (uint32_t)ranks;
  return SDG_OK;
}

sdg_status_t sdg_shm_map(int fd, int ranks, sdg_shm_view_t *out_view) {
  struct stat file;
  // Check the seals: if the file could shrink, the program could get SIGBUS
  // later.
  if (fstat(fd, &file) != 0 || file.st_size != (off_t)segment_bytes(ranks) ||
      (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS) {
    close(fd);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "rank 0 did not send a shared-memory segment for %d ranks",
                    ranks);
  }
  SDG_TRY(view_init(fd, ranks, out_view));
  const sdg_shm_t *shared = out_view->shared;
  if (shared->magic != MAGIC || shared->layout != sdg_shm_layout() ||
      shared->ranks != (uint32_t)ranks) {
    sdg_shm_fini(out_view);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "rank 0's shared memory has another layout");
  }
  return SDG_OK;
}

void sdg_shm_fini(sdg_shm_view_t *view) {
  munmap(view->shared, view->bytes);
  view->shared = NULL;
  sdg_fd_close(&view->fd);
  sdg_fd_close(&view->bell[0]);
  sdg_fd_close(&view->bell[1]);
}

sdg_status_t sdg_shm_enter(const sdg_shm_view_t *view, int rank) {
  sdg_shm_rank_t *own = &view->shared->rank[rank];
  // A POSIX lock, not an open file description lock: the kernel releases it
  // when this process ends, even while it is a zombie, and children made by
  // fork do not hold it.
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
  if (!view->mirror && fcntl(view->fd.fd, F_SETLK, &lock) != 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "cannot lock rank %d's byte: %s", rank,
                    strerror(errno));
  atomic_store(&own->pid, (int32_t)getpid());
  atomic_store(&own->state, (uint32_t)SDG_SHM_JOINED);
  atomic_fetch_add(&view->shared->joins, 1);
  sdg_shm_wake(&view->shared->joins);
  return SDG_OK;
}

sdg_shm_state_t sdg_shm_state(const sdg_shm_view_t *view, int rank) {
  switch (atomic_load(&view->shared->rank[rank].state)) {
  case SDG_SHM_ABSENT:
    return SDG_SHM_ABSENT;
  case SDG_SHM_JOINED:
    return SDG_SHM_JOINED;
  case SDG_SHM_COMING:
    return SDG_SHM_COMING;
  default:
    return SDG_SHM_LEFT;
  }
}

int sdg_shm_alive(const sdg_shm_view_t *view, int rank) {
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
  int32_t pid = atomic_load(&view->shared->rank[rank].pid);
  if (view->mirror)
    return pid > 0;
  if (fcntl(view->fd.fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
    return 1;
  // If a program closes every descriptor, in that process or in this one, the
  // lock no longer tells; the mapping still does.
  return sdg_process_maps(pid, view->fd.device, view->fd.inode);
}

const char *sdg_shm_end_word(const sdg_shm_view_t *view, int rank) {
  return atomic_load(&view->shared->rank[rank].pid) == SDG_SHM_UNREACHABLE
             ? "became unreachable"
             : "died";
}

void sdg_shm_wake_all(const sdg_shm_view_t *view, int rank) {
  sdg_shm_rank_t *of = &view->shared->rank[rank];
  for (int c = 0; c < SDG_CHANNELS; c++)
    if (atomic_load(&of->channel[c].sleepers) != 0)
      sdg_shm_wake(&of->channel[c].published);
  sdg_shm_wake(&view->shared->joins);
}

int sdg_shm_stopped(const sdg_shm_view_t *view, int rank) {
  return !view->mirror &&
         sdg_process_is_stopped(atomic_load(&view->shared->rank[rank].pid));
}

bool sdg_shm_steps_differ(uint64_t a, uint64_t b) {
  const uint64_t lo = 0xffff, hi = lo << 16;
  if (a == b || a >> 32 != b >> 32)
    return false;
  return ((a & lo) && (b & lo) && ((a ^ b) & lo)) ||
         ((a & hi) && (b & hi) && ((a ^ b) & hi));
}

void sdg_shm_count(sdg_shm_channel_t *channel, uint64_t calls, const char *what,
                   size_t what_bytes) {
  uint64_t words[SDG_SHM_WHAT_WORDS] = {0};
  size_t room = sizeof words - 1;
  memcpy(words, what, strnlen(what, what_bytes < room ? what_bytes : room));
  uint32_t version =
      atomic_load_explicit(&channel->version, memory_order_relaxed) | 1;
  atomic_store_explicit(&channel->version, version, memory_order_relaxed);
  for (int i = 0; i < SDG_SHM_WHAT_WORDS; i++)
    atomic_store_explicit(&channel->what[i], words[i], memory_order_release);
  atomic_store_explicit(&channel->calls, calls, memory_order_release);
  atomic_store_explicit(&channel->version, version + 1, memory_order_release);
}

void sdg_shm_mask_set(_Atomic(uint64_t) mask[SDG_SHM_MASK_WORDS],
                      const int *ranks, int count) {
  uint64_t words[SDG_SHM_MASK_WORDS] = {0};
  for (int i = 0; i < count; i++)
    words[ranks[i] / 64] |= UINT64_C(1) << ranks[i] % 64;
  for (int i = 0; i < SDG_SHM_MASK_WORDS; i++)
    atomic_store_explicit(&mask[i], words[i], memory_order_release);
}

int sdg_shm_mask_has(const _Atomic(uint64_t) mask[SDG_SHM_MASK_WORDS],
                     int rank) {
  return (int)(atomic_load_explicit(&mask[rank / 64], memory_order_acquire) >>
                   rank % 64 &
               1);
}

void sdg_shm_post(const sdg_shm_view_t *view, int rank, sdg_status_t status,
                  const char *text) {
  const sdg_error_info_t *info = sdg_error_find(status);
  char head[256];
  snprintf(head, sizeof head, "SDG-%03d %s: ", (int)status,
           info ? info->summary : "");
  if (strncmp(text, head, strlen(head)) == 0)
    text += strlen(head);
  sdg_shm_failure_t *failure = &view->shared->failure;
  uint32_t none = POSTED_NONE;
  if (!atomic_compare_exchange_strong(&failure->posted, &none, POSTED_WRITING))
    return;
  failure->rank = rank;
  failure->status = (uint32_t)status;
  snprintf(failure->text, sizeof failure->text, "%s", text);
  // If a rank is killed between the two stores, the record stays unreadable;
  // the other ranks then detect its death themselves.
  atomic_store(&failure->posted, POSTED_COMPLETE);
  sdg_shm_ring(view);
}

int sdg_shm_posted(const sdg_shm_view_t *view, uint32_t *out_rank,
                   uint32_t *out_status, char out_text[SDG_SHM_TEXT_BYTES]) {
  const sdg_shm_failure_t *failure = &view->shared->failure;
  if (atomic_load_explicit(&failure->posted, memory_order_acquire) !=
      POSTED_COMPLETE)
    return 0;
  *out_rank = (uint32_t)failure->rank;
  *out_status = failure->status;
  memcpy(out_text, failure->text, SDG_SHM_TEXT_BYTES);
  out_text[SDG_SHM_TEXT_BYTES - 1] = '\0';
  return 1;
}

sdg_status_t sdg_shm_fail(const sdg_shm_view_t *view, int self,
                          sdg_status_t status, const char *format, ...) {
  char text[SDG_SHM_TEXT_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  sdg_shm_post(view, self, status, text);
  return sdg_fail(status, "%s", text);
}

// Returns true for failures that have the same code on every rank, whichever
// rank finds them.
static int between_ranks(sdg_status_t status) {
  return status == SDG_E_RENDEZVOUS || status == SDG_E_JOIN_TIMEOUT ||
         status == SDG_E_PEER_LOST || status == SDG_E_PEER_TIMEOUT ||
         status == SDG_E_DIVERGED;
}

sdg_status_t sdg_shm_failure(const sdg_shm_view_t *view, int self, int report) {
  char text[SDG_SHM_TEXT_BYTES];
  uint32_t origin, code;
  if (!sdg_shm_posted(view, &origin, &code, text))
    return SDG_OK;
  int rank = (int)origin;
  sdg_status_t reported = (sdg_status_t)code;
  const sdg_error_info_t *info = sdg_error_find(reported);
  if (!info) {
    reported = SDG_E_INTERNAL;
    info = sdg_error_find(reported);
  }
  sdg_status_t status =
      rank == self || between_ranks(reported) ? reported : SDG_E_PEER_FAILED;
  if (!report)
    return status;
  if (rank == self)
    return sdg_fail(status, "%s", text);
  if (status == reported)
    return sdg_fail(status, "%s (found by rank %d)", text, rank);
  return sdg_fail(status, "rank %d reported SDG-%03d %s: %s", rank,
                  (int)reported, info->summary, text);
}

void sdg_shm_sleep(_Atomic(uint32_t) *word, uint32_t seen) {
  struct timespec timeout = {.tv_nsec = 50 * 1000 * 1000};
  // Woken, interrupted, timed out or already changed: the caller checks again.
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

void sdg_shm_wake(_Atomic(uint32_t) *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
