/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a rank's keys the queries see, as tensors for the arithmetic. Inside
 * rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_MASK_H
#define SDG_RULES_ATTENTION_CALL_MASK_H

#include "rules/kit/subcall.h"

/* Which keys each query sees, and which keys this rank has. Both ranges count
 * from the first key of the whole sequence, and may be empty. */
typedef struct sdg_attention_sight {
  const sdg_range_t *row; /* keys of each query; [0, 0): no key */
  int64_t rows;
  sdg_range_t keys;
} sdg_attention_sight_t;

/* Tensors of type float or double. They exist if `some` is true; `seen` exists
 * only if the rank also has keys. */
typedef struct sdg_attention_mask {
  bool some; /* some query does not see all of this rank's keys, or the rank has
              * no keys */
  bool away; /* some queries see none of this rank's keys */
  bool lost; /* some queries see no key on any rank: their result is 0 */
  /* Upper bound of the scores: -inf for a key that the query does not see, else
   * infinity. For a query that sees none of this rank's keys: infinity for all
   * of them. Shape: queries x keys x 1 x 1. */
  sdg_subcall_tensor_t seen;
  /* Lower bound of the scores: 0 for a query that sees none of this rank's
   * keys, which sets all its scores to 0; else -inf. Shape: queries x 1 x 1 x
   * 1. */
  sdg_subcall_tensor_t least;
  /* Added to each row maximum: -inf if the query sees only keys of other ranks,
   * else 0. Shape: queries x 1 x 1 x 1. */
  sdg_subcall_tensor_t max;
  /* Factor for each query's result: 0 if the query sees no key on any rank,
   * else 1. Shape: queries x 1 x 1 x 1. */
  sdg_subcall_tensor_t share;
} sdg_attention_mask_t;

/* Adds the steps that compute the mask to the plan. Indices of keys are floats
 * there, so a rank may have at most SDG_ATTENTION_MASK_KEYS keys. */
enum { SDG_ATTENTION_MASK_KEYS = 1 << 22 };
sdg_status_t sdg_attention_mask_add(sdg_plan_t *plan,
                                    const sdg_attention_sight_t *sight,
                                    sdg_type_t type,
                                    sdg_attention_mask_t *out) SDG_MUST_CHECK;

#endif
