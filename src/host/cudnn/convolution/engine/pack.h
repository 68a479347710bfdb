/* SPDX-License-Identifier: Apache-2.0 */
/* Between the program's tensors and dense channels-last buffers. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_PACK_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_PACK_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Part of a tensor, in its own indices; it may go beyond the tensor. `pad`
 * zeros lie before it that are not in it. */
typedef struct {
  int64_t first[HOST_SPATIAL];
  int32_t count[HOST_SPATIAL], pad[HOST_SPATIAL];
} host_box_t;

/* The box of image n of float x, zeros where there is no x: to is D H W C. */
void host_pack_x(const host_conv_t *conv, const host_box_t *box, int64_t n,
                 float *to);

/* What the box must be in dimension i to lie under outputs [out, out + count):
 * with the padding as zeros, or without it unless windows lie in padding
 * alone. */
void host_pack_under(const host_conv_t *conv, int i, int64_t out, int64_t count,
                     bool zeros, host_box_t *box);

/* Columns that are turned from W x C into C x W at once. */
enum { HOST_TURN = 64 };

/* Finishes `rows` rows of outputs from (n, 0, d, h, 0) on, `sums` being rows of
 * `pitch` x C, as many columns used as y has. `turn` is room for HOST_TURN
 * columns of all channels. */
void host_unpack_rows(const host_conv_t *conv, const float *sums, int64_t pitch,
                      int64_t rows, float *turn, const int64_t at[5]);

/* w as dense G K C D H W, not mirrored: itself, or a copy in
 * HOST_SCRATCH_WEIGHTS; NULL when memory is short. */
const float *host_pack_weights(const host_conv_t *conv);

#endif
