/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensor of the program that comes nearest to a match with the rules,
 * for the message that no tensor was tagged. */
#ifndef SDG_RULES_VIEW_NEAREST_H
#define SDG_RULES_VIEW_NEAREST_H

#include "src/call/call.h"

/* Looks at the tensors of a call that is not tagged, and reports the one that
 * fails fewest words of a [shard] section (sdg_report_near). */
void sdg_nearest_note(const sdg_call_t *call);

#endif
