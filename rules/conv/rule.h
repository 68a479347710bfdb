/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on split tensors: what all entries have in common, and the plan
 * and the queries of forward ones. Inside rules/ only. */
#ifndef SDG_RULES_CONV_RULE_H
#define SDG_RULES_CONV_RULE_H

#include <cudnn.h>

#include "rules/place/op.h"
#include "rules/window/op.h"

/* What an entry computes, or asks about. */
typedef enum sdg_conv_kind {
  SDG_CONV_FORWARD,
  SDG_CONV_DGRAD,   /* the gradient of the data, or a transposed convolution */
  SDG_CONV_WGRAD,   /* of the filter */
  SDG_CONV_BGRAD,   /* of the bias */
  SDG_CONV_UNKNOWN, /* the op does not carry it out */
} sdg_conv_kind_t;
sdg_conv_kind_t sdg_conv_kind(const sdg_call_t *call);

/* The convolution descriptor's values. */
typedef struct sdg_conv_parameters {
  int spatial; /* dimensions, 1..SDG_DIMS_MAX - 2 */
  int pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute;
  int groups;
  cudnnMathType_t math;
} sdg_conv_parameters_t;
/* SDG_E_ARGUMENT if the vendor's library does not take the descriptor. */
sdg_status_t sdg_conv_parameters(const void *descriptor,
                                 sdg_conv_parameters_t *out) SDG_MUST_CHECK;

/* One call, as one rank sees it. */
typedef struct sdg_conv {
  sdg_conv_parameters_t parameters;
  /* Operand indices, -1 if the entry has none; x, w and y are themselves or
   * their gradients. */
  int x, w, y, z;
  sdg_window_spec_t spec;
  sdg_window_op_t op;
} sdg_conv_t;

/* Everything but `op`: what one device looks at. SDG_E_ARGUMENT. */
sdg_status_t sdg_conv_read(const sdg_call_t *call,
                           sdg_conv_t *out) SDG_MUST_CHECK;
/* Pure in what the ranks agreed on, so it fails on every rank alike:
 * SDG_E_OPERANDS_DIFFER and those of sdg_window_op_init. */
sdg_status_t sdg_conv_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_conv_t *out) SDG_MUST_CHECK;
/* The same in the whole view; *out_can as of sdg_window_op_init_whole. */
sdg_status_t sdg_conv_init_whole(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, sdg_conv_t *out,
                                 bool *out_can) SDG_MUST_CHECK;
/* False if each output sees the one input at its own place. */
bool sdg_conv_looks_around(const sdg_conv_t *conv);
void sdg_conv_fini(sdg_conv_t *conv);

/* See sdg_op_t: the parts of the op that are of forward entries; key and
 * scalars of those that are carried out. */
int sdg_conv_key(const sdg_call_t *call, uint64_t *out);
sdg_status_t sdg_conv_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_share(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_answer(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             int *out_vendor) SDG_MUST_CHECK;

/* What the vendor's library is given of a piece. */
typedef struct sdg_conv_descriptors {
  cudnnTensorDescriptor_t x, y, z; /* z NULL: the call has none */
  cudnnConvolutionDescriptor_t conv;
} sdg_conv_descriptors_t;

/* Creates descriptors for a piece; strides in elements, z_stride NULL without
 * z. SDG_E_VENDOR_CALL. */
sdg_status_t sdg_conv_describe(const sdg_conv_t *conv, const sdg_call_t *call,
                               const sdg_window_piece_t *piece,
                               const int64_t *x_stride, const int64_t *y_stride,
                               const int64_t *z_stride,
                               sdg_conv_descriptors_t *out) SDG_MUST_CHECK;
void sdg_conv_undescribe(sdg_conv_descriptors_t *descriptors);

/* `wanted` where the vendor's library takes it for this piece, otherwise its
 * own choice, and the workspace. The vendor's status if it takes none. */
cudnnStatus_t sdg_conv_choose(const sdg_call_t *call,
                              const sdg_conv_descriptors_t *descriptors,
                              cudnnFilterDescriptor_t w,
                              cudnnConvolutionFwdAlgo_t wanted,
                              cudnnConvolutionFwdAlgo_t *out_algo,
                              size_t *out_workspace_bytes);

/* The workspace of this algorithm for what the call computes or asks about. */
cudnnStatus_t sdg_conv_workspace(const sdg_call_t *call,
                                 const sdg_conv_descriptors_t *descriptors,
                                 cudnnFilterDescriptor_t w, int algo,
                                 size_t *out_bytes);

/* `view` is what would be computed in place. Where that has other paddings than
 * the op's, and the vendor's library does not take the algorithm for it, or its
 * rows begin where engines may not: the op's views are padded from now on. */
void sdg_conv_view_settle(const sdg_call_t *call, sdg_conv_t *conv,
                          const sdg_window_piece_t *view,
                          cudnnFilterDescriptor_t w, int algo);

/* The vendor's status of a call, or a workspace query, on one device,
 * as far as its library tells without carrying it out; 0: it takes the call.
 * Sizes of pieces differ from rank to rank; here all ranks ask the same. */
int sdg_conv_refusal(const sdg_call_t *call, const sdg_conv_t *conv,
                     const sdg_tagging_t *tagging, int algo);
/* The plan of a call that one device refuses. */
sdg_status_t sdg_conv_plan_refused(int refusal,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* Whole view: whether the library would refuse the program's own call. */
bool sdg_conv_refused_whole(const sdg_call_t *call, cudnnTensorDescriptor_t x,
                            cudnnFilterDescriptor_t w,
                            cudnnConvolutionDescriptor_t conv,
                            cudnnTensorDescriptor_t y, int algo,
                            size_t workspace_bytes);

int sdg_conv_scalars(const sdg_call_t *call, double *out);
/* The activation of cudnnConvolutionBiasActivationForward as text. */
void sdg_conv_describe_activation(const sdg_call_t *call, char *out,
                                  size_t out_bytes);

#endif
