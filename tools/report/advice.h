/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may change so that a run moves less or goes faster. */
#ifndef SDG_TOOLS_REPORT_ADVICE_H
#define SDG_TOOLS_REPORT_ADVICE_H

#include "tools/record/recorded.h"

/* Returns a new list of objects with the members "about" (axis, ranks, parts or
 * keep), "text", "line" (what to write), "effect" and, where they are known,
 * "received_bytes" and "predicted_bytes": of all ranks in the whole run, now
 * and then. It says only what the record proves: bytes are predicted only if
 * all received bytes are those of the formula. NULL if memory runs out. */
json_t *advice_make(const recorded_t *run);

#endif
