/* SPDX-License-Identifier: Apache-2.0 */
/* Which strategy carries out a call of attention. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_ATTENTION_CHOICE_H
#define SDG_RULES_GRAPH_ATTENTION_CHOICE_H

#include "rules/graph/attention/attention.h"

typedef struct sdg_graph_way {
  const char *strategy, *why; /* string constants */
  sdg_status_t (*make)(sdg_graph_attention_t *a);
} sdg_graph_way_t;

/* By the section's `strategy =`, or, for auto, by the bytes of keys and values
 * that the rank receives that receives most, and by the memory that these take.
 * Says where the work is.
 * Uses only what is equal on all ranks. SDG_E_ATTENTION if the section asks for
 * a strategy that the placements do not allow. */
sdg_status_t sdg_graph_attention_choose(sdg_graph_attention_t *a,
                                        sdg_graph_way_t *out) SDG_MUST_CHECK;

/* Backward: whether some rank has terms of the gradients of keys or values of
 * another. */
bool sdg_graph_attention_sums(const sdg_graph_attention_t *a);

#endif
