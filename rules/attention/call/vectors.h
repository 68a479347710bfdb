/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of a rank's own sequences, as operands have them, and as the heads
 * see them. Inside rules/ only.
 *
 * Rows are one vector after the other, time outermost, packed, in the type of
 * the arithmetic: tensors of n x elements x 1 x 1 (rules/kit/projection.h). The
 * rows of all heads are, with one row for each time, those of groups, one for
 * each head of each sequence. */
#ifndef SDG_RULES_ATTENTION_CALL_VECTORS_H
#define SDG_RULES_ATTENTION_CALL_VECTORS_H

#include "rules/attention/call/project.h"

/* Room for rows. */
sdg_status_t sdg_attention_rows_room(sdg_plan_t *plan, int64_t n,
                                     int64_t elements, sdg_type_t type,
                                     sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Packed numbers with other extents: as many. */
sdg_status_t sdg_attention_rows_as(sdg_plan_t *plan,
                                   const sdg_subcall_tensor_t *rows,
                                   const int64_t extent[4],
                                   sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Rows of `groups` x `each` elements as times x each x groups x 1. */
sdg_status_t
sdg_attention_rows_groups(sdg_plan_t *plan, const sdg_subcall_tensor_t *rows,
                          int64_t times, int64_t groups,
                          sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

/* Rows of `box` of operand `index`; `own`: what this rank has of it. One beam.
 */
sdg_status_t sdg_attention_rows_read(const sdg_attention_project_t *p,
                                     int index, const sdg_box_t *own,
                                     const sdg_box_t *box,
                                     sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* The other way; what is outside of the box, and the rank's own, becomes 0. */
sdg_status_t sdg_attention_rows_store(const sdg_attention_project_t *p,
                                      const sdg_subcall_tensor_t *rows,
                                      int index, const sdg_box_t *own,
                                      const sdg_box_t *box) SDG_MUST_CHECK;

/* Rows of vectors as all heads see them, projected where that is asked for;
 * else each head has them as they are: `out` may be `rows`. Q, K and V. */
sdg_status_t sdg_attention_rows_see(const sdg_attention_project_t *p, int part,
                                    const sdg_subcall_tensor_t *rows,
                                    sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Gradients of that, to those of the vectors. */
sdg_status_t sdg_attention_rows_unsee(const sdg_attention_project_t *p,
                                      int part,
                                      const sdg_subcall_tensor_t *rows,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

/* Rows of groups as a matrix for each group, of `times` x its elements, which
 * is 1 x groups x times x elements; and back. */
sdg_status_t sdg_attention_rows_split(const sdg_attention_project_t *p,
                                      const sdg_subcall_tensor_t *rows,
                                      int64_t times, int64_t groups,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
sdg_status_t sdg_attention_rows_join(const sdg_attention_project_t *p,
                                     const sdg_subcall_tensor_t *matrices,
                                     sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

#endif
