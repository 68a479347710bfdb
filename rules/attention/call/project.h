/* SPDX-License-Identifier: Apache-2.0 */
/* The projections of attention (rows of vectors times its matrices), and the
 * gradients of its parameters. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_PROJECT_H
#define SDG_RULES_ATTENTION_CALL_PROJECT_H

#include "rules/attention/call/maker.h"
#include "rules/attention/call/params.h"

/* In the order of cudnnMultiHeadAttnWeightKind_t. */
enum {
  SDG_ATTENTION_PART_Q,
  SDG_ATTENTION_PART_K,
  SDG_ATTENTION_PART_V,
  SDG_ATTENTION_PART_O,
  SDG_ATTENTION_PARTS
};

typedef struct sdg_attention_project {
  sdg_attention_maker_t *m;
  sdg_type_t type; /* of the arithmetic: float or double */
  /* Elements of a head's vector; for O, of a head's result. */
  int64_t each[SDG_ATTENTION_PARTS];
  sdg_attention_param_t matrix[SDG_ATTENTION_PARTS], bias[SDG_ATTENTION_PARTS];
  sdg_subcall_tensor_t w[SDG_ATTENTION_PARTS]; /* the existing matrices */
} sdg_attention_project_t;

/* Fills `each` of sdg_attention_project_t from a descriptor. */
void sdg_attention_project_each(const sdg_attention_descriptor_t *desc,
                                int64_t out[SDG_ATTENTION_PARTS]);

/* Finds the parameters, and adds the steps that read them to the plan. */
sdg_status_t
sdg_attention_project_open(sdg_attention_maker_t *m,
                           sdg_attention_project_t *out) SDG_MUST_CHECK;

/* Rows as in rules/kit/projection.h, for a projection that exists.
 *   right = left W + bias
 *   left = right W^T
 */
sdg_status_t
sdg_attention_project_right(const sdg_attention_project_t *p, int part,
                            const sdg_subcall_tensor_t *left,
                            const sdg_subcall_tensor_t *right) SDG_MUST_CHECK;
sdg_status_t
sdg_attention_project_left(const sdg_attention_project_t *p, int part,
                           const sdg_subcall_tensor_t *left,
                           const sdg_subcall_tensor_t *right) SDG_MUST_CHECK;

/* Gradients of a projection's parameters, if it has them, written to slab
 * `weights`, which holds all parameters; added to the numbers there if `adds`.
 *   gradient of W = left^T right
 *   gradient of the bias = the sum of the rows of right
 */
sdg_status_t sdg_attention_project_matrix(const sdg_attention_project_t *p,
                                          int part,
                                          const sdg_subcall_tensor_t *left,
                                          const sdg_subcall_tensor_t *right,
                                          int weights,
                                          bool adds) SDG_MUST_CHECK;
sdg_status_t sdg_attention_project_bias(const sdg_attention_project_t *p,
                                        int part,
                                        const sdg_subcall_tensor_t *right,
                                        int weights, bool adds) SDG_MUST_CHECK;

#endif
