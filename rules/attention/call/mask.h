/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a rank's keys queries see, as numbers to calculate with. Inside
 * rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_MASK_H
#define SDG_RULES_ATTENTION_CALL_MASK_H

#include "rules/kit/subcall.h"

/* What queries see of all keys, and what this rank has of these, which may be
 * nothing. */
typedef struct sdg_attention_sight {
  const sdg_range_t *row; /* of each query; [0, 0): nothing */
  int64_t rows;
  sdg_range_t keys;
} sdg_attention_sight_t;

/* Tensors of type float or double. They are there if `some` queries do not see
 * all of these keys; `seen` if there are keys. */
typedef struct sdg_attention_mask {
  bool some;
  bool away; /* some see none of them */
  bool lost; /* some see no key anywhere: their result is 0 */
  /* The most that scores may be, queries x keys x 1 x 1: -inf for what is not
   * seen, else infinity; also for a query that sees none of them. */
  sdg_subcall_tensor_t seen;
  /* The least that they may be, queries x 1 x 1 x 1: 0 for a query that sees
   * none of these keys, of which it also is the most; else -inf. */
  sdg_subcall_tensor_t least;
  /* To add to maxima, likewise: -inf where these keys have no part in the
   * query's result, else 0. */
  sdg_subcall_tensor_t most;
  /* To multiply shares with, likewise: 0 for what is lost, else 1. */
  sdg_subcall_tensor_t share;
} sdg_attention_mask_t;

/* Adds to the plan what makes them. Keys are counted exactly: there are at most
 * SDG_ATTENTION_MASK_KEYS. */
enum { SDG_ATTENTION_MASK_KEYS = 1 << 22 };
sdg_status_t sdg_attention_mask_add(sdg_plan_t *plan,
                                    const sdg_attention_sight_t *sight,
                                    sdg_type_t type,
                                    sdg_attention_mask_t *out) SDG_MUST_CHECK;

#endif
