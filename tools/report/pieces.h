/* SPDX-License-Identifier: Apache-2.0 */
/* The report's tensors: how their pieces lie in the domain, with halos. */
#ifndef SDG_TOOLS_REPORT_PIECES_H
#define SDG_TOOLS_REPORT_PIECES_H

#include "tools/record/recorded.h"

/* Returns a new list with an object for each class of split tensors, that is of
 * equal extents, parts and element sizes, the largest first; NULL if memory
 * runs out. */
json_t *pieces_make(const recorded_t *run);

#endif
