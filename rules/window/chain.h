/* SPDX-License-Identifier: Apache-2.0 */
/* The windowed calls of this process so far, by their extents: from which
 * tensor another was made, and by which strides. Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_CHAIN_H
#define SDG_RULES_WINDOW_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/window/window.h"

/* Of a dimension named `dim` an op has made y_extent elements of x_extent. */
void sdg_chain_note(const char *dim, int64_t x_extent, int64_t y_extent,
                    const sdg_window_t *window);

/* Where an op with `window` makes y_extent elements of x_extent: the largest
 * extent known that x comes from by calls with strides, and a unit in whose
 * multiples that has to be cut into `pieces` so that who computes sizes piece
 * by piece gets those of the whole, from there to y. False: no unit would do.
 */
bool sdg_chain_unit(const char *dim, int64_t x_extent, int64_t y_extent,
                    const sdg_window_t *window, int pieces, int64_t *out_extent,
                    int64_t *out_unit);

#endif
