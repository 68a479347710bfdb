/* SPDX-License-Identifier: Apache-2.0 */
/* What a split means for a call with a sliding window. */
#ifndef SDG_TOOLS_DRAFT_WINDOW_H
#define SDG_TOOLS_DRAFT_WINDOW_H

#include "tools/draft/candidate.h"

/* Adds to the candidate what the call, a convolution or a pooling, means for
 * it: bytes of halos, alignment, faults. `steps` as in candidate_judge_all().
 */
sdg_status_t window_judge(const calls_t *calls, const seen_call_t *call,
                          int64_t steps,
                          candidate_t *io_candidate) SDG_MUST_CHECK;

#endif
