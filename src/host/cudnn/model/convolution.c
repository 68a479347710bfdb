// SPDX-License-Identifier: Apache-2.0
// The algorithms of convolutions and their gradients, by the strides of x and
// y.
//
// A range is a part of a larger tensor that keeps the larger tensor's strides.
// A range of rows is shorter in H (in 3-D also in D), a range of columns in W.
#include "src/host/cudnn/model/model.h"

#include <stdint.h>

#include "src/host/cudnn/convolution/engine/engine.h"

// ---- the table -------------------------------------------------------------

// What the first limit that a call exceeds is about.
enum {
  ROW_LAYOUT,
  ROW_COLUMNS,
  ROW_PACKED,
  ROW_INT8,
  ROW_ALGORITHM,
  ROW_WORKSPACE,
  ROWS,
};

static const char *const row_text[ROWS] = {
    [ROW_LAYOUT] = "x and y both in the order of NCHW, or both in that of NHWC",
    [ROW_COLUMNS] = "a range of columns (W) of a larger tensor in NCHW, and "
                    "forward, only",
    [ROW_PACKED] = "in NCHW a packed dy for the data gradient and a packed x "
                   "for the filter gradient",
    [ROW_INT8] = "int8 in NHWC as a range of rows of one image only",
    [ROW_ALGORITHM] = "algorithms 0 and 1; forward in NCHW and two dimensions "
                      "also 2, filter gradient in NCHW also 3; in NHWC and "
                      "three dimensions 1 only",
    [ROW_WORKSPACE] =
        "a workspace of the bytes that its query returns: copies of x and y in "
        "NCHW, and for ranges of rows of several images in NHWC",
};

// ---- ranges ----------------------------------------------------------------

typedef enum { PACKED, IN_ROWS, IN_COLUMNS, OTHER_ORDER } cut_t;

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
    if (t->stride[d] > packed && cut != IN_COLUMNS)
      cut = d == t->rank - 2 ? IN_COLUMNS : IN_ROWS;
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

// ---- what there is for each ------------------------------------------------

#define ALGORITHM(a) (1u << (a))

static void nchw_offer(const struct cudnnTensorStruct *x,
                       const struct cudnnTensorStruct *y,
                       host_model_offer_t out[3]) {
  cut_t cut_x = cut_of(x, false), cut_y = cut_of(y, false);
  if (cut_x == OTHER_ORDER || cut_y == OTHER_ORDER)
    return;
  bool columns = cut_x == IN_COLUMNS || cut_y == IN_COLUMNS;
  out[HOST_CONV_DATA].row = out[HOST_CONV_WEIGHTS].row =
      columns ? ROW_COLUMNS : ROW_PACKED;
  out[HOST_CONV_FORWARD].algorithms |=
      ALGORITHM(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) |
      ALGORITHM(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) |
      ALGORITHM(CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
  if (!columns && cut_y == PACKED)
    out[HOST_CONV_DATA].algorithms |=
        ALGORITHM(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) |
        ALGORITHM(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
  if (!columns && cut_x == PACKED)
    out[HOST_CONV_WEIGHTS].algorithms |=
        ALGORITHM(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0) |
        ALGORITHM(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) |
        ALGORITHM(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
  // These are turned to NHWC and back.
  bool turned = x->type == CUDNN_DATA_FLOAT || x->type == CUDNN_DATA_HALF ||
                x->type == CUDNN_DATA_BFLOAT16;
  for (int kind = 0; kind < 3 && turned; kind++)
    out[kind].workspace = packed_bytes(x) + packed_bytes(y);
}

static void nhwc_offer(const struct cudnnTensorStruct *x,
                       const struct cudnnTensorStruct *y,
                       host_model_offer_t out[3]) {
  cut_t cut_x = cut_of(x, true), cut_y = cut_of(y, true);
  if (cut_x == OTHER_ORDER || cut_y == OTHER_ORDER)
    return;
  bool columns = cut_x == IN_COLUMNS || cut_y == IN_COLUMNS;
  // Ranges of rows of several images are copied.
  bool copied = x->dim[0] > 1 && (cut_x == IN_ROWS || cut_y == IN_ROWS);
  bool refused = columns || (copied && x->type == CUDNN_DATA_INT8);
  // The numbers 0 and 1 mean the same in all three lists of algorithms.
  unsigned algorithms = ALGORITHM(1) | (x->rank == 4 ? ALGORITHM(0) : 0);
  for (int kind = 0; kind < 3; kind++) {
    if (refused) {
      out[kind].row = columns ? ROW_COLUMNS : ROW_INT8;
      continue;
    }
    out[kind].algorithms |= algorithms;
    if (copied)
      out[kind].workspace = packed_bytes(x) + packed_bytes(y);
  }
}

void host_model_convolution(const struct cudnnTensorStruct *x,
                            const struct cudnnTensorStruct *y,
                            host_model_offer_t out[3]) {
  bool vectors = host_type_vector(x->type) > 1 || host_type_vector(y->type) > 1;
  bool any = !host_model_is_hopper() || vectors;
  for (int kind = 0; kind < 3; kind++)
    out[kind] =
        (host_model_offer_t){.algorithms = any ? ~0u : 0, .row = ROW_LAYOUT};
  if (any)
    return;
  nchw_offer(x, y, out);
  nhwc_offer(x, y, out);
}

cudnnDeterminism_t host_model_determinism(int kind, int algorithm) {
  bool varies = (kind == HOST_CONV_DATA &&
                 algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) ||
                (kind == HOST_CONV_WEIGHTS &&
                 (algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
                  algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3));
  return varies && host_model_is_hopper() ? CUDNN_NON_DETERMINISTIC
                                          : CUDNN_DETERMINISTIC;
}

// ---- refusals --------------------------------------------------------------

cudnnStatus_t host_model_check_convolution(const char *function,
                                           const void *asker,
                                           const host_model_offer_t *offer,
                                           int algorithm, size_t workspace) {
  static bool printed[ROWS];
  bool offered = (offer->algorithms >> algorithm & 1) != 0;
  if (offered && workspace >= offer->workspace)
    return CUDNN_STATUS_SUCCESS;
  int row = offered             ? ROW_WORKSPACE
            : offer->algorithms ? ROW_ALGORITHM
                                : offer->row;
  // An interposer asks whether there is a way without a copy, and has another.
  bool range = row == ROW_COLUMNS || row == ROW_PACKED || row == ROW_INT8;
  if (!range || !asker || !host_model_interposes(function, asker))
    host_model_print(&printed[row], function, row_text[row]);
  return host_refuse(offered ? CUDNN_STATUS_BAD_PARAM
                             : CUDNN_STATUS_NOT_SUPPORTED,
                     row_text[row]);
}
