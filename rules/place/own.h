/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank knows that speaks against a call of its own, of tensors that a
 * [local] section or a tag names, or nothing, in the shard view. Inside rules/
 * only. */
#ifndef SDG_RULES_PLACE_OWN_H
#define SDG_RULES_PLACE_OWN_H

#include "rules/place/op.h"

/* Of a call that is about to be made as it is. SDG_E_ARGUMENT where its
 * parameters are those of a piece; SDG_E_OWN_PIECE, which breaks the job, as
 * the other ranks may know nothing of it, where an op with windows reads memory
 * that a plan wrote in pieces. Descriptors do not tell that: the probes of such
 * ops look at every call while anything is known to be in pieces. */
sdg_status_t sdg_own_check(const sdg_call_t *call,
                           const sdg_op_t *op) SDG_MUST_CHECK;
/* Of a call that is about to be made as it is though nothing names its tensors:
 * SDG_E_PIECE_REDUCED where it reduces memory that a plan wrote in pieces, and
 * nothing says that the values of one piece are meant. */
sdg_status_t sdg_own_check_value(const sdg_call_t *call) SDG_MUST_CHECK;

#endif
