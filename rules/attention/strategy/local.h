/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's attention to its own keys, for queries that all ranks have: the
 * weights of these keys, their part of the results, and the gradients of both.
 * Only local.c and merge.c use it. The letters s, p, w, a are those of the
 * formulas in merge.c. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_LOCAL_H
#define SDG_RULES_ATTENTION_STRATEGY_LOCAL_H

#include "rules/attention/call/mask.h"
#include "rules/attention/call/vectors.h"
#include "rules/kit/softmax_merge.h"

/* The tensors for one of: queries, keys, values, gradient of the output. */
typedef struct sdg_attention_local_part {
  sdg_box_t own, box; /* what this rank has, and what it computes with */
  /* Rows of the operand's vectors; and, projected, of all heads' vectors. For
   * O, `projected` are the gradients of the heads' results. */
  sdg_subcall_tensor_t row;
  sdg_subcall_tensor_t projected;
  sdg_subcall_tensor_t matrices; /* keys, values: a matrix for each group */
} sdg_attention_local_part_t;

typedef struct sdg_attention_local {
  sdg_attention_maker_t *m;
  sdg_attention_project_t project;
  sdg_merge_t group;
  int64_t times;      /* queries of one sequence */
  int64_t groups;     /* heads x sequences */
  int64_t keys;       /* number of this rank's keys that some query sees */
  bool idle;          /* keys is 0 */
  bool none;          /* the call has no queries */
  sdg_range_t *sight; /* keys that each query sees; owned */
  sdg_attention_mask_t mask;
  sdg_attention_local_part_t part[SDG_ATTENTION_PARTS];
  sdg_subcall_tensor_t weights;   /* times x (groups keys): s, then p, then a */
  sdg_subcall_tensor_t by_key;    /* weights seen as times x keys x groups */
  sdg_subcall_tensor_t results;   /* times x (groups elements) */
  sdg_subcall_tensor_t d_weights; /* shape of weights */
  /* Gradients of the projected q, k and v, as rows. */
  sdg_subcall_tensor_t d_projected[SDG_ATTENTION_PARTS];
  sdg_softmax_merge_t shares; /* w */
} sdg_attention_local_t;

/* Fills `out`, and adds to the plan the steps that compute p and this rank's
 * maximum and sum for the shares w. The caller calls
 * sdg_attention_local_fini, also after a failure. */
sdg_status_t
sdg_attention_local_open(sdg_attention_maker_t *m,
                         sdg_attention_local_t *out) SDG_MUST_CHECK;
void sdg_attention_local_fini(sdg_attention_local_t *local);

/* Forward: `results` = w p v, which is 0 if the rank is idle. */
sdg_status_t
sdg_attention_local_results(sdg_attention_local_t *local) SDG_MUST_CHECK;

/* Backward: computes d_projected and, for gradients of parameters, `results`.
 * Computes nothing if the rank is idle. */
sdg_status_t
sdg_attention_local_back(sdg_attention_local_t *local) SDG_MUST_CHECK;
/* Reads the gradient of the output, and computes from it the gradient of the
 * heads' results. sdg_attention_local_back does this, too, unless the rank is
 * idle. */
sdg_status_t
sdg_attention_local_output(sdg_attention_local_t *local) SDG_MUST_CHECK;

/* Views a tensor with one row for each time as rows with the vectors of all
 * heads, one row for each query or key of each sequence. */
sdg_status_t sdg_attention_local_rows(const sdg_attention_local_t *local,
                                      int part,
                                      const sdg_subcall_tensor_t *rows,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

#endif
