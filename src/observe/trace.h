/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_TRACE: one line per captured call, for people and tests. */
#ifndef SDG_SRC_OBSERVE_TRACE_H
#define SDG_SRC_OBSERVE_TRACE_H

#include <stdbool.h>

#include "src/call/call.h"

/* Appends "NUMBER ENTRY done=STATUS|pass ROLE=EXTENTS ..." (extents joined by
 * x) to the file of SUNDOG_TRACE, which is created at the first line. Does
 * nothing if the option is not set. Any thread; lines of different threads do
 * not mix. */
void sdg_trace_call(const sdg_call_t *call, bool done);

/* Writes the buffered lines. */
void sdg_trace_flush(void);
/* In a child made by fork: drops the buffered lines, which belong to the
 * parent. Does not allocate or wait. */
void sdg_trace_drop(void);

#endif
