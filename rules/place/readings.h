/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: checks that the sizes of a call's operands have only one meaning.
 * Inside rules/ only. */
#ifndef SDG_RULES_PLACE_READINGS_H
#define SDG_RULES_PLACE_READINGS_H

#include "rules/place/colocate.h"

/* Checks operands that fit: SDG_E_READINGS if an operand's pieces lie elsewhere
 * by its own section; SDG_E_SIZES_READ if an operand without a tag or section
 * has another size by another reading, and all the others fit that, too. */
sdg_status_t sdg_readings_check(const sdg_colocation_t *colocation,
                                const sdg_rules_t *rules,
                                const sdg_op_t *op) SDG_MUST_CHECK;

#endif
