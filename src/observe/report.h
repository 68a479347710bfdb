/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank did, per kind of call: counted as calls are made, written at
 * exit for `sundog run`. */
#ifndef SDG_SRC_OBSERVE_REPORT_H
#define SDG_SRC_OBSERVE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/plan/plan.h"

/* One kind of tagged call: entry, rule section, strategy. */
typedef struct sdg_report_row sdg_report_row_t;

/* The calling thread's row of this kind, made on first use; NULL without
 * memory. The strings must live as long as the process. */
sdg_report_row_t *sdg_report_find(const char *entry, const char *section,
                                  const char *strategy);
/* Counts one tagged call and what its plan moves; row may be NULL, plan may be
 * NULL (a query). */
void sdg_report_count(sdg_report_row_t *row, const sdg_plan_t *plan);
/* Counts a call that is not tagged, but for whose sake something moves; row may
 * be NULL. */
void sdg_report_update(sdg_report_row_t *row);
/* Adds what a plan moves to a call that is counted already: all of it; what it
 * receives; what it copies. row may be NULL. */
void sdg_report_moved(sdg_report_row_t *row, const sdg_plan_t *plan);
void sdg_report_received(sdg_report_row_t *row, const sdg_plan_t *plan);
/* The bytes of its sums alone. */
void sdg_report_summed(sdg_report_row_t *row, const sdg_plan_t *plan);
void sdg_report_copied(sdg_report_row_t *row, const sdg_plan_t *plan);
/* Adds time that the host waited for other ranks. */
void sdg_report_wait(sdg_report_row_t *row, int64_t wait_ns);
/* Counts a comparison of values with the other ranks, before its call: bytes
 * that were read, and the time without waits for the ranks. */
void sdg_report_compared(int64_t bytes, int64_t spent_ns);
/* Counts a call that sundog refused. A process that has not joined leaves
 * <SUNDOG_REPORT>/failed-PID, if the option is set, with the thread's last
 * failure. */
void sdg_report_fail(void);
/* Counts a tagged call of which every rank does all, as it is counted. */
void sdg_report_in_full(void);
/* Tagged calls so far, of all threads. */
uint64_t sdg_report_calls(void);

/* What this process saw of the program, for the case that nothing was tagged:
 * calls with tensors, calls that hide them, calls of a process that is no
 * rank. */
typedef enum sdg_saw {
  SDG_SAW_CALL,
  SDG_SAW_OPAQUE,
  SDG_SAW_STRANGER,
  SDG_SAW_COUNT,
} sdg_saw_t;
void sdg_report_saw(sdg_saw_t what);
/* The tensor that the rules miss by so much: the nearest is kept. */
void sdg_report_near(int misses, const char *text);
/* True while another one would be looked at: none is once a call is tagged. */
bool sdg_report_near_wanted(void);

/* This process has joined: makes <SUNDOG_REPORT>/rank-R.json, if the option is
 * set, or rank-R-2.json ... where other processes were the rank before. It is
 * empty until sdg_report_write(), which is for the exit. */
void sdg_report_begin(void);
/* `scratch_bytes`: device memory that sundog used for itself. */
void sdg_report_write(size_t scratch_bytes);
/* Writes <SUNDOG_REPORT>/seen-PID.json, if the option is set and the process
 * saw calls and tagged none. At exit, also of a process that never joined. */
void sdg_report_write_seen(void);

#endif
