/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: other ways to read a call's tensors: as tensors of every rank's
 * own, or as other pieces. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_READINGS_H
#define SDG_RULES_PLACE_READINGS_H

#include "rules/place/colocate.h"

/* Checks operands that fit: SDG_E_READINGS if an operand's pieces lie elsewhere
 * by its own section; SDG_E_SIZES_READ if an operand without a tag or section
 * has another size by another reading, and all the others fit that, too. */
sdg_status_t sdg_readings_check(const sdg_colocation_t *colocation,
                                const sdg_rules_t *rules,
                                const sdg_op_t *op) SDG_MUST_CHECK;

/* *out_can: whether every rank can make the call alone, with tensors that all
 * belong to it: on every rank the op accepts their sizes. Also true if the op
 * cannot tell. `section`: one that would split some of the tensors. */
sdg_status_t sdg_colocate_alone(const sdg_call_t *call, const sdg_op_t *op,
                                const sdg_section_t *section,
                                bool *out_can) SDG_MUST_CHECK;

/* Checks such a call, of which a section splits operand `index`:
 * SDG_E_OWN_OR_PIECES if the sizes are also those of a call on pieces, whose
 * results differ. `by_input`: a section splits an input, so that the call is
 * one on pieces, and a [local] output of the same size in both is whole. */
sdg_status_t sdg_colocate_own_check(const sdg_call_t *call,
                                    const sdg_rules_t *rules,
                                    const sdg_op_t *op, int index,
                                    bool by_input) SDG_MUST_CHECK;

#endif
