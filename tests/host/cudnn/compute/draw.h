/* SPDX-License-Identifier: Apache-2.0 */
/* Random operation graphs around one convolution or another node. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_DRAW_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_DRAW_H

#include "tests/host/cudnn/compute/made.h"

/* All use case_range(). The caller destroys the graph. */
void draw_graph(made_t *m);
/* One product of matrices in the place of the convolution. */
void draw_product(made_t *m);
/* Resampling, or its gradient. */
void draw_resampling(made_t *m);
/* Elements in other indices, or tensors one behind the other. */
void draw_move(made_t *m);
/* Pointwise nodes and reductions alone, in 1 to 5 dimensions. */
void draw_plain(made_t *m);

/* ---- for such functions -------------------------------------------------- */

/* A graph around `core`, which adds nodes and returns their result; `last`:
 * nothing reads it. */
void draw_around(made_t *m, int (*core)(made_t *m, bool last));
cudnnDataType_t draw_type(void);
made_layout_t draw_layout(void);
/* A tensor of these extents with up to three pointwise nodes behind it. */
int draw_input(made_t *m, int rank, const int64_t *dim);
/* A tensor for a node's result; mostly virtual. */
int draw_result(made_t *m, const sdg_graph_tensor_t *like, bool last);

#endif
