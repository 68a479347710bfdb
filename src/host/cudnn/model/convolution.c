// SPDX-License-Identifier: Apache-2.0
// The algorithms of convolutions and their gradients, by the strides of x and
// y.
//
// A range is a part of a larger tensor that keeps the larger tensor's strides.
// A range of rows is shorter in H (in 3-D also in D), a range of columns in W.
#include "src/host/cudnn/model/model.h"

#include "src/host/cudnn/convolution/engine/engine.h"

typedef enum { PACKED, ROWS, COLUMNS, OTHER_ORDER } cut_t;

// Which range a tensor is, if its elements are in the order of NHWC or NCHW.
// The stride of a dimension of extent 1 does not matter.
static cut_t cut_of(const struct cudnnTensorStruct *t, bool nhwc) {
  int order[CUDNN_DIM_MAX], count = 0; // innermost first
  if (nhwc)
    order[count++] = 1;
  for (int d = t->rank - 1; d >= 2; d--)
    order[count++] = d;
  if (!nhwc)
    order[count++] = 1;
  order[count++] = 0;
  cut_t cut = PACKED;
  int64_t packed = 1; // the stride of order[i] if there is no gap before it
  for (int i = 0; i < count; i++) {
    int d = order[i];
    if (t->dim[d] == 1)
      continue;
    if (t->stride[d] < packed || (t->stride[d] > packed && i == 0))
      return OTHER_ORDER;
    if (t->stride[d] > packed && cut != COLUMNS)
      cut = d == t->rank - 2 ? COLUMNS : ROWS;
    packed = (int64_t)t->stride[d] * t->dim[d];
  }
  return cut;
}

static size_t packed_bytes(const struct cudnnTensorStruct *t) {
  size_t bytes = host_type_bytes(t->type);
  for (int d = 0; d < t->rank; d++)
    bytes *= (size_t)t->dim[d];
  return bytes;
}

#define ALGORITHM(a) (1u << (a))

// All algorithms but the first turn tensors of float and half to NHWC and back,
// in the workspace.
static void nchw_offer(const struct cudnnTensorStruct *x,
                       const struct cudnnTensorStruct *y,
                       host_model_offer_t out[3]) {
  cut_t cut_x = cut_of(x, false), cut_y = cut_of(y, false);
  if (cut_x == OTHER_ORDER || cut_y == OTHER_ORDER)
    return;
  out[HOST_CONV_FORWARD].algorithms |=
      ALGORITHM(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) |
      ALGORITHM(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) |
      ALGORITHM(CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
  if (cut_x != COLUMNS && cut_y == PACKED)
    out[HOST_CONV_DATA].algorithms |=
        ALGORITHM(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) |
        ALGORITHM(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
  if (cut_y != COLUMNS && cut_x == PACKED)
    out[HOST_CONV_WEIGHTS].algorithms |=
        ALGORITHM(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0) |
        ALGORITHM(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) |
        ALGORITHM(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
  for (int kind = 0; kind < 3 && x->type != CUDNN_DATA_DOUBLE; kind++) {
    out[kind].without = ALGORITHM(0);
    out[kind].workspace = packed_bytes(x) + packed_bytes(y);
  }
}

// Ranges of rows of several images are copied to the workspace.
static void nhwc_offer(const struct cudnnTensorStruct *x,
                       const struct cudnnTensorStruct *y,
                       host_model_offer_t out[3]) {
  cut_t cut_x = cut_of(x, true), cut_y = cut_of(y, true);
  if (cut_x >= COLUMNS || cut_y >= COLUMNS)
    return;
  bool ranges = cut_x == ROWS || cut_y == ROWS;
  if (ranges && x->type == CUDNN_DATA_INT8)
    return;
  // The numbers 0 and 1 mean the same in all three lists of algorithms.
  unsigned algorithms = ALGORITHM(1) | (x->rank == 4 ? ALGORITHM(0) : 0);
  for (int kind = 0; kind < 3; kind++) {
    out[kind].algorithms |= algorithms;
    if (ranges) {
      out[kind].without = 0;
      out[kind].workspace = packed_bytes(x) + packed_bytes(y);
    }
  }
}

void host_model_convolution(const struct cudnnTensorStruct *x,
                            const struct cudnnTensorStruct *y,
                            host_model_offer_t out[3]) {
  bool vectors = host_type_vector(x->type) > 1 || host_type_vector(y->type) > 1;
  for (int kind = 0; kind < 3; kind++)
    out[kind] = (host_model_offer_t){.algorithms = ~0u};
  if (!host_model_is_hopper() || vectors)
    return;
  for (int kind = 0; kind < 3; kind++)
    out[kind] = (host_model_offer_t){0};
  nchw_offer(x, y, out);
  nhwc_offer(x, y, out);
}

void host_model_print_convolution(const char *function) {
  static bool printed;
  host_model_print(
      &printed, function,
      "x and y both NCHW, and for gradients the tensor that is read packed; or "
      "both NHWC without ranges of columns; algorithms 0 and 1, forward NCHW "
      "also 2, filter gradient NCHW also 3; the workspace that its query "
      "returns");
}
