/* SPDX-License-Identifier: Apache-2.0 */
/* A split of attention's sequences, and the tensors and products of matrices
 * that must be split with them because a dimension has as many elements as
 * there are tokens. */
#ifndef SDG_TOOLS_DRAFT_COMPANION_H
#define SDG_TOOLS_DRAFT_COMPANION_H

#include "tools/draft/candidate.h"

/* A set of extents that are split. */
typedef struct extents {
  int count;
  int64_t extent[32];
} extents_t;

/* Collects the extents of all sequences of attention. */
void companion_extents(const calls_t *calls, extents_t *out);

/* Judges one call of a split of SEQ, and notes the sections that it needs. */
sdg_status_t companion_judge(const seen_call_t *call, const extents_t *tokens,
                             int64_t steps, candidate_t *out) SDG_MUST_CHECK;

#endif
