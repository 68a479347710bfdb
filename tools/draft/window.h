/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a split on a call with a sliding window. */
#ifndef SDG_TOOLS_DRAFT_WINDOW_H
#define SDG_TOOLS_DRAFT_WINDOW_H

#include "tools/draft/candidate.h"

/*
 * Judges a convolution or pooling: adds its bytes of halos, alignment and
 * faults to the candidate. `steps` as in candidate_judge_all().
 * */
sdg_status_t window_judge(const calls_t *calls, const seen_call_t *call,
                          int64_t steps,
                          candidate_t *io_candidate) SDG_MUST_CHECK;

#endif
