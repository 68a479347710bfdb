/* SPDX-License-Identifier: Apache-2.0 */
/* sundog_combine: one number or many, combined over ranks. */
#ifndef SDG_RULES_VIEW_COMBINE_H
#define SDG_RULES_VIEW_COMBINE_H

#include "src/base/status.h"
#include "src/sundog.h"

/* Carries out sundog_combine, whose errors these are. Collective; nothing if
 * the run asked for no split. */
sdg_status_t sdg_combine_values(const void *stream, void *data, size_t count,
                                sundog_type_t type, sundog_op_t op,
                                const char *axes) SDG_MUST_CHECK;

#endif
