/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the operands of a call can be read in one way only, in the shard
 * view. Inside rules/ only. */
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
