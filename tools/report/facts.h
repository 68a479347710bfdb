/* SPDX-License-Identifier: Apache-2.0 */
/* The report's facts: command, versions, options, rules, warnings. */
#ifndef SDG_TOOLS_REPORT_FACTS_H
#define SDG_TOOLS_REPORT_FACTS_H

#include "tools/record/recorded.h"

/* Returns a new object; NULL if memory runs out. */
json_t *facts_make(const recorded_t *run);

#endif
