/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's piece of attention, stated as cudnn-frontend states it, with numbers
 * of its own, as an execution plan of cuDNN. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_ATTENTION_PIECE_H
#define SDG_RULES_GRAPH_ATTENTION_PIECE_H

#include "rules/graph/chain/call.h"
#include "rules/graph/composite/composite.h"

typedef struct sdg_attention_tensor {
  bool there;
  cudnnDataType_t type;
  int64_t stride[4]; /* elements; of (batch, heads, rows, columns) */
  int64_t alignment; /* bytes */
} sdg_attention_tensor_t;

/* What to build. A query sees a key iff row + right bound >= column and column
 * + left bound > row; all rows and columns count from 0. */
typedef struct sdg_attention_shape {
  bool backward;
  bool unified; /* the op SDPA_FWD: no bounds, no bias */
  /* Backward: DQ is computed in one order, without a sum in memory. */
  bool deterministic;
  int64_t batch, heads, k_heads, v_heads; /* multiples of the groups' heads */
  int64_t queries, keys, depth, v_depth;
  bool right, left;
  int64_t right_bound, left_bound; /* >= 0; >= 1 */
  bool scales;                     /* there is a scale, by value */
  cudnnDataType_t scale_type;
  float fill; /* what scores that are not seen become */
  /* K is (b, h, s, d) here, whatever the program's graph has. Forward: Q, K, V,
   * O, and STATS, BIAS, LENGTH_Q, LENGTH_KV if wanted. Backward: Q, K, V, O,
   * DO, STATS, DQ, DK, DV, and BIAS, LENGTH_Q, LENGTH_KV. The others have no
   * memory of the caller's: they are in the piece's workspace. */
  sdg_attention_tensor_t tensor[SDG_COMPOSITE_ROLES];
  int64_t bias_dim[4]; /* 1 where it is the same for all */
} sdg_attention_shape_t;

typedef struct sdg_attention_piece {
  size_t workspace_bytes; /* of cuDNN's plan, and of the tensors that have no
                             memory of the caller's */
  struct sdg_attention_parts *parts; /* owned */
} sdg_attention_piece_t;

/* Builds the graph, and a plan as sdg_graph_piece_create does. *out_refusal:
 * cuDNN's status if no engine takes it; then *out is NULL and the result
 * SDG_OK. SDG_E_NO_MEMORY. The caller owns *out. */
sdg_status_t sdg_attention_piece_create(const sdg_attention_shape_t *shape,
                                        const sdg_call_t *call,
                                        sdg_attention_piece_t **out,
                                        int *out_refusal) SDG_MUST_CHECK;
/* NULL is allowed. */
void sdg_attention_piece_destroy(sdg_attention_piece_t *piece);

/* Runs it on the handle's stream, and writes zeros where cuDNN adds up, on that
 * stream, too. pointer[role]: device memory of the shape's tensors. `scale`:
 * host memory of scale_type, NULL without a scale; read before the return.
 * `workspace`: aligned to 256 bytes. Returns cuDNN's status. */
int sdg_attention_piece_run(sdg_attention_piece_t *piece, cudnnHandle_t handle,
                            void *const pointer[SDG_COMPOSITE_ROLES],
                            const void *scale, void *workspace);

#endif
