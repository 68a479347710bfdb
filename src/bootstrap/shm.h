/* SPDX-License-Identifier: Apache-2.0 */
/* The memory through which the ranks of a job see each other: its layout, its
 * creation, and which ranks are alive.
 *
 * On one node the ranks share it: a memfd without a name, inaccessible to
 * other users, freed with the last process. Between nodes each process has a
 * replica of its own: it writes its own row, and the TCP thread
 * (src/control/tcp.h) writes the others'. Another process wrote every value
 * that is read from it, so indices and lengths are checked before use. */
#ifndef SDG_SRC_BOOTSTRAP_SHM_H
#define SDG_SRC_BOOTSTRAP_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "src/base/channel.h"
#include "src/base/fd.h"
#include "src/base/status.h"

enum {
  SDG_SHM_RANKS = 256, /* most ranks of a job; half a megabyte each */
  SDG_SHM_MASK_WORDS = SDG_SHM_RANKS / 64,
  SDG_SHM_LANES = 8, /* most groups of one rank, per channel */
  SDG_SHM_TEXT_BYTES = 1024,
  SDG_SHM_STEPS = 1024, /* how many calls back ranks can be compared */
  /* How many turns the first rank of a group may be ahead. */
  SDG_SHM_TURNS = 1024,
  SDG_SHM_NAME_BYTES = 32, /* longest name of a thread, NUL included */
  SDG_SHM_WHAT_WORDS = 12, /* words of 8 bytes for the name of a call */
  SDG_SHM_WHAT_BYTES = SDG_SHM_WHAT_WORDS * 8,
};

typedef struct sdg_shm_record {
  uint32_t bytes;
  char data[SDG_CHANNEL_RECORD_BYTES];
} sdg_shm_record_t;

/* What one rank publishes on one channel. Each group of ranks that it
 * exchanges with has its own lane, claimed at the first exchange and kept. */
typedef struct sdg_shm_channel {
  /* Exchanges published on all lanes; waiters sleep on this futex word. */
  _Alignas(64) _Atomic(uint32_t) published;
  _Atomic(uint32_t) sleepers; /* threads asleep on `published` */
  /* Exchanges published on each lane, modulo 2^32. Release:
   * record[lane][number % 2] is complete. */
  _Atomic(uint32_t) number[SDG_SHM_LANES];
  _Alignas(64) _Atomic(uint64_t) group[SDG_SHM_LANES]; /* hash; 0: free */

  /* The number of tagged calls and the name of the last; `version` is odd
   * while `what` is being written. */
  _Alignas(64) _Atomic(uint32_t) version;
  _Atomic(uint64_t) calls;
  _Atomic(uint64_t) what[SDG_SHM_WHAT_WORDS];

  /* The last ops carried out: step[number % SDG_SHM_STEPS] is number << 32 | a
   * hash of the op (sdg_shm_steps_differ). */
  _Alignas(64) _Atomic(uint64_t) step[SDG_SHM_STEPS];
  _Atomic(uint64_t) steps_end; /* all ops: number << 32 | hash; 0: not yet */

  /* Only in a replica. This rank's row, for the TCP thread: the number of the
   * last step, the ranks to compare steps with, and the members of each lane's
   * group. From the TCP thread, in `differs`: 1 + a rank whose steps differ. */
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
  /* Replica only: rank 0 knows the rank, but it is not connected to this rank
   * yet. */
  SDG_SHM_COMING,
} sdg_shm_state_t;

/* In a replica, these stand in place of a rank's process number. */
enum { SDG_SHM_DEAD = 0, SDG_SHM_UNREACHABLE = -1 };

/* The order in which the threads of a group's ranks launch transfers
 * (src/job/launch_order.h), published by the group's first rank. Turn n
 * belongs to the thread with channel turn[n % SDG_SHM_TURNS]; valid once
 * `given` > n. */
typedef struct sdg_shm_turns {
  _Alignas(64) _Atomic(uint64_t) given;
  _Alignas(64) _Atomic(uint64_t) taken; /* turns that this rank has launched */
  _Atomic(uint8_t) turn[SDG_SHM_TURNS];
} sdg_shm_turns_t;

typedef struct sdg_shm_rank {
  _Alignas(64) _Atomic(uint32_t) state;
  _Atomic(int32_t) pid; /* in the rank's own pid namespace */
  sdg_shm_turns_t turns;
  /* Only in a replica, in this rank's row: a thread's name for which rank 0
   * must assign a channel. `asked` counts the questions, `asked_sent` the
   * questions that have been sent; until then `name` must not change. */
  _Atomic(uint32_t) asked, asked_sent;
  char name[SDG_SHM_NAME_BYTES];
  sdg_shm_channel_t channel[SDG_CHANNELS];
} sdg_shm_rank_t;

/* The first failure of the job. */
typedef struct sdg_shm_failure {
  _Atomic(uint32_t) posted; /* 0 none, 1 being written, 2 complete */
  int32_t rank;             /* the rank that reports */
  uint32_t status;
  char text[SDG_SHM_TEXT_BYTES];
} sdg_shm_failure_t;

/* The name of the thread that has a channel; the same on every rank. */
typedef struct sdg_shm_name {
  _Atomic(uint32_t) state; /* 0 free, 1 being written, 2 complete and final */
  char text[SDG_SHM_NAME_BYTES];
} sdg_shm_name_t;

typedef struct sdg_shm {
  uint64_t magic;
  uint32_t layout;
  uint32_t ranks;
  /* Futex word: number of ranks that have joined. */
  _Alignas(64) _Atomic(uint32_t) joins;
  _Alignas(64) sdg_shm_failure_t failure;
  sdg_shm_name_t name[SDG_CHANNEL_THREADS]; /* [0] is never written */
  sdg_shm_rank_t rank[];
} sdg_shm_t;

/* Returns a number that identifies the layout; two processes can share memory
 * only if theirs are equal. */
uint32_t sdg_shm_layout(void);

/* A process's view of the segment. Owned by its creator; once it is made, the
 * functions below are thread-safe. */
typedef struct sdg_shm_view {
  sdg_shm_t *shared;
  size_t bytes;
  int ranks;
  sdg_fd_t fd; /* the memfd; a lock on byte r shows that rank r is alive */
  /* 1: a replica, private to this process, kept up to date by the TCP thread */
  int mirror;
  /* Replica only: a pipe; writing to it wakes the TCP thread. */
  sdg_fd_t bell[2];
} sdg_shm_view_t;

/* Creates a segment for `ranks` ranks, with every page allocated. */
sdg_status_t sdg_shm_create(int ranks, sdg_shm_view_t *out_view) SDG_MUST_CHECK;
/* Creates a replica; only pages that are used take memory. */
sdg_status_t sdg_shm_replica(int ranks,
                             sdg_shm_view_t *out_view) SDG_MUST_CHECK;
/* Wakes the TCP thread of a replica after this rank's row has changed. */
void sdg_shm_ring(const sdg_shm_view_t *view);
/* Maps the segment that another process sent; takes over `fd`. */
sdg_status_t sdg_shm_map(int fd, int ranks,
                         sdg_shm_view_t *out_view) SDG_MUST_CHECK;
/* Unmaps and closes, in the calling process only. */
void sdg_shm_fini(sdg_shm_view_t *view);

/* Marks `rank` as joined: takes its lock and wakes the threads that wait for
 * it. */
sdg_status_t sdg_shm_enter(const sdg_shm_view_t *view, int rank) SDG_MUST_CHECK;
/* Returns 1 if the process that joined as `rank` (not the caller's own)
 * exists: not dead, not a zombie, not replaced by exec. */
int sdg_shm_alive(const sdg_shm_view_t *view, int rank);
/* Returns 1 if that process is stopped by a signal or a debugger; always 0 in
 * a replica. */
int sdg_shm_stopped(const sdg_shm_view_t *view, int rank);
sdg_shm_state_t sdg_shm_state(const sdg_shm_view_t *view, int rank);
/* For a rank that is not alive: returns "died" or "cannot be reached any
 * more". */
const char *sdg_shm_end_word(const sdg_shm_view_t *view, int rank);
/* Wakes all threads that wait for `rank`. */
void sdg_shm_wake_all(const sdg_shm_view_t *view, int rank);

/* Publishes a count of calls and the name of the last, at most
 * SDG_SHM_WHAT_BYTES - 1 bytes. One thread at a time per channel. */
void sdg_shm_count(sdg_shm_channel_t *channel, uint64_t calls, const char *what,
                   size_t what_bytes);

/* Whether two ranks' ops of the same number differ; ops of other numbers are
 * not compared. Each half of a hash is compared by itself, and 0 equals any. */
bool sdg_shm_steps_differ(uint64_t a, uint64_t b);

/* Sets of ranks as bit masks. */
void sdg_shm_mask_set(_Atomic(uint64_t) mask[SDG_SHM_MASK_WORDS],
                      const int *ranks, int count);
int sdg_shm_mask_has(const _Atomic(uint64_t) mask[SDG_SHM_MASK_WORDS],
                     int rank);

/* Reports a failure that the control channel itself detected (sdg_fail) and
 * records it as the job's; returns `status`. */
sdg_status_t sdg_shm_fail(const sdg_shm_view_t *view, int self,
                          sdg_status_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
/* Records a failure of the job; the first one stays. `text` may be the whole
 * of sdg_last_error() or the details alone. */
void sdg_shm_post(const sdg_shm_view_t *view, int rank, sdg_status_t status,
                  const char *text);
/* Gets the failure as it was recorded; returns 0 if none was. */
int sdg_shm_posted(const sdg_shm_view_t *view, uint32_t *out_rank,
                   uint32_t *out_status, char out_text[SDG_SHM_TEXT_BYTES]);
/* Returns the job's failure as this rank reports it; SDG_OK if none was
 * posted. A failure between ranks (a rank is lost, stalls, diverges ...) has
 * the same status on every rank; a failure inside another rank is
 * SDG_E_PEER_FAILED. Calls sdg_fail only if `report` is set. */
sdg_status_t sdg_shm_failure(const sdg_shm_view_t *view, int self,
                             int report) SDG_MUST_CHECK;

/* Sleeps until *word differs from `seen`, until a wake-up, or for 50 ms. */
void sdg_shm_sleep(_Atomic(uint32_t) *word, uint32_t seen);
void sdg_shm_wake(_Atomic(uint32_t) *word);

#endif
