/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank shows of itself while it runs: totals in memory that `sundog run
 * --progress` shares with its ranks and reads. Writing costs some stores, and
 * no lock, allocation or system call. Without SUNDOG_LIVE nothing is shared. */
#ifndef SDG_SRC_JOB_LIVE_H
#define SDG_SRC_JOB_LIVE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/channel.h"
#include "src/base/status.h"
#include "src/base/stopwatch.h"

enum {
  SDG_LIVE_NAME_WORDS = 8, /* words of 8 bytes for the name of a call */
  SDG_LIVE_NAME_BYTES = SDG_LIVE_NAME_WORDS * 8,
};

/* Of one thread of a rank. Only this thread writes, `in_flight` apart. Totals
 * go on if another process becomes the rank. */
typedef struct sdg_live_thread {
  _Alignas(64) _Atomic(int64_t) calls; /* tagged calls carried out */
  _Atomic(int64_t) received_bytes;     /* from other ranks, without sums */
  _Atomic(int64_t) host_wait_ns;       /* in exchanges that have ended */
  _Atomic(int64_t) stream_wait_ns;     /* of the program's streams, as far as
                                          their events have been collected */
  _Atomic(int64_t) waits_since_ns;     /* begin of the exchange in progress by
                                          CLOCK_MONOTONIC; 0: none */
  /* From the thread that watches transfers: the call whose transfer has not
   * ended; 0: none. */
  _Atomic(uint64_t) in_flight;
  /* The call that the thread has reached: its number, and the entry's name.
   * `version` is odd while they are written. */
  _Alignas(64) _Atomic(uint32_t) version;
  _Atomic(uint64_t) number;
  _Atomic(uint64_t) name[SDG_LIVE_NAME_WORDS];
} sdg_live_thread_t;

typedef enum sdg_live_state {
  SDG_LIVE_ABSENT,
  SDG_LIVE_JOINING, /* it waits for the other ranks to join */
  SDG_LIVE_JOINED,
  SDG_LIVE_LEFT,
} sdg_live_state_t;

typedef struct sdg_live_rank {
  _Alignas(64) _Atomic(uint32_t) state;
  _Atomic(int32_t) pid; /* of the process that has joined last */
  sdg_live_thread_t thread[SDG_CHANNEL_THREADS];
} sdg_live_rank_t;

/* The whole memory. Made by the command (tools/live/totals.h). */
typedef struct sdg_live {
  uint64_t magic;
  uint32_t rank_bytes; /* sizeof(sdg_live_rank_t): the two sides agree */
  uint32_t ranks;
  sdg_live_rank_t rank[];
} sdg_live_t;
#define SDG_LIVE_MAGIC UINT64_C(0x31766c676e757364)

static inline size_t sdg_live_bytes(int ranks) {
  return sizeof(sdg_live_t) + (size_t)ranks * sizeof(sdg_live_rank_t);
}

/* ---- the rank's side ----------------------------------------------------- */

/* Call when the process begins to join as `rank`: maps the memory that
 * SUNDOG_LIVE names, if it is set. Reports SDG_E_LIVE if that fails; the
 * process goes on. */
void sdg_live_begin(int rank);
/* Call when it has joined, or could not. */
void sdg_live_joined(sdg_status_t status);
/* Call when it leaves the job. */
void sdg_live_leave(void);
/* Call in a child made by fork, which is not a rank. */
void sdg_live_forget(void);

/* Call when the calling thread reaches its call of this number. */
void sdg_live_reach(int channel, uint64_t number, const char *entry_name);

extern _Atomic(sdg_live_rank_t *) sdg_live_own; /* NULL: nothing is shared */

/* Returns what the thread with this channel shares; NULL: nothing. */
static inline sdg_live_thread_t *sdg_live_thread(int channel) {
  sdg_live_rank_t *own =
      atomic_load_explicit(&sdg_live_own, memory_order_relaxed);
  return own && channel < SDG_CHANNEL_THREADS ? &own->thread[channel] : NULL;
}

/* Only one thread adds, so an addition is a load and a store. */
static inline void sdg_live_add(_Atomic(int64_t) *total, int64_t more) {
  atomic_store_explicit(
      total, atomic_load_explicit(total, memory_order_relaxed) + more,
      memory_order_relaxed);
}

/* Count for the calling thread: a tagged call, bytes, and a wait of a stream
 * that has ended. */
static inline void sdg_live_call(void) {
  sdg_live_thread_t *live = sdg_live_thread(sdg_channel_get());
  if (live)
    sdg_live_add(&live->calls, 1);
}
static inline void sdg_live_received(int64_t bytes) {
  sdg_live_thread_t *live = sdg_live_thread(sdg_channel_get());
  if (live)
    sdg_live_add(&live->received_bytes, bytes);
}
static inline void sdg_live_stream_wait(int64_t wait_ns) {
  sdg_live_thread_t *live = sdg_live_thread(sdg_channel_get());
  if (live)
    sdg_live_add(&live->stream_wait_ns, wait_ns);
}

/* Around an exchange with other ranks, in which the thread with this channel
 * waits. */
static inline void sdg_live_wait_begin(int channel) {
  sdg_live_thread_t *live = sdg_live_thread(channel);
  if (live)
    atomic_store_explicit(&live->waits_since_ns, (int64_t)sdg_monotonic_ns(),
                          memory_order_relaxed);
}
static inline void sdg_live_wait_end(int channel) {
  sdg_live_thread_t *live = sdg_live_thread(channel);
  if (!live)
    return;
  int64_t took_ns =
      (int64_t)sdg_monotonic_ns() -
      atomic_load_explicit(&live->waits_since_ns, memory_order_relaxed);
  atomic_store_explicit(&live->waits_since_ns, 0, memory_order_relaxed);
  sdg_live_add(&live->host_wait_ns, took_ns);
}

/* The call whose transfer the thread with this channel has in flight; 0: none.
 * Only the thread that watches transfers calls this. */
static inline void sdg_live_flight(int channel, uint64_t number) {
  sdg_live_thread_t *live = sdg_live_thread(channel);
  if (live)
    atomic_store_explicit(&live->in_flight, number, memory_order_relaxed);
}

#endif
