/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_RECORD: what streams of the device did for tagged calls, and when. */
#ifndef SDG_SRC_OBSERVE_PHASE_RECORD_H
#define SDG_SRC_OBSERVE_PHASE_RECORD_H

#include <stddef.h>
#include <stdint.h>

/* What a stream does for a call. Phases of the program's stream lie within
 * SDG_PHASE_CALL. */
typedef enum sdg_phase {
  SDG_PHASE_CALL,     /* all that a call enqueues on the program's stream */
  SDG_PHASE_REAL,     /* the real function, on a piece or a strip */
  SDG_PHASE_COPY,     /* copies in device memory, on either stream */
  SDG_PHASE_TRANSFER, /* messages of other ranks, on a stream of their own */
  SDG_PHASE_SUM,      /* a sum over ranks, on the same stream */
  SDG_PHASE_WAIT,     /* the program's stream waits for transfers */
  SDG_PHASE_COUNT,
} sdg_phase_t;

/* Returns the most bytes of a file of SUNDOG_RECORD. */
size_t sdg_phase_record_most(void);

/* Appends [THREAD,CALL,PHASE,AT,TOOK] to <SUNDOG_RECORD>/times-R: the number of
 * the call, of the phase, its begin by CLOCK_MONOTONIC and its length in
 * nanoseconds. Buffered. Nothing more is written once SUNDOG_RECORD_MAX is
 * reached. Any thread. */
void sdg_phase_record(int thread, uint64_t call, sdg_phase_t phase,
                      int64_t at_ns, int64_t took_ns);
void sdg_phase_record_flush(void);
/* In a child made by fork: drops the buffered lines, which belong to the
 * parent. Does not allocate or wait. */
void sdg_phase_record_drop(void);

#endif
