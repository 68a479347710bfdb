/* SPDX-License-Identifier: Apache-2.0 */
/* Forward convolution on split tensors: geometry, plans, queries. Inside
 * rules/ only. */
#ifndef SDG_RULES_CONV_H
#define SDG_RULES_CONV_H

#include <cudnn.h>

#include "rules/rule.h"
#include "rules/window.h"
#include "src/transfer.h"

/* The convolution descriptor's values. */
typedef struct sdg_conv_parameters {
  int spatial; /* dimensions, 1..SDG_DIMS_MAX - 2 */
  int pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute;
  int groups;
  cudnnMathType_t math;
} sdg_conv_parameters_t;
sdg_status_t sdg_conv_parameters(const void *descriptor,
                                 sdg_conv_parameters_t *out) SDG_MUST_CHECK;

/* One call's geometry as one rank sees it, in global coordinates. Channels do
 * not slide: dim[1] is a placeholder of one element, and boxes have the channel
 * ranges of x and y. */
typedef struct sdg_conv {
  sdg_conv_parameters_t parameters;
  int dims;             /* spatial + 2 */
  int x, w, y, z, bias; /* operand indices, -1 if the entry has none */
  sdg_placement_t y_placement;
  sdg_window_dim_t dim[SDG_DIMS_MAX]; /* this rank's */
  sdg_box_t x_box, y_box;             /* owned by this rank */
  bool communicates;                  /* some rank needs what it does not own */
  sdg_transfer_t transfer;            /* of x, for this rank's outputs */
} sdg_conv_t;

/* The geometry of a tagged call: pure in what the ranks agreed on, so it fails
 * on every rank alike: SDG_E_ARGUMENT, SDG_E_SPLIT_DIMENSION,
 * SDG_E_OUTPUT_EXTENT, SDG_E_EMPTY_SHARD. */
sdg_status_t sdg_conv_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_conv_t *out) SDG_MUST_CHECK;
void sdg_conv_fini(sdg_conv_t *conv);

/* A piece of the outputs, and the sub-call that computes it: x must be
 * assembled over `x` and convolved with these paddings. */
typedef struct sdg_conv_piece {
  sdg_box_t x, y;
  int pad[SDG_DIMS_MAX]; /* per spatial dimension */
} sdg_conv_piece_t;

/* What is to be computed: `in_place` first, if there is one (out_view true),
 * then the strips. With extend there is one strip, all owned outputs. out has
 * room for 1 + 2*SDG_DIMS_MAX; returns their number. */
int sdg_conv_pieces(const sdg_conv_t *conv, bool extend, bool *out_view,
                    sdg_conv_piece_t *out);

/* Whether this rank assembles all of its input: asked for, or there is nothing
 * that it could compute in place. What a rank does with its own buffers is its
 * own affair: messages are the same either way. */
bool sdg_conv_extends(const sdg_conv_t *conv, sdg_strategy_t strategy);

/* True for the entries that convolve, false for the queries. */
bool sdg_conv_is_forward(const sdg_call_t *call);

/* The numbers that decide a forward call's plan beside its descriptors; see
 * sdg_rule_t. */
int sdg_conv_key(const sdg_call_t *call, uint64_t *out);
sdg_status_t sdg_conv_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_answer(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             int *out_vendor) SDG_MUST_CHECK;

/* Descriptors of one sub-call, made from a piece. */
typedef struct sdg_conv_descriptors {
  cudnnTensorDescriptor_t x, y;
  cudnnConvolutionDescriptor_t conv;
} sdg_conv_descriptors_t;

/* Creates descriptors for a piece; strides in elements. SDG_E_VENDOR_CALL. */
sdg_status_t sdg_conv_describe(const sdg_conv_t *conv, const sdg_call_t *call,
                               const sdg_conv_piece_t *piece,
                               const int64_t *x_stride, const int64_t *y_stride,
                               sdg_conv_descriptors_t *out) SDG_MUST_CHECK;
void sdg_conv_undescribe(sdg_conv_descriptors_t *descriptors);

/* Reports a refusal of the vendor's library. */
sdg_status_t sdg_conv_refused(const char *function,
                              cudnnStatus_t status) SDG_MUST_CHECK;

#endif
