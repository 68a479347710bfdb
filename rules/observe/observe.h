/* SPDX-License-Identifier: Apache-2.0 */
/* The records of every call that options ask for: inspect.h, values.h,
 * run_record.h and src/observe/trace.h. Their functions need not be called
 * unless sdg_options_get()->observing is set. */
#ifndef SDG_RULES_OBSERVE_OBSERVE_H
#define SDG_RULES_OBSERVE_OBSERVE_H

#include <stdbool.h>

#include "src/call/call.h"

/* A call was captured, and nothing is decided yet. `knows` is as in
 * sdg_inspect_call(). */
void sdg_observe_begin(const sdg_call_t *call,
                       bool (*knows)(const sdg_call_t *call));
/* Sundog has finished with the call. `done`: it was carried out or refused, and
 * call->result is the program's; otherwise the program's own call follows. */
void sdg_observe_end(const sdg_call_t *call, bool done);

/* At exit: writes buffered data. */
void sdg_observe_finish(void);
/* In a forked child: drops the records, which belong to the parent. Allocates
 * nothing and does not wait. */
void sdg_observe_drop(void);

#endif
