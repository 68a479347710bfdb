/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of a rank's own sequences, in the operands' layout and in the layout
 * for the arithmetic of the heads. Inside rules/ only.
 *
 * Rows are vectors stored one after the other, time outermost, packed, in the
 * type of the arithmetic: a tensor of n x elements x 1 x 1
 * (rules/kit/projection.h). Such a tensor may also have one row for each time,
 * which then contains the vectors of all heads of all sequences: it consists of
 * `groups` vectors, one for each head of each sequence. */
#ifndef SDG_RULES_ATTENTION_CALL_VECTORS_H
#define SDG_RULES_ATTENTION_CALL_VECTORS_H

#include "rules/attention/call/project.h"

/* Adds scratch for `n` rows of `elements` elements. */
sdg_status_t sdg_attention_rows_room(sdg_plan_t *plan, int64_t n,
                                     int64_t elements, sdg_type_t type,
                                     sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Views the packed memory of `rows` as a tensor with other extents, which must
 * have as many elements. */
sdg_status_t sdg_attention_rows_as(sdg_plan_t *plan,
                                   const sdg_subcall_tensor_t *rows,
                                   const int64_t extent[4],
                                   sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Rows of `groups` x `each` elements as a tensor of times x each x groups x
 * 1. */
sdg_status_t
sdg_attention_rows_groups(sdg_plan_t *plan, const sdg_subcall_tensor_t *rows,
                          int64_t times, int64_t groups,
                          sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

/* Reads `box` of operand `index` into new scratch, as rows. `own` is the box of
 * the operand that this rank has. Only for operands with one beam. */
sdg_status_t sdg_attention_rows_read(const sdg_attention_project_t *p,
                                     int index, const sdg_box_t *own,
                                     const sdg_box_t *box,
                                     sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Writes rows to `box` of operand `index`. The elements of `own` outside of
 * `box` become 0. */
sdg_status_t sdg_attention_rows_store(const sdg_attention_project_t *p,
                                      const sdg_subcall_tensor_t *rows,
                                      int index, const sdg_box_t *own,
                                      const sdg_box_t *box) SDG_MUST_CHECK;

/* Projects rows of vectors for all heads, if the descriptor has the projection;
 * otherwise every head uses the rows unchanged, and `out` may be `rows`. For Q,
 * K and V. */
sdg_status_t
sdg_attention_rows_project(const sdg_attention_project_t *p, int part,
                           const sdg_subcall_tensor_t *rows,
                           sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* The gradient of sdg_attention_rows_project: from gradients of the projected
 * rows to gradients of the rows. */
sdg_status_t
sdg_attention_rows_project_back(const sdg_attention_project_t *p, int part,
                                const sdg_subcall_tensor_t *rows,
                                sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

/* _split: stores rows of groups as one matrix per group, times x its elements:
 * a tensor of 1 x groups x times x elements. _join: the reverse. */
sdg_status_t sdg_attention_rows_split(const sdg_attention_project_t *p,
                                      const sdg_subcall_tensor_t *rows,
                                      int64_t times, int64_t groups,
                                      sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
sdg_status_t sdg_attention_rows_join(const sdg_attention_project_t *p,
                                     const sdg_subcall_tensor_t *matrices,
                                     sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

#endif
