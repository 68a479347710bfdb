/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_RECORD: what a rank did with each tagged call, and why, for `sundog
 * explain CALL`. */
#ifndef SDG_RULES_OBSERVE_RUN_RECORD_H
#define SDG_RULES_OBSERVE_RUN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/place/op.h"

/* True if the option is set. */
bool sdg_run_record_wanted(void);

/* Describes what is done with calls of this kind in <SUNDOG_RECORD>/rank-R, as
 * a line {"plan":NUMBER,...}, unless it is there, and returns the number; 0 if
 * nothing is recorded. `plan` is NULL for a query. Any thread. */
int sdg_run_record_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        const sdg_plan_t *plan);

/* That this thread's call is carried out by that plan. */
void sdg_run_record_use(int plan);
/* The end of this thread's call: a line {"call":...} with the plan that was
 * used since its beginning, or, where it failed, the last error. */
void sdg_run_record_call(const char *entry, bool failed);

/* In the child of a fork: the record is the parent's. No allocation, no
 * wait. */
void sdg_run_record_drop(void);

#endif
