/* SPDX-License-Identifier: Apache-2.0 */
/* Between the program's tensors and dense channels-last buffers. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_PACK_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_PACK_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Part of a tensor, in its own indices. It may extend beyond the tensor. `pad`
 * zeros lie before it, not counted in it. */
typedef struct {
  int64_t first[HOST_SPATIAL];
  int32_t count[HOST_SPATIAL], pad[HOST_SPATIAL];
} host_box_t;

/* The box of image n of float x as D H W C; zeros outside x. */
void host_pack_x(const host_conv_t *conv, const host_box_t *box, int64_t n,
                 float *to);

/* Sets dimension i of the box to what outputs [out, out + count) read: with
 * zeros for the padding or, unless a window sees only padding, without it. */
void host_pack_under(const host_conv_t *conv, int i, int64_t out, int64_t count,
                     bool zeros, host_box_t *box);

/* Columns transposed at once from W x C into C x W. */
enum { HOST_TURN = 64 };

/* Finishes `rows` rows of outputs from (n, 0, d, h, 0) on. `sums` has rows of
 * `pitch` x C, whose first columns, as many as y has, are used. `turn` has room
 * for HOST_TURN columns of all channels. */
void host_unpack_rows(const host_conv_t *conv, const float *sums, int64_t pitch,
                      int64_t rows, float *turn, const int64_t at[5]);

/* w as dense G K C D H W, not mirrored: w itself, or a copy in
 * HOST_SCRATCH_WEIGHTS; NULL when memory is short. */
const float *host_pack_weights(const host_conv_t *conv);

#endif
