/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attention's matrices and biases from the weights and writes them back.
 * The vendor's library reports their addresses. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_PARAMS_H
#define SDG_RULES_ATTENTION_CALL_PARAMS_H

#include "rules/attention/call/call.h"
#include "rules/kit/subcall.h"

/* One matrix or bias. Matrices are packed as they are multiplied: rows are the
 * vectors' elements (O: the results of all heads), columns the elements of all
 * heads (O: the output). A bias is one row of columns. */
typedef struct sdg_attention_param {
  bool is_there, is_bias;
  int64_t rows, columns;
  size_t offset_bytes; /* into the weights */
  sdg_box_t box;       /* head, to, from, 1 */
  int64_t stride[4];   /* in the weights, elements */
  int64_t packed[4];   /* strides of the packed copy */
} sdg_attention_param_t;

/* Finds one parameter in the weights of a call. It may be absent (is_there is
 * false). SDG_E_VENDOR_CALL if the vendor's library reports an error. */
sdg_status_t sdg_attention_param_get(const sdg_call_t *call,
                                     const sdg_attention_t *a,
                                     cudnnMultiHeadAttnWeightKind_t kind,
                                     sdg_attention_param_t *out) SDG_MUST_CHECK;

/* Copies the parameter from operand a->w to packed scratch of `type`: 1 x 1 x
 * rows x columns, or 1 x columns x 1 x 1. */
sdg_status_t sdg_attention_param_read(sdg_plan_t *plan, const sdg_call_t *call,
                                      const sdg_attention_t *a,
                                      const sdg_attention_param_t *param,
                                      sdg_type_t type,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Adds packed scratch for the parameter, in the shape that
 * sdg_attention_param_read returns. */
sdg_status_t sdg_attention_param_room(sdg_plan_t *plan,
                                      const sdg_attention_param_t *param,
                                      sdg_type_t type,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Copies packed numbers to slab `weights`, which holds all parameters in the
 * call's type; adds them to the old values if `adds`. */
sdg_status_t sdg_attention_param_write(sdg_plan_t *plan, const sdg_call_t *call,
                                       const sdg_attention_t *a,
                                       const sdg_attention_param_t *param,
                                       const sdg_subcall_tensor_t *from,
                                       int weights, bool adds) SDG_MUST_CHECK;

#endif
