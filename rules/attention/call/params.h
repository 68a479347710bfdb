/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's matrices and biases, out of the weights and back, as the vendor's
 * library says where they lie. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_PARAMS_H
#define SDG_RULES_ATTENTION_CALL_PARAMS_H

#include "rules/attention/call/call.h"
#include "rules/kit/subcall.h"

/* One matrix or bias. Matrices are packed with the sides that are multiplied:
 * rows of the vectors' elements (o: of all heads' results), columns of all
 * heads' (o: of the output's); biases are as one row of columns. */
typedef struct sdg_attention_param {
  bool is_there, is_bias;
  int64_t rows, columns;
  size_t offset_bytes; /* into the weights */
  sdg_box_t box;       /* head, to, from, 1 */
  int64_t stride[4];   /* in the weights, elements */
  int64_t packed[4];   /* in what is multiplied */
} sdg_attention_param_t;

/* SDG_E_VENDOR_CALL. */
sdg_status_t sdg_attention_param_get(const sdg_call_t *call,
                                     const sdg_attention_t *a,
                                     cudnnMultiHeadAttnWeightKind_t kind,
                                     sdg_attention_param_t *out) SDG_MUST_CHECK;

/* The parameter out of operand a->w, packed, of `type`: 1 x 1 x rows x columns,
 * or 1 x columns x 1 x 1. */
sdg_status_t sdg_attention_param_read(sdg_plan_t *plan, const sdg_call_t *call,
                                      const sdg_attention_t *a,
                                      const sdg_attention_param_t *param,
                                      sdg_type_t type,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Room for one like it. */
sdg_status_t sdg_attention_param_room(sdg_plan_t *plan,
                                      const sdg_attention_param_t *param,
                                      sdg_type_t type,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Packed numbers into slab `weights`, which has all parameters of the call's
 * type: in place of what is there, or added to it. */
sdg_status_t sdg_attention_param_write(sdg_plan_t *plan, const sdg_call_t *call,
                                       const sdg_attention_t *a,
                                       const sdg_attention_param_t *param,
                                       const sdg_subcall_tensor_t *from,
                                       int weights, bool adds) SDG_MUST_CHECK;

#endif
