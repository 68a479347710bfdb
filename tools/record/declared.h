/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the functions that the rules declare were there and were called. Each
 * process leaves <SUNDOG_REPORT>/functions-PID at exit, with a line "called
 * NAME", "unused NAME" or "absent NAME" for each. */
#ifndef SDG_TOOLS_RECORD_DECLARED_H
#define SDG_TOOLS_RECORD_DECLARED_H

#include "src/base/status.h"

/* Fails with SDG_E_FUNCTION_ABSENT if no process had a function; says which
 * ones no process called. */
sdg_status_t declared_check(const char *folder) SDG_MUST_CHECK;

#endif
