/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: the time on the device of calls that every rank makes in full,
 * if SUNDOG_RECORD is set. Inside rules/ and interpose/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_FULL_H
#define SDG_RULES_VIEW_WHOLE_FULL_H

#include <stdbool.h>

#include "src/call/call.h"
#include "src/observe/report.h"

/* The program's own call follows, of kind `row`. Failures are none of the
 * program's: the call is then not timed. Not in a capture of a CUDA graph. */
void sdg_full_begin(const sdg_call_t *call, sdg_report_row_t *row);

/* Whether this thread's call is being timed: sdg_full_end has to follow it. */
bool sdg_full_timed(void);
void sdg_full_end(void);

#endif
