/* SPDX-License-Identifier: Apache-2.0 */
/* Which boxes the ranks compute of a graph's tensors. Inside rules/graph only.
 *
 * In one split dimension, with stride s, padding p before x, span = d(k-1) + 1:
 *   forward, filter gradient
 *     y [o0,o1) is owned; x is [o0*s - p, (o1-1)*s - p + span) cut at the
 *     domain to [x0,x1); PRE = x0 - (o0*s - p), POST = (o1-1)*s - p + span - x1
 *   gradient of data
 *     x [i0,i1) is owned; y is [q0,q1), the outputs that see it, cut at the
 *     domain; PRE = i0 - (q0*s - p), POST = max(0, (q1-1)*s - p + span - i1).
 *     One row more of y where PRE would be negative, which needs s > span.
 * These paddings are never negative, and meet cuDNN's relation of extents.
 * N=10, k=3, s=1, p=1, forward, y [5,10): x [4,10), PRE 0, POST 1. */
#ifndef SDG_RULES_GRAPH_BOXES_H
#define SDG_RULES_GRAPH_BOXES_H

#include "rules/graph/chain/call.h"
#include "rules/window/op.h"

/* One dimension of a piece, in global coordinates. */
typedef struct sdg_graph_range {
  sdg_range_t x, y;
  int64_t pre, post;
} sdg_graph_range_t;

/* For owned outputs dim->y, not empty: forward and filter gradient. `post` is
 * the op's padding behind x. A rank with the last output gets all of x to the
 * end, also rows that no window sees. */
sdg_graph_range_t sdg_graph_range(const sdg_window_dim_t *dim, int64_t post);
/* For owned inputs dim->x, not empty, of which the gradient is computed. y is
 * empty if no output sees them: the gradient is zero. */
sdg_graph_range_t sdg_graph_range_back(const sdg_window_dim_t *dim);

/* The same with all that the windows of `back`'s y see: a pooling gradient's
 * element may depend on all elements of its window. dim->window 3, stride 2, no
 * padding, x [4,7): y [1,4) sees x [2,9). */
sdg_graph_range_t sdg_graph_range_whole(const sdg_window_dim_t *dim,
                                        const sdg_graph_range_t *back);

/* Forward: the owned outputs that the program's own execution, on the rank's
 * rows and with the op's paddings, gets right. {0,0} if it computes others than
 * the owned ones. N=10, k=3, s=1, p=1, x and y [5,10): output 5 sees row 4, so
 * [6,10). */
sdg_range_t sdg_graph_right(const sdg_window_dim_t *dim, int64_t post);
/* Gradient of data: the same of the owned inputs dim->x. Right are those that
 * no output of another rank sees. N=10, k=3, s=2, p=1, x [4,10), y [2,5):
 * output 1 sees rows [1,4), so all of [4,10). */
sdg_range_t sdg_graph_right_back(const sdg_window_dim_t *dim, int64_t post);

/* The boxes of one rank. */
typedef struct sdg_graph_boxes {
  sdg_box_t level[SDG_GRAPH_LEVELS]; /* of X and Y; W is set for norms */
  /* What the main op reads: level X, and rows of zeros around it that stand
   * for paddings. */
  sdg_box_t read;
  int64_t pre[SDG_DIMS_MAX], post[SDG_DIMS_MAX]; /* per spatial dimension */
} sdg_graph_boxes_t;

/* The graph's main op on split tensors; without one, windows of one element. */
typedef struct sdg_graph_main {
  const sdg_graph_pattern_t *pattern;
  sdg_window_spec_t spec;
  sdg_window_op_t op;
  /* Engines of convolutions with statistics want equal paddings: pieces get
   * rows of zeros in place of unequal ones. Without ops in front of the
   * convolution these rows belong to level X. */
  bool zero_rows;
} sdg_graph_main_t;

/* The errors of sdg_window_op_init, and SDG_E_OPERANDS_DIFFER if a tensor is
 * not split as the main op's on its level. */
sdg_status_t sdg_graph_main_init(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_graph_main_t *out) SDG_MUST_CHECK;
void sdg_graph_main_fini(sdg_graph_main_t *main);

/* The same in the whole view, where every rank has all of every tensor, and the
 * ranks share the results. *out_can is false, and nothing is filled, if they
 * cannot. `io_tagging` gets the placement of a data gradient, which the caller
 * frees with it. */
sdg_status_t sdg_graph_main_init_whole(const sdg_call_t *call,
                                       sdg_tagging_t *io_tagging,
                                       sdg_graph_main_t *out,
                                       bool *out_can) SDG_MUST_CHECK;
/* The placement of the results; NULL for a filter gradient, which every rank
 * gets in full. */
const sdg_placement_t *sdg_graph_result_place(const sdg_graph_main_t *main,
                                              const sdg_tagging_t *tagging);

/* The boxes of a rank of the job. A rank without results has empty ones. */
sdg_graph_boxes_t sdg_graph_boxes(const sdg_graph_main_t *main,
                                  const sdg_tagging_t *tagging, int rank);

/* The boxes for the outputs dim[d].y (of a gradient: the inputs dim[d].x); the
 * channels that a convolution counts as one element are all. */
sdg_graph_boxes_t sdg_graph_boxes_of(const sdg_graph_main_t *main,
                                     const sdg_tagging_t *tagging,
                                     const sdg_window_dim_t *dim);

/* The box of operand `index` on a level whose box is `box`: dimensions of
 * extent 1 stay. */
sdg_box_t sdg_graph_operand_box(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index,
                                const sdg_box_t *box);
/* The global extents of an operand. */
void sdg_graph_operand_extents(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, int index,
                               int64_t *out);

#endif
