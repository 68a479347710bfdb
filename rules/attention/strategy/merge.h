/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy `merge`, where every rank has all queries and the keys are
 * split: each rank attends to its own keys, and the results are added, each
 * times the rank's share of the query's softmax. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_MERGE_H
#define SDG_RULES_ATTENTION_STRATEGY_MERGE_H

#include "rules/attention/call/maker.h"

/* Whether the placements are such: the time of the queries is whole and that of
 * the keys cut, and both are cut alike along the batch. */
bool sdg_attention_merge_applies(const sdg_placement_t *queries,
                                 const sdg_placement_t *keys);
/* Whether lengths, beams and the number of scores permit this strategy; the
 * same on every rank. Needs m->rows and the lengths, not m->side. */
bool sdg_attention_merge_can(const sdg_attention_maker_t *m);

/* Adds all steps of the call to a plan opened by sdg_subcalls_open(); m->merges
 * is true. The program's reserve space is not used: gradients recompute the
 * weights. */
sdg_status_t sdg_attention_merge_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
