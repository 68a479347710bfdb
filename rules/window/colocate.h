/* SPDX-License-Identifier: Apache-2.0 */
/* Colocates the input and the output of an op with windows. Inside rules/
 * only. */
#ifndef SDG_RULES_WINDOW_COLOCATE_H
#define SDG_RULES_WINDOW_COLOCATE_H

#include "rules/place/colocate.h"
#include "rules/window/op.h"

/* `lead` is spec->x or spec->y; the other operand follows it: each output is
 * placed with the owner of its window's centre, unless the program has cut the
 * same dimensions elsewhere. */
sdg_status_t sdg_window_colocate(sdg_colocation_t *colocation,
                                 const sdg_window_spec_t *spec,
                                 int lead) SDG_MUST_CHECK;

#endif
