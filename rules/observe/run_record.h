/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_RECORD: what a rank did with each tagged call, and why, for `sundog
 * explain CALL`. */
#ifndef SDG_RULES_OBSERVE_RUN_RECORD_H
#define SDG_RULES_OBSERVE_RUN_RECORD_H

#include <stdbool.h>

#include "rules/place/op.h"

/* Writes what is done with calls of this kind to <SUNDOG_RECORD>/rank-R, as a
 * line {"plan":NUMBER,...}, unless it is already there, and returns the number;
 * 0 if nothing is recorded. `plan` is NULL for a query. Any thread may call it.
 */
int sdg_run_record_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        const sdg_plan_t *plan);

/* This thread's call uses that plan. */
void sdg_run_record_use(int plan);
/* This thread's call ends: writes a line {"call":...} with the plan that was
 * used since its beginning or, if it failed, the last error. */
void sdg_run_record_call(const char *entry, bool failed);

/* In a forked child: drops the record, which belongs to the parent. Allocates
 * nothing and does not wait. */
void sdg_run_record_drop(void);

#endif
