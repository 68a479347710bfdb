/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may change so that a run moves less or goes faster. */
#ifndef SDG_TOOLS_REPORT_ADVICE_ADVICE_H
#define SDG_TOOLS_REPORT_ADVICE_ADVICE_H

#include "tools/record/recorded.h"

/* Returns a new list of objects (doc/report.md has their members); NULL if
 * memory runs out. It says only what the record proves. */
json_t *advice_make(const recorded_t *run);

#endif
