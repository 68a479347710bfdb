/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for the padding: what lies outside a tensor takes no part in a sum.
 *
 * The engines put zeros there, or skip it, as the extents and the processor
 * have it. That is the same as long as the other factor is finite; but 0 times
 * infinity is NaN, which a piece might have and the whole not. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_OUTSIDE_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_OUTSIDE_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Runs the engines for float or double, by the rule. Weights that are
 * infinities or NaN and could meet the padding are replaced by 1 or -1 first,
 * and their own products are added afterwards, one by one. */
bool host_outside_run(host_conv_kind_t kind, const host_conv_t *conv);

/* Makes an engine's dense sums of the weights' gradient follow the rule, in the
 * same way. They show whether dy has to be looked at: whatever it has of
 * infinities and NaN makes some of the sums alike. False when memory is short.
 */
bool host_outside_weights(const host_conv_t *conv, void *sums);

/* Whether no element is an infinity or NaN. Strides are positive. */
bool host_outside_finite_float(const float *from, const int64_t extent[5],
                               const int64_t stride[5]);
bool host_outside_finite_double(const double *from, const int64_t extent[5],
                                const int64_t stride[5]);

/* Copies, with 1 or -1 (its sign) for each infinity, and 1 for NaN. */
void host_outside_tame_float(const float *from, const int64_t extent[5],
                             const int64_t stride[5], float *to);
void host_outside_tame_double(const double *from, const int64_t extent[5],
                              const int64_t stride[5], double *to);

/* Adds to dense sums the products with weights, or elements of dy, that are
 * infinities or NaN. _w: to y (FORWARD) or dx (DATA), _dy: to dw, whose window
 * is not mirrored. */
void host_outside_add_w_float(host_conv_kind_t kind, const host_conv_t *conv,
                              float *sums);
void host_outside_add_w_double(host_conv_kind_t kind, const host_conv_t *conv,
                               double *sums);
void host_outside_add_dy_float(const host_conv_t *conv, float *sums);
void host_outside_add_dy_double(const host_conv_t *conv, double *sums);

#endif
