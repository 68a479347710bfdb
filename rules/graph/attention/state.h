/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as an operation graph, as cudnn-frontend 1.32 states it. Inside
 * rules/graph/attention only. */
#ifndef SDG_RULES_GRAPH_ATTENTION_STATE_H
#define SDG_RULES_GRAPH_ATTENTION_STATE_H

#include "rules/graph/attention/piece.h"
#include "src/graph/graph.h"

enum { SDG_STATE_NUMBERS_MAX = 8 };

typedef struct sdg_attention_state {
  sdg_graph_t *graph;              /* a reference; uids are indices */
  int tensor[SDG_COMPOSITE_ROLES]; /* of the graph; -1: none */
  int scale;                       /* -1: none */
  /* The other by-value tensors, f32 or i32. */
  int numbers, number[SDG_STATE_NUMBERS_MAX];
  union {
    float f32;
    int32_t i32;
  } value[SDG_STATE_NUMBERS_MAX];
} sdg_attention_state_t;

/* DELTA and, if the shape is not deterministic, DQ_SUM of a backward shape are
 * tensors in memory, although the shape does not have them: f32, packed. */
sdg_status_t
sdg_attention_state_init(const sdg_attention_shape_t *shape,
                         sdg_attention_state_t *out) SDG_MUST_CHECK;
void sdg_attention_state_fini(sdg_attention_state_t *state);

#endif
