/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a record says can be of a run, so that sums of its numbers stay
 * exact whatever a damaged file says. */
#ifndef SDG_TOOLS_RECORD_BOUNDS_H
#define SDG_TOOLS_RECORD_BOUNDS_H

#include "tools/record/recorded.h"

/* Return false for a line that no rank writes. */
bool bounds_facts(const json_t *facts);
bool bounds_plan(const json_t *line);
bool bounds_call(const json_t *line);
bool bounds_totals(const json_t *totals);
bool bounds_phase(const recorded_phase_t *phase);

/* Returns false if the times or bytes of a rank add up to more than a run can
 * have: 2^52 ns are 52 days, 2^52 bytes 4.5 PB. Calls have their plans. */
bool bounds_rank(const recorded_rank_t *rank);

#endif
