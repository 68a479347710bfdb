/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank computes of attention to its own keys, of queries that all ranks
 * have: the weights of these keys, their part of the results, and gradients of
 * them. Inside rules/attention/strategy/merge.c and its own file only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_LOCAL_H
#define SDG_RULES_ATTENTION_STRATEGY_LOCAL_H

#include "rules/attention/call/mask.h"
#include "rules/attention/call/vectors.h"
#include "rules/kit/softmax_merge.h"

/* Queries, keys, values, or the gradient of the output. */
typedef struct sdg_attention_local_part {
  sdg_box_t own, box;        /* what this rank has, and what it computes with */
  sdg_subcall_tensor_t row;  /* the vectors */
  sdg_subcall_tensor_t seen; /* of all heads; of O, of their results */
  sdg_subcall_tensor_t matrices; /* keys, values: of each head */
} sdg_attention_local_part_t;

typedef struct sdg_attention_local {
  sdg_attention_maker_t *m;
  sdg_attention_project_t project;
  sdg_merge_t group;
  int64_t times, groups; /* queries of a sequence; heads of all sequences */
  int64_t keys;          /* this rank's that some query sees */
  bool idle;             /* there are none */
  bool none;             /* there are no queries */
  sdg_range_t *sight;    /* of each query; owned */
  sdg_attention_mask_t mask;
  sdg_attention_local_part_t part[SDG_ATTENTION_PARTS];
  sdg_subcall_tensor_t weights;   /* times x (groups keys): s, then p, then a */
  sdg_subcall_tensor_t by_key;    /* the same as times, keys, groups */
  sdg_subcall_tensor_t results;   /* times x (groups elements) */
  sdg_subcall_tensor_t d_weights; /* as weights */
  /* Gradients of q, k and v as heads see them, rows. */
  sdg_subcall_tensor_t d_seen[SDG_ATTENTION_PARTS];
  sdg_softmax_merge_t shares;
} sdg_attention_local_t;

/* Fills `out`, and adds to the plan what makes p, and this rank's part of the
 * shares. `out` is the caller's to free, also after an error. */
sdg_status_t
sdg_attention_local_open(sdg_attention_maker_t *m,
                         sdg_attention_local_t *out) SDG_MUST_CHECK;
void sdg_attention_local_fini(sdg_attention_local_t *local);

/* Forward: w p v in `results`, 0 where the rank is idle. */
sdg_status_t
sdg_attention_local_results(sdg_attention_local_t *local) SDG_MUST_CHECK;

/* Backward: d_seen, and, for gradients of parameters, `results`; nothing of
 * these where the rank is idle. */
sdg_status_t
sdg_attention_local_back(sdg_attention_local_t *local) SDG_MUST_CHECK;
/* The gradient of the output, and of the heads' results; part of the above. */
sdg_status_t
sdg_attention_local_output(sdg_attention_local_t *local) SDG_MUST_CHECK;

/* Rows of all heads' vectors of a part, one for each vector, of rows with one
 * for each time. */
sdg_status_t sdg_attention_local_rows(const sdg_attention_local_t *local,
                                      int part,
                                      const sdg_subcall_tensor_t *rows,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

#endif
