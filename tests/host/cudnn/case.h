/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions for the tests of the engines: memory in any layout with
 * gaps, and the float64 loop that judges the result. */
#ifndef SDG_TESTS_HOST_CUDNN_CASE_H
#define SDG_TESTS_HOST_CUDNN_CASE_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* The same numbers from the same seed everywhere. */
void case_seed(uint64_t seed);
int case_range(int low, int high);
double case_real(void); /* -1 .. 1 */

/* A random legal convolution with memory of its own: x, w, bias and old are
 * filled, y holds NaN between its elements too. */
void case_create(host_conv_t *conv, bool is_double, int max_channels,
                 int max_extent);
void case_destroy(host_conv_t *conv);

/* Elements of y's memory, gaps included. */
int64_t case_y_elements(const host_conv_t *conv);

/* Fills all of y's memory with NaN (or with `old` where old is y). */
void case_reset(host_conv_t *conv);

/* Puts old's elements where y's are, and makes y the old. */
void case_load_old(host_conv_t *conv);

/* The first element of y that differs from the float64 loop by more than
 * rounding allows, or a gap that was written; -1 if all is well. */
int64_t case_wrong(const host_conv_t *conv);

/* A line that says what the case is. */
const char *case_text(const host_conv_t *conv);

#endif
