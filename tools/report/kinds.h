/* SPDX-License-Identifier: Apache-2.0 */
/* The report's kinds of calls: counts, times, and bytes by cause. */
#ifndef SDG_TOOLS_REPORT_KINDS_H
#define SDG_TOOLS_REPORT_KINDS_H

#include "tools/record/recorded.h"

/* Returns a new list of objects; NULL if memory runs out. */
json_t *kinds_make(const recorded_t *run);

/* Returns a new object: bytes received by all ranks, by cause. */
json_t *kinds_causes(const recorded_t *run);

#endif
