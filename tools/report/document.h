/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a run as one JSON object; doc/report.md describes it. */
#ifndef SDG_TOOLS_REPORT_DOCUMENT_H
#define SDG_TOOLS_REPORT_DOCUMENT_H

#include <stdio.h>

#include "tools/record/recorded.h"

/* Writes the report. `events`: at most so many events in the time line, 0: all
 * of them. SDG_E_NO_MEMORY; the caller checks `to` for errors. */
sdg_status_t document_write(const recorded_t *run, int64_t events,
                            FILE *to) SDG_MUST_CHECK;

#endif
