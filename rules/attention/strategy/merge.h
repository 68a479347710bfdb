/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of queries that are on every rank to keys that are in pieces: each
 * rank attends to its own, and the results are merged by the ranks' shares in
 * each query's softmax. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_MERGE_H
#define SDG_RULES_ATTENTION_STRATEGY_MERGE_H

#include "rules/attention/call/maker.h"

/* Whether queries and keys are so. */
bool sdg_attention_merge_applies(const sdg_placement_t *queries,
                                 const sdg_placement_t *keys);
/* Why it cannot be done, NULL if it can; the same on every rank. m->side is not
 * needed. */
const char *sdg_attention_merge_obstacle(const sdg_attention_maker_t *m);

/* All steps of the call, on a plan of sdg_subcalls_open(); m->merges is true.
 * The program's reserve space is not used: gradients compute the weights anew.
 */
sdg_status_t sdg_attention_merge_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
