/* SPDX-License-Identifier: Apache-2.0 */
/* The memory in which the ranks of a job see each other: its layout, its
 * making, and which ranks are alive.
 *
 * On one node the ranks share it: a memfd with no name, of no other user, gone
 * with the last process. Between nodes each process has a mirror of its own:
 * it writes its row, and a carrier (src/control/tcp.h) brings it the others'.
 * Every value read from it is another process's word: indices and lengths
 * taken from it are checked before use. */
#ifndef SDG_SRC_BOOTSTRAP_SHM_H
#define SDG_SRC_BOOTSTRAP_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/channel.h"
#include "src/base/fd.h"
#include "src/base/status.h"

enum {
  SDG_SHM_RANKS = 256, /* of a job; half a megabyte each */
  SDG_SHM_MASK_WORDS = SDG_SHM_RANKS / 64,
  SDG_SHM_LANES = 8, /* groups that a rank is in, per channel */
  SDG_SHM_TEXT_BYTES = 1024,
  SDG_SHM_STEPS = 1024,    /* calls back that ranks can be compared */
  SDG_SHM_TURNS = 1024,    /* that the first rank of a group is ahead */
  SDG_SHM_NAME_BYTES = 32, /* of a thread */
  SDG_SHM_WHAT_WORDS = 12, /* of 8 bytes: the name of a call */
  SDG_SHM_WHAT_BYTES = SDG_SHM_WHAT_WORDS * 8,
};

typedef struct sdg_shm_record {
  uint32_t bytes;
  char data[SDG_CHANNEL_RECORD_BYTES];
} sdg_shm_record_t;

/* What one rank says on one channel. Each group of ranks it exchanges with has
 * a lane of its own, claimed at the first exchange and kept. */
typedef struct sdg_shm_channel {
  /* Exchanges published on all lanes; a futex word. */
  _Alignas(64) _Atomic(uint32_t) published;
  _Atomic(uint32_t) sleepers; /* waiters in futex on `published` */
  /* Exchanges published on each lane, modulo 2^32. Release: record[lane][
   * number % 2] is complete. */
  _Atomic(uint32_t) number[SDG_SHM_LANES];
  _Alignas(64) _Atomic(uint64_t) group[SDG_SHM_LANES]; /* hash; 0: free */

  /* Tagged calls and the name of the last; `version` is odd while `what` is
   * being written. */
  _Alignas(64) _Atomic(uint32_t) version;
  _Atomic(uint64_t) calls;
  _Atomic(uint64_t) what[SDG_SHM_WHAT_WORDS];

  /* The last calls carried out: number << 32 | a hash of the call, in
   * step[number % SDG_SHM_STEPS]. */
  _Alignas(64) _Atomic(uint64_t) step[SDG_SHM_STEPS];
  _Atomic(uint64_t) steps_end; /* of all: number << 32 | hash; 0: not yet */

  /* In a mirror, of the own row, for the carrier: the last step, whom steps
   * concern, the members of each lane's group; and from it: 1 + a rank whose
   * steps differ. */
  _Atomic(uint32_t) steps;
  _Atomic(uint32_t) differs;
  _Atomic(uint64_t) step_peers[SDG_SHM_MASK_WORDS];
  _Atomic(uint64_t) members[SDG_SHM_LANES][SDG_SHM_MASK_WORDS];

  _Alignas(64) sdg_shm_record_t record[SDG_SHM_LANES][2];
} sdg_shm_channel_t;

typedef enum sdg_shm_state {
  SDG_SHM_ABSENT,
  SDG_SHM_JOINED,
  SDG_SHM_LEFT,
  SDG_SHM_COMING, /* in a mirror: rank 0 has it, this rank not yet */
} sdg_shm_state_t;

/* In place of a rank's process number, in a mirror. */
enum { SDG_SHM_DEAD = 0, SDG_SHM_UNREACHABLE = -1 };

/* The order in which the threads of a group's ranks launch transfers
 * (src/job/launch_order.h), told by the group's first rank. Turn n is that of
 * the thread with channel turn[n % SDG_SHM_TURNS], valid once `given` > n.
 */
typedef struct sdg_shm_turns {
  _Alignas(64) _Atomic(uint64_t) given;
  _Alignas(64) _Atomic(uint64_t) taken; /* that this rank has launched */
  _Atomic(uint8_t) turn[SDG_SHM_TURNS];
} sdg_shm_turns_t;

typedef struct sdg_shm_rank {
  _Alignas(64) _Atomic(uint32_t) state;
  _Atomic(int32_t) pid; /* in the rank's own pid namespace */
  sdg_shm_turns_t turns;
  /* In a mirror, of the own row: the thread's name that rank 0 is asked to
   * give a channel to. `asked` counts the questions, `heard` those that are on
   * their way: until then the name stays. */
  _Atomic(uint32_t) asked, heard;
  char name[SDG_SHM_NAME_BYTES];
  sdg_shm_channel_t channel[SDG_CHANNELS];
} sdg_shm_rank_t;

/* The first failure of the job. */
typedef struct sdg_shm_failure {
  _Atomic(uint32_t) posted; /* 0 none, 1 being written, 2 complete */
  int32_t rank;             /* who reports */
  uint32_t status;
  char text[SDG_SHM_TEXT_BYTES];
} sdg_shm_failure_t;

/* The name of the thread that has a channel, on every rank. */
typedef struct sdg_shm_name {
  _Atomic(uint32_t) state; /* 0 free, 1 being written, 2 complete, for good */
  char text[SDG_SHM_NAME_BYTES];
} sdg_shm_name_t;

typedef struct sdg_shm {
  uint64_t magic;
  uint32_t layout;
  uint32_t ranks;
  _Alignas(64) _Atomic(uint32_t) joins; /* a futex word: ranks joined so far */
  _Alignas(64) sdg_shm_failure_t failure;
  sdg_shm_name_t name[SDG_CHANNEL_THREADS]; /* [0]: none, never written */
  sdg_shm_rank_t rank[];
} sdg_shm_t;

/* Two processes understand each other if this number is the same. */
uint32_t sdg_shm_layout(void);

/* A process's view of the segment. Owned by its creator; the functions below
 * are thread-safe once it is made. */
typedef struct sdg_shm_view {
  sdg_shm_t *shared;
  size_t bytes;
  int ranks;
  sdg_fd_t fd;      /* the memfd; a lock on byte r is rank r's sign of life */
  int mirror;       /* 1: of this process alone, kept by a carrier */
  sdg_fd_t bell[2]; /* of a mirror: a pipe; what is written wakes the carrier */
} sdg_shm_view_t;

/* A new segment for `ranks` ranks, every page allocated. */
sdg_status_t sdg_shm_create(int ranks, sdg_shm_view_t *out_view) SDG_MUST_CHECK;
/* A mirror, of which only the pages that are used cost memory. */
sdg_status_t sdg_shm_replica(int ranks,
                             sdg_shm_view_t *out_view) SDG_MUST_CHECK;
/* Wakes the carrier of a mirror, whose own row has changed. */
void sdg_shm_ring(const sdg_shm_view_t *view);
/* Maps the segment that another process sent; takes over `fd`. */
sdg_status_t sdg_shm_map(int fd, int ranks,
                         sdg_shm_view_t *out_view) SDG_MUST_CHECK;
/* Unmaps and closes; of the calling process only. */
void sdg_shm_fini(sdg_shm_view_t *view);

/* Marks `rank` as joined: takes its lock, wakes those who wait for it. */
sdg_status_t sdg_shm_enter(const sdg_shm_view_t *view, int rank) SDG_MUST_CHECK;
/* 1 when the process that entered as `rank` (not the caller's own) exists:
 * not dead, not a zombie, not another program by exec. */
int sdg_shm_alive(const sdg_shm_view_t *view, int rank);
/* 1 when that process is stopped by a signal or a debugger; not seen in a
 * mirror. */
int sdg_shm_stopped(const sdg_shm_view_t *view, int rank);
/* The same of a process of this machine. */
int sdg_shm_process_stopped(int pid);
sdg_shm_state_t sdg_shm_state(const sdg_shm_view_t *view, int rank);
/* "died", or "cannot be reached any more", of a rank that is not alive. */
const char *sdg_shm_end_word(const sdg_shm_view_t *view, int rank);
/* Wakes whoever waits for something of `rank`. */
void sdg_shm_wake_all(const sdg_shm_view_t *view, int rank);

/* Publishes a count of calls and the name of the last, of at most
 * SDG_SHM_WHAT_BYTES - 1 bytes. One thread at a time on a channel. */
void sdg_shm_count(sdg_shm_channel_t *channel, uint64_t calls, const char *what,
                   size_t what_bytes);

/* Sets of ranks. */
static inline void sdg_shm_mask_set(_Atomic(uint64_t) mask[SDG_SHM_MASK_WORDS],
                                    const int *ranks, int count) {
  uint64_t words[SDG_SHM_MASK_WORDS] = {0};
  for (int i = 0; i < count; i++)
    words[ranks[i] / 64] |= UINT64_C(1) << ranks[i] % 64;
  for (int i = 0; i < SDG_SHM_MASK_WORDS; i++)
    atomic_store_explicit(&mask[i], words[i], memory_order_release);
}
static inline int
sdg_shm_mask_has(const _Atomic(uint64_t) mask[SDG_SHM_MASK_WORDS], int rank) {
  return (int)(atomic_load_explicit(&mask[rank / 64], memory_order_acquire) >>
                   rank % 64 &
               1);
}

/* Reports a failure that the control channel itself detected (sdg_fail) and
 * records it as the job's; returns `status`. */
sdg_status_t sdg_shm_fail(const sdg_shm_view_t *view, int self,
                          sdg_status_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
/* Records a failure of the job; the first one stays. `text` may be the whole
 * of sdg_last_error() or the details alone. */
void sdg_shm_post(const sdg_shm_view_t *view, int rank, sdg_status_t status,
                  const char *text);
/* The failure as it was recorded; 0 while there is none. */
int sdg_shm_posted(const sdg_shm_view_t *view, uint32_t *out_rank,
                   uint32_t *out_status, char out_text[SDG_SHM_TEXT_BYTES]);
/* The job's failure as this rank reports it: SDG_OK when there is none. A
 * failure between ranks (one is lost, stalls, diverges ...) has the same status
 * on every rank; a failure within another rank is SDG_E_PEER_FAILED. Calls
 * sdg_fail only when `report` is set. */
sdg_status_t sdg_shm_failure(const sdg_shm_view_t *view, int self,
                             int report) SDG_MUST_CHECK;

/* Sleeps until *word differs from `seen`, a wake, or 50 ms. */
void sdg_shm_sleep(_Atomic(uint32_t) *word, uint32_t seen);
void sdg_shm_wake(_Atomic(uint32_t) *word);

#endif
