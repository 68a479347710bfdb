/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments with which a function works on a piece. */
#ifndef SDG_RULES_FUNCTION_FIT_H
#define SDG_RULES_FUNCTION_FIT_H

#include "rules/function/call.h"
#include "src/geometry/box.h"

/* Changes integers so that every tensor of the call has the extents of `piece`
 * in the dimensions that it has. `piece` has the operands' dimensions. Fails
 * with SDG_E_FUNCTION_PIECE if no integers do. io_integer[i]: argument i. */
sdg_status_t sdg_function_fit(const sdg_function_call_t *call,
                              const sdg_box_t *piece,
                              int64_t *io_integer) SDG_MUST_CHECK;

/* The strides that the function expects of a tensor, in the dimensions of its
 * operand; 1 in those that it lacks. Fails with SDG_E_FUNCTION_PIECE if they
 * let elements of `piece` overlap. */
sdg_status_t sdg_function_strides(const sdg_function_t *function, int tensor,
                                  const sdg_box_t *piece,
                                  const int64_t *integer,
                                  int64_t *out_stride) SDG_MUST_CHECK;

#endif
