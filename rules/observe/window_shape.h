/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a captured call, for records. */
#ifndef SDG_RULES_OBSERVE_WINDOW_SHAPE_H
#define SDG_RULES_OBSERVE_WINDOW_SHAPE_H

#include <stdbool.h>

#include "src/call/call.h"

/* Reads the window from the call's descriptors or section. Returns false if the
 * call has none. */
bool sdg_window_shape(const sdg_call_t *call, sdg_call_window_t *out);

#endif
