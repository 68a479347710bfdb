/* SPDX-License-Identifier: Apache-2.0 */
/* Between the program's tensors and dense channels-last buffers. */
#ifndef SDG_SRC_HOST_CUDNN_PACK_H
#define SDG_SRC_HOST_CUDNN_PACK_H

#include "src/host/cudnn/engine.h"

/* The box of `rows` (depth, height, width) of float x under the output at
 * (n, d0, h0, 0), zeros where there is no x: to is D H W C. */
void host_pack_x(const host_conv_t *conv, const int32_t rows[HOST_SPATIAL],
                 int64_t n, int64_t d0, int64_t h0, float *to);

/* Columns that are turned from W x C into C x W at once. */
enum { HOST_TURN = 64 };

/* Finishes a row of outputs at (n, 0, d, h, 0), `sums` being W x C. `turn` is
 * room for HOST_TURN columns of all channels. */
void host_unpack_row(const host_conv_t *conv, const float *sums, float *turn,
                     const int64_t at[5]);

/* w as dense G K C D H W, not mirrored: itself, or a copy in
 * HOST_SCRATCH_WEIGHTS; NULL when memory is short. */
const float *host_pack_weights(const host_conv_t *conv);

#endif
