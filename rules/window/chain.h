/* SPDX-License-Identifier: Apache-2.0 */
/* A record of this process's windowed calls by their extents: which tensor was
 * computed from which, and with which strides. Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_CHAIN_H
#define SDG_RULES_WINDOW_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/window/window.h"

/* Records that an op computed y_extent elements from x_extent elements in the
 * dimension named `dim`. */
void sdg_chain_note(const char *dim, int64_t x_extent, int64_t y_extent,
                    const sdg_window_t *window);

/* For an op with `window` that computes y_extent elements from x_extent: finds
 * the largest known extent from which x was computed by calls with strides, and
 * a unit. If that extent is cut into `pieces` at multiples of the unit, a
 * program that computes its sizes piece by piece gets the sizes of the whole,
 * down to y. False if no unit has this property. */
bool sdg_chain_unit(const char *dim, int64_t x_extent, int64_t y_extent,
                    const sdg_window_t *window, int pieces, int64_t *out_extent,
                    int64_t *out_unit);

#endif
