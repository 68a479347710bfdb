/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the ranks' reports after a run.
 *
 * Each rank that joined leaves <SUNDOG_REPORT>/rank-N.json at exit:
 *
 *   {"rank": 0, "matched": 123, "in_full": 0, "scratch_bytes": 4096,
 *    "calls": [{"entry": "cudnnConvolutionForward", "rule": "field",
 *               "strategy": "repair", "count": 100, "halo_bytes": 81920,
 *               "sum_bytes": 0, "wait_ns": 1200345,
 *               "copies": {"halo": 81920, "strip": 0, "activation": 0}}]}
 *
 * A process that made calls but tagged none leaves seen-PID.json: the number
 * of calls by kind, and the tensor nearest to the rules. A process that
 * launched its own kernel on the host device leaves unlaunched-PID with the
 * kernel's name. A process whose calls were refused, and that did not join,
 * leaves failed-PID with the message. What became of declared functions is in
 * functions-PID (declared.h).
 *
 * matched: tagged calls; in_full: tagged calls that every rank carried out in
 * full. halo_bytes: bytes received from other ranks. sum_bytes: bytes of the
 * results of sums. wait_ns: time that the host waited for other ranks. copies:
 * bytes copied on the device, by purpose, with any names. Unknown members are
 * ignored. */
#ifndef SDG_TOOLS_RECORD_REPORT_H
#define SDG_TOOLS_RECORD_REPORT_H

#include <stdbool.h>

#include "src/base/status.h"

/* The ranks whose reports are read. */
typedef struct report_ranks {
  int first, end; /* rank first ... end - 1 */
  int size;       /* of the job */
} report_ranks_t;

/* Reads the reports of these ranks in `folder`; prints the table of calls on
 * stderr if `verbose`. If `asked` (a split was asked for), it fails with
 * SDG_E_FUNCTION_ABSENT if no process had a declared function;
 * SDG_E_NOTHING_MATCHED if no rank had a tagged call; SDG_E_REPORT_LOST if some
 * rank had one, and a rank's report is missing or cannot be read; SDG_E_REPORT
 * if the disk is full or the cause is unknown. In any case it fails with
 * SDG_E_CALLS_REFUSED if a kernel was not launched. */
sdg_status_t report_read(const char *folder, report_ranks_t ranks, int asked,
                         bool whole, int verbose) SDG_MUST_CHECK;

#endif
