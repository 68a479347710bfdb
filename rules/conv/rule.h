/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on split tensors: declarations for all entries, and the plan and
 * queries of the forward ones. Inside rules/ only. */
#ifndef SDG_RULES_CONV_RULE_H
#define SDG_RULES_CONV_RULE_H

#include <cudnn.h>

#include "rules/place/op.h"
#include "rules/vendor/argument.h"
#include "rules/window/op.h"

/* What an entry computes, or asks about. */
typedef enum sdg_conv_kind {
  SDG_CONV_FORWARD,
  SDG_CONV_DGRAD,   /* the data gradient, or a transposed convolution */
  SDG_CONV_WGRAD,   /* the filter gradient */
  SDG_CONV_BGRAD,   /* the bias gradient */
  SDG_CONV_UNKNOWN, /* not supported by the op */
} sdg_conv_kind_t;
sdg_conv_kind_t sdg_conv_kind(const sdg_call_t *call);
/* The roles of the call's x, w and y: themselves, or their gradients. */
typedef struct sdg_conv_roles {
  sdg_role_t x, w, y;
} sdg_conv_roles_t;
sdg_conv_roles_t sdg_conv_roles(const sdg_call_t *call);
/* The descriptor of w, as the vendor's function gets it. */
cudnnFilterDescriptor_t sdg_conv_w(const sdg_call_t *call);
/* Which scalar the old values are multiplied with: y's, or those of z. */
sdg_scalar_argument_t sdg_conv_old(const sdg_call_t *call);

/* The convolution descriptor's values. */
typedef struct sdg_conv_parameters {
  int spatial; /* dimensions, 1..SDG_DIMS_MAX - 2 */
  int pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute;
  int groups;
  cudnnMathType_t math;
} sdg_conv_parameters_t;
/* SDG_E_ARGUMENT if the vendor's library rejects the descriptor. */
sdg_status_t sdg_conv_parameters(const void *descriptor,
                                 sdg_conv_parameters_t *out) SDG_MUST_CHECK;

/* One call, as one rank sees it. */
typedef struct sdg_conv {
  sdg_conv_parameters_t parameters;
  /* Operand indices, -1 if the entry has none. x, w and y stand for themselves
   * or their gradients. */
  int x, w, y, z;
  sdg_window_spec_t spec;
  sdg_window_op_t op;
} sdg_conv_t;

/* Fills everything except `op`, as on a single device. SDG_E_ARGUMENT. */
sdg_status_t sdg_conv_read(const sdg_call_t *call,
                           sdg_conv_t *out) SDG_MUST_CHECK;
/* Depends only on what the ranks agreed on, so it fails on all ranks or on
 * none: SDG_E_OPERANDS_DIFFER and the errors of sdg_window_op_init. */
sdg_status_t sdg_conv_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_conv_t *out) SDG_MUST_CHECK;
/* The same in the whole view. *out_can is that of sdg_window_op_init_whole. */
sdg_status_t sdg_conv_init_whole(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, sdg_conv_t *out,
                                 bool *out_can) SDG_MUST_CHECK;
/* False if each output sees only the input at its own index. */
bool sdg_conv_looks_around(const sdg_conv_t *conv);
void sdg_conv_fini(sdg_conv_t *conv);

/* Members of sdg_op_t: plan, share and answer of forward entries. */
sdg_op_plan_t sdg_conv_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_conv_share SDG_MUST_CHECK;
sdg_op_answer_t sdg_conv_answer SDG_MUST_CHECK;

/* The descriptors of a piece for the vendor's library. */
typedef struct sdg_conv_descriptors {
  cudnnTensorDescriptor_t x, y, z; /* z NULL: the call has no z */
  cudnnConvolutionDescriptor_t conv;
} sdg_conv_descriptors_t;

/* Creates descriptors for a piece. Strides are in elements; z_stride is NULL
 * without z. SDG_E_VENDOR_CALL. */
sdg_status_t sdg_conv_describe(const sdg_conv_t *conv, const sdg_call_t *call,
                               const sdg_window_piece_t *piece,
                               const int64_t *x_stride, const int64_t *y_stride,
                               const int64_t *z_stride,
                               sdg_conv_descriptors_t *out) SDG_MUST_CHECK;
void sdg_conv_undescribe(sdg_conv_descriptors_t *descriptors);

/* `view` is what would be computed in place. If its paddings are not the op's,
 * and the vendor's library rejects the algorithm for it or is slow on its rows,
 * the op's views are padded from now on. */
void sdg_conv_view_settle(const sdg_call_t *call, sdg_conv_t *conv,
                          const sdg_window_piece_t *view,
                          cudnnFilterDescriptor_t w, int algo);

/* `view` is what would be computed in place, after sdg_conv_view_settle: sets
 * op.slow_in_place. Both views. */
void sdg_conv_view_judge(const sdg_call_t *call, sdg_conv_t *conv,
                         const sdg_window_piece_t *view);

/* The vendor's status for a call or a workspace query on one device, as far as
 * its library reports it without running the call; 0: the library accepts it.
 * Every rank asks about the same sizes, although the ranks' pieces differ. */
int sdg_conv_refusal(const sdg_call_t *call, const sdg_conv_t *conv,
                     const sdg_tagging_t *tagging, int algo);
/* The workspace of the program's own call, or the vendor's refusal. */
cudnnStatus_t sdg_conv_own_workspace(const sdg_call_t *call, size_t *out_bytes);
/* Whether the library would reject the program's own call, with its
 * descriptors, algorithm and workspace. */
bool sdg_conv_refused_own(const sdg_call_t *call);

#endif
