/* SPDX-License-Identifier: Apache-2.0 */
/* The advisers: each looks at a run for one thing to change, and adds its
 * advice to the list, or nothing where the record does not prove it. */
#ifndef SDG_TOOLS_REPORT_ADVICE_ADVISERS_H
#define SDG_TOOLS_REPORT_ADVICE_ADVISERS_H

#include "tools/record/recorded.h"

typedef void adviser_t(const recorded_t *run, json_t *list);

adviser_t advise_alone; /* one rank, where calls are too small to share */
adviser_t advise_axis;  /* another dimension whose windows need less */
adviser_t advise_ranks; /* fewer ranks, where pieces are small */
adviser_t advise_parts; /* parts that balance what the ranks compute */
adviser_t advise_keep;  /* halos of x that are fetched twice */
adviser_t advise_op;    /* whole view: ops that `op =` leaves out */
adviser_t advise_full;  /* whole view: calls that every rank makes in full */

#endif
