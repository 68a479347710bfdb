/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout on split tensors, with the same mask that a single device draws.
 * Inside rules/ only. */
#ifndef SDG_RULES_POINTWISE_DROPOUT_H
#define SDG_RULES_POINTWISE_DROPOUT_H

#include "rules/place/op.h"

/* True for dropout in either direction; false for its query. */
bool sdg_dropout_is(const sdg_call_t *call);

/* See sdg_op_t. */
sdg_status_t sdg_dropout_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) SDG_MUST_CHECK;
/* The size of the program's reserve space in bytes. */
uint64_t sdg_dropout_key(const sdg_call_t *call);
/* The plan. All operands must be cut alike. */
sdg_op_plan_t sdg_dropout_plan SDG_MUST_CHECK;
/* Answers cudnnDropoutGetReserveSpaceSize with the size for the whole
 * tensor. */
sdg_op_answer_t sdg_dropout_answer SDG_MUST_CHECK;

#endif
