/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_RECORD: what a rank did with each tagged call, and why, for `sundog
 * explain CALL`. */
#ifndef SDG_RULES_OBSERVE_RUN_RECORD_H
#define SDG_RULES_OBSERVE_RUN_RECORD_H

#include <stdbool.h>

#include "rules/place/op.h"
#include "src/observe/report.h"

/* Writes what is done with calls of this kind to <SUNDOG_RECORD>/rank-R, as a
 * line {"plan":NUMBER,...}, unless it is already there, and returns the number;
 * 0 if nothing is recorded. `plan` is NULL for a query. Any thread may call it.
 */
int sdg_run_record_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        const sdg_plan_t *plan);

/* This thread's call begins. */
void sdg_run_record_begin(void);
/* This thread's call uses that plan. */
void sdg_run_record_use(int plan);
/* This thread's call is captured into a graph: it moves nothing now. */
void sdg_run_record_captured(void);
/* This thread's call ends: writes a line {"call":...} with when it began, how
 * long it took the host, the bytes of its plan, and the plan that was used
 * since its beginning or, if it failed, the last error; where its first output
 * is and, of convolutions, its first input. */
void sdg_run_record_call(const sdg_call_t *call, bool failed);
/* Whole view: begin and end enclose the transfers that the call before has
 * caused, because every rank makes it in full. They name its plan. */
void sdg_run_record_cause_begin(void);
void sdg_run_record_cause_end(void);
/* A moment of this thread. */
typedef struct sdg_run_mark {
  uint64_t at_ns;
  sdg_report_tally_t tally;
} sdg_run_mark_t;
sdg_run_mark_t sdg_run_record_mark(void);
/* A transfer that a call without a section caused, or a result that the program
 * may read at once, was enqueued since then: writes a line {"update":WHY,...},
 * with the plan of the call that is under way. */
void sdg_run_record_update(const char *why, const sdg_run_mark_t *since);
/* At exit: writes buffered times. */
void sdg_run_record_finish(void);

/* In a forked child: drops the record, which belongs to the parent. Allocates
 * nothing and does not wait. */
void sdg_run_record_drop(void);

#endif
