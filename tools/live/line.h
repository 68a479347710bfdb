/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `sundog run --progress`. */
#ifndef SDG_TOOLS_LIVE_LINE_H
#define SDG_TOOLS_LIVE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/live/rates.h"

enum {
  LINE_BYTES = 512,
  LINE_STILL_S = 3, /* without a call for so long, it says where ranks are */
};

/* Writes the line, at most `width` characters of ASCII: "sundog: 4 ranks x
 * 812 calls/s, waiting 3-41%, slowest rank 2, 12.4 MB/s, 0:41". Parts that do
 * not fit are left out, the last ones first: no number is cut. */
void line_write(const rates_t *rates, double elapsed_s, int width,
                char out[LINE_BYTES]);

/* Finds the ranks that the others wait for: those that wait least, at most half
 * of those that make calls, if they wait for a tenth of the time less than the
 * others. Sets out_is[r] for each and returns their number; 0: there are none.
 * Memory for rates->size elements. */
int line_slowest(const rates_t *rates, bool *out_is);

#endif
