/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks have in common of an operand that is in pieces, or beside such.
 * Inside rules/ only. */
#ifndef SDG_RULES_PLACE_SHARED_H
#define SDG_RULES_PLACE_SHARED_H

#include "rules/place/op.h"

/* By the operand's role and where it is: where an op says nothing of its own
 * (alike() of sdg_op_t). */
sdg_common_t sdg_common_of(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           int index);

#endif
