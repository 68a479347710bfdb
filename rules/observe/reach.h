/* SPDX-License-Identifier: Apache-2.0 */
/* Whether results of a pure function see farther than its section says, for
 * `sundog verify --calls`. */
#ifndef SDG_RULES_OBSERVE_REACH_H
#define SDG_RULES_OBSERVE_REACH_H

#include "src/call/call.h"

/* Tries a call of a function that says `pure = yes`, before it is made, if
 * SUNDOG_VALUES is set and it is one of the first SUNDOG_VALUES_CALLS of these
 * calls, and one of the first eight of this function: calls the function on
 * copies of its tensors, with elements beyond the reach changed. Writes what it
 * finds to <SUNDOG_VALUES>/reach-RANK, one line for each split dimension.
 * Nothing of the program's memory changes. */
void sdg_reach_try(const sdg_call_t *call);

/* In a forked child: writes nothing. Allocates nothing and does not wait. */
void sdg_reach_drop(void);

#endif
