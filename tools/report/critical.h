/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path: on which rank the run's time was spent. */
#ifndef SDG_TOOLS_REPORT_CRITICAL_H
#define SDG_TOOLS_REPORT_CRITICAL_H

#include <stdio.h>

#include "tools/record/recorded.h"

/* Writes the member "critical", after a comma. It is found backwards from the
 * last end of any rank: where a rank's stream waits in a call, the path goes on
 * at the rank that came last to the same call. SDG_E_NO_MEMORY. */
sdg_status_t critical_write(const recorded_t *run, FILE *to) SDG_MUST_CHECK;

#endif
