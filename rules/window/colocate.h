/* SPDX-License-Identifier: Apache-2.0 */
/* Where an op with windows has its input and its output beside each other.
 * Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_COLOCATE_H
#define SDG_RULES_WINDOW_COLOCATE_H

#include "rules/place/colocate.h"
#include "rules/window/op.h"

/* Has the other of spec->x and spec->y follow `lead`, which is one of them: by
 * the owner of each window's centre, unless the program has cut the same
 * dimensions elsewhere. */
sdg_status_t sdg_window_colocate(sdg_colocation_t *colocation,
                                 const sdg_window_spec_t *spec,
                                 int lead) SDG_MUST_CHECK;

#endif
