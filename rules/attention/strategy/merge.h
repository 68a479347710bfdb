/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of queries that every rank has to keys that are split: each rank
 * attends to its own keys, and the results are merged by the ranks' shares in
 * each query's softmax. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_MERGE_H
#define SDG_RULES_ATTENTION_STRATEGY_MERGE_H

#include "rules/attention/call/maker.h"

/* Whether queries and keys are placed like that. */
bool sdg_attention_merge_applies(const sdg_placement_t *queries,
                                 const sdg_placement_t *keys);
/* Why this strategy cannot be used, NULL if it can; the same on every rank.
 * Does not read m->side. */
const char *sdg_attention_merge_obstacle(const sdg_attention_maker_t *m);

/* Adds all steps of the call to a plan opened by sdg_subcalls_open(); m->merges
 * is true. The program's reserve space is not used: gradients recompute the
 * weights. */
sdg_status_t sdg_attention_merge_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
