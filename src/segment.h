/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of one node share: its layout, its making, and
 * which ranks are alive.
 *
 * It is a memfd: no name, no other user, gone with the last process. Every
 * value read from it is another process's word: indices and lengths taken
 * from it are checked before use. */
#ifndef SDG_SRC_SEGMENT_H
#define SDG_SRC_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/control.h"
#include "src/status.h"

enum {
  SDG_SEGMENT_RANKS = 256, /* of one node; half a megabyte each */
  SDG_SEGMENT_LANES = 8,   /* groups that a rank is in, per channel */
  SDG_SEGMENT_TEXT_BYTES = 1024,
  SDG_SEGMENT_STEPS = 1024,    /* calls back that ranks can be compared */
  SDG_SEGMENT_TURNS = 1024,    /* that the first rank of a group is ahead */
  SDG_SEGMENT_NAME_BYTES = 32, /* of a thread */
  SDG_SEGMENT_WHAT_WORDS = 12, /* of 8 bytes: the name of a call */
  SDG_SEGMENT_WHAT_BYTES = SDG_SEGMENT_WHAT_WORDS * 8,
};

typedef struct sdg_segment_record {
  uint32_t bytes;
  char data[SDG_CONTROL_RECORD_BYTES];
} sdg_segment_record_t;

/* What one rank says on one channel. Each group of ranks it exchanges with has
 * a lane of its own, claimed at the first exchange and kept. */
typedef struct sdg_segment_channel {
  /* Exchanges published on all lanes; a futex word. */
  _Alignas(64) _Atomic(uint32_t) published;
  _Atomic(uint32_t) sleepers; /* waiters in futex on `published` */
  /* Exchanges published on each lane, modulo 2^32. Release: record[lane][
   * number % 2] is complete. */
  _Atomic(uint32_t) number[SDG_SEGMENT_LANES];
  _Alignas(64) _Atomic(uint64_t) group[SDG_SEGMENT_LANES]; /* hash; 0: free */

  /* Tagged calls and the name of the last; `version` is odd while `what` is
   * being written. */
  _Alignas(64) _Atomic(uint32_t) version;
  _Atomic(uint64_t) calls;
  _Atomic(uint64_t) what[SDG_SEGMENT_WHAT_WORDS];

  /* The last calls carried out: number << 32 | a hash of the call, in
   * step[number % SDG_SEGMENT_STEPS]. */
  _Alignas(64) _Atomic(uint64_t) step[SDG_SEGMENT_STEPS];
  _Atomic(uint64_t) steps_end; /* of all: number << 32 | hash; 0: not yet */

  _Alignas(64) sdg_segment_record_t record[SDG_SEGMENT_LANES][2];
} sdg_segment_channel_t;

typedef enum sdg_segment_state {
  SDG_SEGMENT_ABSENT,
  SDG_SEGMENT_JOINED,
  SDG_SEGMENT_LEFT,
} sdg_segment_state_t;

/* The order in which the threads of a group's ranks launch transfers
 * (src/turn.h), told by the group's first rank. Turn n is that of the thread
 * with channel turn[n % SDG_SEGMENT_TURNS], valid once `given` > n. */
typedef struct sdg_segment_turns {
  _Alignas(64) _Atomic(uint64_t) given;
  _Alignas(64) _Atomic(uint64_t) taken; /* that this rank has launched */
  _Atomic(uint8_t) turn[SDG_SEGMENT_TURNS];
} sdg_segment_turns_t;

typedef struct sdg_segment_rank {
  _Alignas(64) _Atomic(uint32_t) state;
  _Atomic(int32_t) pid; /* in the rank's own pid namespace */
  sdg_segment_turns_t turns;
  sdg_segment_channel_t channel[SDG_CONTROL_CHANNELS];
} sdg_segment_rank_t;

/* The first failure of the job. */
typedef struct sdg_segment_failure {
  _Atomic(uint32_t) posted; /* 0 none, 1 being written, 2 complete */
  int32_t rank;             /* who reports */
  uint32_t status;
  char text[SDG_SEGMENT_TEXT_BYTES];
} sdg_segment_failure_t;

/* The name of the thread that has a channel, on every rank. */
typedef struct sdg_segment_name {
  _Atomic(uint32_t) state; /* 0 free, 1 being written, 2 complete, for good */
  char text[SDG_SEGMENT_NAME_BYTES];
} sdg_segment_name_t;

typedef struct sdg_segment {
  uint64_t magic;
  uint32_t layout;
  uint32_t ranks;
  _Alignas(64) _Atomic(uint32_t) joins; /* a futex word: ranks joined so far */
  _Alignas(64) sdg_segment_failure_t failure;
  sdg_segment_name_t name[SDG_CONTROL_THREADS]; /* [0]: none, never written */
  sdg_segment_rank_t rank[];
} sdg_segment_t;

/* Two processes understand each other if this number is the same. */
uint32_t sdg_segment_layout(void);

/* A process's view of the segment. Owned by its creator; the functions below
 * are thread-safe once it is made. */
typedef struct sdg_segment_view {
  sdg_segment_t *shared;
  size_t bytes;
  int ranks;
  int fd; /* the memfd; a lock on byte r is rank r's sign of life */
  dev_t device;
  ino_t inode;
} sdg_segment_view_t;

/* A new segment for `ranks` ranks, every page allocated. */
sdg_status_t sdg_segment_create(int ranks,
                                sdg_segment_view_t *out_view) SDG_MUST_CHECK;
/* Maps the segment that another process sent; takes over `fd`. */
sdg_status_t sdg_segment_map(int fd, int ranks,
                             sdg_segment_view_t *out_view) SDG_MUST_CHECK;
/* Unmaps and closes; of the calling process only. */
void sdg_segment_fini(sdg_segment_view_t *view);

/* Marks `rank` as joined: takes its lock, wakes those who wait for it. */
sdg_status_t sdg_segment_enter(const sdg_segment_view_t *view,
                               int rank) SDG_MUST_CHECK;
/* 1 when the process that entered as `rank` (not the caller's own) exists:
 * not dead, not a zombie, not another program by exec. */
int sdg_segment_alive(const sdg_segment_view_t *view, int rank);
/* 1 when that process is stopped by a signal or a debugger. */
int sdg_segment_stopped(const sdg_segment_view_t *view, int rank);
sdg_segment_state_t sdg_segment_state(const sdg_segment_view_t *view, int rank);

/* Reports a failure that the control channel itself detected (sdg_fail) and
 * records it as the job's; returns `status`. */
sdg_status_t sdg_segment_fail(const sdg_segment_view_t *view, int self,
                              sdg_status_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
/* Records a failure of the job; the first one stays. `text` may be the whole
 * of sdg_last_error() or the details alone. */
void sdg_segment_post(const sdg_segment_view_t *view, int rank,
                      sdg_status_t status, const char *text);
/* The job's failure as this rank reports it: SDG_OK when there is none. A
 * failure between ranks (one is lost, stalls, diverges ...) has the same status
 * on every rank; a failure within another rank is SDG_E_PEER_FAILED. Calls
 * sdg_fail only when `report` is set. */
sdg_status_t sdg_segment_failure(const sdg_segment_view_t *view, int self,
                                 int report) SDG_MUST_CHECK;

/* Sleeps until *word differs from `seen`, a wake, or 50 ms. */
void sdg_segment_sleep(_Atomic(uint32_t) *word, uint32_t seen);
void sdg_segment_wake(_Atomic(uint32_t) *word);

#endif
