/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks reported, read back after a run.
 *
 * Each rank that joined leaves <SUNDOG_REPORT>/rank-N.json at exit:
 *
 *   {"rank": 0, "matched": 123, "in_full": 0, "scratch_bytes": 4096,
 *    "calls": [{"entry": "cudnnConvolutionForward", "rule": "field",
 *               "strategy": "repair", "count": 100, "halo_bytes": 81920,
 *               "sum_bytes": 0, "wait_ns": 1200345,
 *               "copies": {"halo": 81920, "strip": 0, "activation": 0}}]}
 *
 * A process that saw calls and tagged none leaves seen-PID.json, with how many
 * it saw of which kind and the tensor nearest to the rules. One that launched a
 * kernel of its own on the host device leaves unlaunched-PID with the kernel's
 * name, one that was refused calls and did not join failed-PID with what was
 * said.
 *
 * matched: tagged calls; in_full: those of which every rank did all.
 * halo_bytes: received from other ranks. sum_bytes: of the results of sums.
 * wait_ns: time the host waited for others. copies: bytes copied on the device,
 * by purpose; any names. Members that are not known are ignored. */
#ifndef SDG_TOOLS_RECORD_REPORT_H
#define SDG_TOOLS_RECORD_REPORT_H

#include <stdbool.h>

#include "src/base/status.h"

/* Whose reports are read. */
typedef struct report_ranks {
  int first, end; /* rank first ... end - 1 */
  int size;       /* of the job */
} report_ranks_t;

/* Reads the reports of these ranks in `folder`; prints the table of call
 * kinds on stderr if `verbose`. Reports, when `asked` (a split was asked for),
 * SDG_E_NOTHING_MATCHED if no rank had a tagged call, SDG_E_REPORT_LOST if some
 * had and a rank left no report or one that cannot be read, SDG_E_REPORT if
 * that is because the disk is full, or nothing else is known; asked or not,
 * SDG_E_CALLS_REFUSED if a kernel was not launched. */
sdg_status_t report_read(const char *folder, report_ranks_t ranks, int asked,
                         bool whole, int verbose) SDG_MUST_CHECK;

#endif
