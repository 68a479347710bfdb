/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions for the tests of the engines: memory in any layout with
 * gaps, and the float64 loop that judges the result. */
#ifndef SDG_TESTS_HOST_CUDNN_CASE_H
#define SDG_TESTS_HOST_CUDNN_CASE_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* A seed gives the same numbers on every machine. */
void case_seed(uint64_t seed);
int case_range(int low, int high);
double case_real(void); /* -1 .. 1 */

/* Draws a legal convolution and allocates its memory: fills x, w, bias and old;
 * y is NaN, also between its elements. */
void case_create(host_conv_t *conv, bool is_double, int max_channels,
                 int max_extent);
void case_destroy(host_conv_t *conv);

/* Returns the number of elements of y's memory, with gaps. */
int64_t case_y_elements(const host_conv_t *conv);

/* Fills all of y's memory with NaN (or with `old` where old is y). */
void case_reset(host_conv_t *conv);

/* Puts old's elements where y's are, and makes y the old. */
void case_load_old(host_conv_t *conv);

/* Returns the first element of y that differs from the float64 loop by more
 * than rounding allows, or a gap that was written; -1 if there is no such
 * element. */
int64_t case_wrong(const host_conv_t *conv);

/* Writes a line that describes the case. */
const char *case_text(const host_conv_t *conv);

#endif
