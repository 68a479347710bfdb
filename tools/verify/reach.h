/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a run found about the reach of functions
 * (rules/observe/reach.h). */
#ifndef SDG_TOOLS_VERIFY_REACH_H
#define SDG_TOOLS_VERIFY_REACH_H

#include <stdbool.h>

#include "rules/file/file.h"

/* Reads what `ranks` ranks have written into `folder`, and prints a line for
 * each function of the rules and each dimension of its reach: not disproved, or
 * why it was not checked. *out_disproved: some call saw farther; that is
 * reported as SDG_E_REACH. `calls`: how many calls were tried at most.
 * *out_tried: the number of dimensions of functions that were. */
sdg_status_t reaches_print(const char *folder, int ranks, int calls,
                           const sdg_rules_t *rules, int *out_tried,
                           bool *out_disproved) SDG_MUST_CHECK;

#endif
