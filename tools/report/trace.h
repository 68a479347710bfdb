/* SPDX-License-Identifier: Apache-2.0 */
/* The time line in the format of chrome://tracing, which Perfetto opens. */
#ifndef SDG_TOOLS_REPORT_TRACE_H
#define SDG_TOOLS_REPORT_TRACE_H

#include <stdio.h>

#include "tools/record/recorded.h"

/* Writes all events: a process for each rank, with tracks for its host, its
 * program's stream and its transfers; more of them for more threads, and where
 * events overlap. SDG_E_NO_MEMORY; the caller checks `to` for errors. */
sdg_status_t trace_write(const recorded_t *run, FILE *to) SDG_MUST_CHECK;

#endif
