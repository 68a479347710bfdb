// SPDX-License-Identifier: Apache-2.0
// Each limit of SUNDOG_HOST_MODEL=hopper: a call within it succeeds, a call
// beyond it is refused with cuDNN's status.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdbool.h>

#include "tests/calls.h"
#include "tests/unit/harness.h"

enum { BYTES = 1 << 16, DIM = 4, TENSORS = 4 };

static cudnnHandle_t handle;
static void *memory[TENSORS];

// How a tensor lies in memory. Ranges are of a tensor with twice the rows or
// columns.
typedef enum {
  NCHW,
  NHWC,
  NCHW_ROWS,
  NHWC_ROWS,
  NCHW_COLUMNS,
  NHWC_COLUMNS
} layout_t;

typedef struct {
  cudnnDataType_t type;
  int rank;
  int images;
  layout_t layout;
} shape_t;

// N x 2 x 4 x 4 (x 4 ...) or N x 2 x 4.
static cudnnTensorDescriptor_t tensor(const shape_t *shape) {
  int dim[8], stride[8], at = 1, rank = shape->rank;
  bool last = shape->layout == NHWC || shape->layout == NHWC_ROWS ||
              shape->layout == NHWC_COLUMNS;
  bool rows = shape->layout == NCHW_ROWS || shape->layout == NHWC_ROWS;
  bool columns = shape->layout == NCHW_COLUMNS || shape->layout == NHWC_COLUMNS;
  for (int d = 0; d < rank; d++)
    dim[d] = d == 0 ? shape->images : d == 1 ? 2 : DIM;
  if (last) {
    stride[1] = at;
    at *= dim[1];
  }
  for (int d = rank - 1; d >= 2; d--) {
    stride[d] = at;
    at *= dim[d] * ((columns && d == rank - 1) || (rows && d == 2) ? 2 : 1);
  }
  if (!last) {
    stride[1] = at;
    at *= dim[1];
  }
  stride[0] = at;
  cudnnTensorDescriptor_t desc;
  OK(cudnnCreateTensorDescriptor(&desc));
  OK(cudnnSetTensorNdDescriptor(desc, shape->type, rank, dim, stride));
  return desc;
}

typedef enum {
  TRANSFORM,
  ADD,
  OP,
  OP_IN_A,
  OP_IN_B,
  SET,
  SCALE,
  REDUCE,
  SOFTMAX,
  SOFTMAX_BACKWARD,
  ACTIVATION,
  ACTIVATION_BACKWARD,
  POOL,
  POOL_BACKWARD,
  NORM,
  NORM_ACTIVATION,
  LRN,
  BIAS,
  FORWARD,
  DATA,
  FILTER,
} function_t;

// A convolution with a 1x1 window: x and y have the same extents. `algorithm`
// also says how much workspace is given: that of the query, or one byte less.
static cudnnStatus_t convolution(function_t function, cudnnDataType_t type,
                                 int rank, cudnnTensorDescriptor_t x,
                                 cudnnTensorDescriptor_t y, int algorithm,
                                 bool short_of) {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  bool wide = type == CUDNN_DATA_DOUBLE;
  const void *alpha = wide ? (const void *)&wide_one : &one;
  const void *beta = wide ? (const void *)&wide_zero : &zero;
  const int pad[3] = {0}, step[3] = {1, 1, 1}, window[5] = {2, 2, 1, 1, 1};
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  OK(cudnnCreateFilterDescriptor(&w));
  OK(cudnnSetFilterNdDescriptor(w, type, CUDNN_TENSOR_NCHW, rank, window));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  OK(cudnnSetConvolutionNdDescriptor(conv, rank - 2, pad, step, step,
                                     CUDNN_CROSS_CORRELATION,
                                     type == CUDNN_DATA_INT8 ? CUDNN_DATA_INT32
                                     : wide                  ? CUDNN_DATA_DOUBLE
                                            : CUDNN_DATA_FLOAT));
  size_t bytes = 0;
  cudnnStatus_t status, asked;
  if (function == FORWARD) {
    asked = cudnnGetConvolutionForwardWorkspaceSize(
        handle, x, w, conv, y, (cudnnConvolutionFwdAlgo_t)algorithm, &bytes);
    status =
        cudnnConvolutionForward(handle, alpha, x, memory[0], w, memory[1], conv,
                                (cudnnConvolutionFwdAlgo_t)algorithm, memory[3],
                                bytes - short_of, beta, y, memory[2]);
  } else if (function == DATA) {
    asked = cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle, w, y, conv, x, (cudnnConvolutionBwdDataAlgo_t)algorithm,
        &bytes);
    status = cudnnConvolutionBackwardData(
        handle, alpha, w, memory[1], y, memory[2], conv,
        (cudnnConvolutionBwdDataAlgo_t)algorithm, memory[3], bytes - short_of,
        beta, x, memory[0]);
  } else {
    asked = cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle, x, y, conv, w, (cudnnConvolutionBwdFilterAlgo_t)algorithm,
        &bytes);
    status = cudnnConvolutionBackwardFilter(
        handle, alpha, x, memory[0], y, memory[2], conv,
        (cudnnConvolutionBwdFilterAlgo_t)algorithm, memory[3], bytes - short_of,
        beta, w, memory[1]);
  }
  OK(cudnnDestroyFilterDescriptor(w));
  OK(cudnnDestroyConvolutionDescriptor(conv));
  if (!short_of)
    ck_assert_int_eq((int)asked, (int)status); // the query says the same
  return status;
}

typedef struct {
  function_t function;
  shape_t shape[TENSORS]; // in the order of the arguments
  cudnnStatus_t status;
  int algorithm;
  bool short_of; // workspace
} row_t;

static cudnnTensorDescriptor_t reduced(const shape_t *shape) {
  int dim[8], stride[8];
  for (int d = 0; d < shape->rank; d++) {
    dim[d] = d == 1 ? 2 : 1;
    stride[d] = d < 1 ? 2 : 1;
  }
  cudnnTensorDescriptor_t desc;
  OK(cudnnCreateTensorDescriptor(&desc));
  OK(cudnnSetTensorNdDescriptor(desc, shape->type, shape->rank, dim, stride));
  return desc;
}

static cudnnStatus_t norm(const row_t *row, cudnnTensorDescriptor_t x,
                          cudnnTensorDescriptor_t y) {
  const float one = 1, zero = 0;
  shape_t like = row->shape[0];
  like.type = CUDNN_DATA_FLOAT;
  cudnnTensorDescriptor_t scale = reduced(&like);
  cudnnActivationDescriptor_t relu;
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                  CUDNN_PROPAGATE_NAN, 0));
  cudnnStatus_t status = cudnnBatchNormalizationForwardTrainingEx(
      handle, CUDNN_BATCHNORM_SPATIAL,
      row->function == NORM ? CUDNN_BATCHNORM_OPS_BN
                            : CUDNN_BATCHNORM_OPS_BN_ACTIVATION,
      &one, &zero, x, memory[0], NULL, NULL, y, memory[1], scale, memory[2],
      memory[2], 0, NULL, NULL, 1e-5, NULL, NULL, relu, NULL, 0, NULL, 0);
  OK(cudnnDestroyActivationDescriptor(relu));
  OK(cudnnDestroyTensorDescriptor(scale));
  return status;
}

static cudnnStatus_t pool(const row_t *row, const cudnnTensorDescriptor_t t[]) {
  const float one = 1, zero = 0;
  const int window[3] = {1, 1, 1}, pad[3] = {0};
  cudnnPoolingDescriptor_t how;
  OK(cudnnCreatePoolingDescriptor(&how));
  OK(cudnnSetPoolingNdDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN,
                                 row->shape[0].rank - 2, window, pad, window));
  cudnnStatus_t status =
      row->function == POOL
          ? cudnnPoolingForward(handle, how, &one, t[0], memory[0], &zero, t[1],
                                memory[1])
          : cudnnPoolingBackward(handle, how, &one, t[0], memory[0], t[1],
                                 memory[1], t[2], memory[2], &zero, t[3],
                                 memory[3]);
  OK(cudnnDestroyPoolingDescriptor(how));
  return status;
}

static cudnnStatus_t activation(const row_t *row,
                                const cudnnTensorDescriptor_t t[]) {
  const float one = 1, zero = 0;
  cudnnActivationDescriptor_t relu;
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                  CUDNN_PROPAGATE_NAN, 0));
  cudnnStatus_t status =
      row->function == ACTIVATION
          ? cudnnActivationForward(handle, relu, &one, t[0], memory[0], &zero,
                                   t[1], memory[1])
          : cudnnActivationBackward(handle, relu, &one, t[0], memory[0], t[1],
                                    memory[1], t[2], memory[2], &zero, t[3],
                                    memory[3]);
  OK(cudnnDestroyActivationDescriptor(relu));
  return status;
}

static cudnnStatus_t op(const row_t *row, const cudnnTensorDescriptor_t t[]) {
  const float one = 1, zero = 0;
  void *c = memory[row->function == OP_IN_A ? 0 : row->function == OP_IN_B];
  cudnnOpTensorDescriptor_t how;
  OK(cudnnCreateOpTensorDescriptor(&how));
  OK(cudnnSetOpTensorDescriptor(how, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                CUDNN_PROPAGATE_NAN));
  cudnnStatus_t status =
      cudnnOpTensor(handle, how, &one, t[0], memory[0], &one, t[1], memory[1],
                    &zero, t[2], row->function == OP ? memory[2] : c);
  OK(cudnnDestroyOpTensorDescriptor(how));
  return status;
}

static cudnnStatus_t reduce(const row_t *row, cudnnTensorDescriptor_t a) {
  const float one = 1, zero = 0;
  cudnnTensorDescriptor_t c = reduced(&row->shape[0]);
  cudnnReduceTensorDescriptor_t how;
  OK(cudnnCreateReduceTensorDescriptor(&how));
  OK(cudnnSetReduceTensorDescriptor(
      how, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
      CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  cudnnStatus_t status = cudnnReduceTensor(handle, how, NULL, 0, NULL, 0, &one,
                                           a, memory[0], &zero, c, memory[1]);
  OK(cudnnDestroyReduceTensorDescriptor(how));
  OK(cudnnDestroyTensorDescriptor(c));
  return status;
}

static cudnnStatus_t bias(const row_t *row, cudnnTensorDescriptor_t dy) {
  const float one = 1, zero = 0;
  cudnnTensorDescriptor_t db = reduced(&row->shape[0]);
  cudnnStatus_t status = cudnnConvolutionBackwardBias(
      handle, &one, dy, memory[0], &zero, db, memory[1]);
  OK(cudnnDestroyTensorDescriptor(db));
  return status;
}

static cudnnStatus_t lrn(const cudnnTensorDescriptor_t t[]) {
  const float one = 1, zero = 0;
  cudnnLRNDescriptor_t how;
  OK(cudnnCreateLRNDescriptor(&how));
  OK(cudnnSetLRNDescriptor(how, 3, 1, 0.5, 1));
  cudnnStatus_t status = cudnnLRNCrossChannelForward(
      handle, how, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, t[0], memory[0], &zero,
      t[1], memory[1]);
  OK(cudnnDestroyLRNDescriptor(how));
  return status;
}

static cudnnStatus_t call(const row_t *row, const cudnnTensorDescriptor_t t[]) {
  const float one = 1, zero = 0;
  switch (row->function) {
  case TRANSFORM:
    return cudnnTransformTensor(handle, &one, t[0], memory[0], &zero, t[1],
                                memory[1]);
  case ADD:
    return cudnnAddTensor(handle, &one, t[0], memory[0], &one, t[1], memory[1]);
  case SET:
    return cudnnSetTensor(handle, t[0], memory[0], &one);
  case SCALE:
    return cudnnScaleTensor(handle, t[0], memory[0], &one);
  case OP:
  case OP_IN_A:
  case OP_IN_B:
    return op(row, t);
  case REDUCE:
    return reduce(row, t[0]);
  case SOFTMAX:
    return cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE,
                               CUDNN_SOFTMAX_MODE_CHANNEL, &one, t[0],
                               memory[0], &zero, t[1], memory[1]);
  case SOFTMAX_BACKWARD:
    return cudnnSoftmaxBackward(
        handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, t[0],
        memory[0], t[1], memory[1], &zero, t[2], memory[2]);
  case ACTIVATION:
  case ACTIVATION_BACKWARD:
    return activation(row, t);
  case POOL:
  case POOL_BACKWARD:
    return pool(row, t);
  case NORM:
  case NORM_ACTIVATION:
    return norm(row, t[0], t[1]);
  case LRN:
    return lrn(t);
  case BIAS:
    return bias(row, t[0]);
  case FORWARD:
  case DATA:
  case FILTER:
    break;
  }
  return convolution(row->function, row->shape[0].type, row->shape[0].rank,
                     t[0], t[1], row->algorithm, row->short_of);
}

#define F32  CUDNN_DATA_FLOAT
#define F16  CUDNN_DATA_HALF
#define BF16 CUDNN_DATA_BFLOAT16
#define I8   CUDNN_DATA_INT8
#define I32  CUDNN_DATA_INT32
#define YES  CUDNN_STATUS_SUCCESS
#define NO   CUDNN_STATUS_NOT_SUPPORTED

// clang-format off
static const row_t rows[] = {
    {TRANSFORM, {{F32, 2, 2, NCHW}, {F16, 2, 2, NCHW}}, YES, 0, 0},
    {TRANSFORM, {{F32, 4, 2, NCHW}, {BF16, 4, 2, NHWC_ROWS}}, YES, 0, 0},
    {TRANSFORM, {{F16, 4, 2, NCHW}, {BF16, 4, 2, NCHW}}, NO, 0, 0},
    {ADD, {{F16, 5, 2, NCHW}, {F16, 5, 2, NHWC}}, YES, 0, 0},
    {ADD, {{F32, 6, 2, NCHW}, {F32, 6, 2, NCHW}}, NO, 0, 0},
    {OP, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {BF16, 4, 2, NCHW}}, YES, 0, 0},
    {OP, {{F32, 4, 2, NCHW}, {F16, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, NO, 0, 0},
    {OP, {{F16, 4, 2, NCHW}, {F16, 4, 2, NCHW}, {BF16, 4, 2, NCHW}}, NO, 0, 0},
    {OP, {{F32, 3, 2, NCHW}, {F32, 3, 2, NCHW}, {F32, 3, 2, NCHW}}, NO, 0, 0},
    {OP_IN_A, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F32, 4, 2, NCHW}}, YES, 0, 0},
    {OP_IN_A, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, NO, 0, 0},
    {OP_IN_B, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, NO, 0, 0},
    {SET, {{BF16, 4, 2, NHWC_COLUMNS}}, YES, 0, 0},
    {SET, {{F32, 3, 2, NCHW}}, NO, 0, 0},
    {SET, {{I32, 4, 2, NCHW}}, NO, 0, 0},
    {SCALE, {{F16, 5, 2, NCHW_ROWS}}, YES, 0, 0},
    {SCALE, {{F16, 6, 1, NCHW}}, NO, 0, 0},
    {REDUCE, {{F16, 3, 2, NCHW}}, YES, 0, 0},
    {REDUCE, {{F32, 6, 1, NCHW}}, YES, 0, 0},
    {REDUCE, {{BF16, 4, 2, NCHW}}, NO, 0, 0},
    {SOFTMAX, {{BF16, 3, 2, NCHW}, {BF16, 3, 2, NHWC}}, YES, 0, 0},
    {SOFTMAX_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}}, YES, 0, 0},
    {SOFTMAX_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, NO, 0, 0},
    {ACTIVATION, {{F32, 3, 2, NCHW}, {F32, 3, 2, NHWC}}, YES, 0, 0},
    {ACTIVATION_BACKWARD, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, YES, 0, 0},
    {ACTIVATION_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}}, NO, 0, 0},
    {POOL, {{BF16, 5, 2, NCHW_ROWS}, {BF16, 5, 2, NHWC}}, YES, 0, 0},
    {POOL_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, YES, 0, 0},
    {POOL_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, NO, 0, 0},
    {POOL_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, NO, 0, 0},
    {NORM, {{BF16, 4, 2, NCHW}, {BF16, 4, 2, NCHW}}, YES, 0, 0},
    {NORM, {{F32, 3, 2, NCHW}, {F32, 3, 2, NCHW}}, NO, 0, 0},
    {NORM_ACTIVATION, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}}, YES, 0, 0},
    {NORM_ACTIVATION, {{F16, 4, 2, NCHW}, {F16, 4, 2, NCHW}}, NO, 0, 0},
    {NORM_ACTIVATION, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, NO, 0, 0},
    {NORM_ACTIVATION, {{F16, 4, 2, NHWC_ROWS}, {F16, 4, 2, NHWC}}, NO, 0, 0},
    {LRN, {{F32, 5, 2, NCHW_ROWS}, {F32, 5, 2, NCHW}}, YES, 0, 0},
    {LRN, {{F32, 5, 2, NHWC}, {F32, 5, 2, NHWC}}, NO, 0, 0},
    {LRN, {{BF16, 4, 2, NCHW}, {BF16, 4, 2, NCHW}}, NO, 0, 0},
    {BIAS, {{F16, 6, 1, NCHW}}, YES, 0, 0},
    {BIAS, {{BF16, 4, 2, NCHW}}, NO, 0, 0},
    // Algorithms: forward 0 1 2, data 0 1, filter 0 1 3; in NHWC 0 1.
    {FORWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, YES, 2, 0},
    {FORWARD, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, NO, 2, 0},
    {FORWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, NO, CUDNN_CONVOLUTION_FWD_ALGO_FFT, 0},
    {DATA, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, NO, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, 0},
    {FILTER, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, YES, 3, 0},
    {FILTER, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, NO, 3, 0},
    {FORWARD, {{F32, 5, 2, NHWC}, {F32, 5, 2, NHWC}}, YES, 1, 0},
    {FORWARD, {{F32, 5, 2, NHWC}, {F32, 5, 2, NHWC}}, NO, 0, 0},
    // Ranges, and layouts that differ.
    {FORWARD, {{F16, 4, 2, NCHW_ROWS}, {F16, 4, 2, NCHW_COLUMNS}}, YES, 1, 0},
    {FORWARD, {{F16, 4, 2, NHWC_ROWS}, {F16, 4, 2, NHWC_ROWS}}, YES, 1, 0},
    {FORWARD, {{F16, 4, 2, NHWC_COLUMNS}, {F16, 4, 2, NHWC}}, NO, 1, 0},
    {FORWARD, {{F16, 4, 2, NCHW}, {F16, 4, 2, NHWC}}, NO, 1, 0},
    {FORWARD, {{I8, 4, 1, NHWC_ROWS}, {I8, 4, 1, NHWC_ROWS}}, YES, 1, 0},
    {FORWARD, {{I8, 4, 2, NHWC_ROWS}, {I8, 4, 2, NHWC_ROWS}}, NO, 1, 0},
    {DATA, {{F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, YES, 1, 0},
    {DATA, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}}, NO, 1, 0},
    {DATA, {{F32, 4, 2, NCHW_COLUMNS}, {F32, 4, 2, NCHW}}, NO, 1, 0},
    {DATA, {{F32, 4, 2, NHWC_ROWS}, {F32, 4, 2, NHWC_ROWS}}, YES, 1, 0},
    {FILTER, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}}, YES, 1, 0},
    {FILTER, {{F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, NO, 1, 0},
    {FILTER, {{F32, 4, 2, NHWC_COLUMNS}, {F32, 4, 2, NHWC}}, NO, 1, 0},
    // Workspaces: NCHW except double and algorithm 0; ranges of rows of several images.
    {FORWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, CUDNN_STATUS_BAD_PARAM, 1, 1},
    {DATA, {{F16, 4, 2, NHWC_ROWS}, {F16, 4, 2, NHWC}}, CUDNN_STATUS_BAD_PARAM, 1, 1},
};
// clang-format on

START_TEST(calls_are_refused_as_by_cudnn_on_a_hopper_gpu) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cudnnTensorDescriptor_t t[TENSORS] = {NULL};
    for (int k = 0; k < TENSORS && rows[i].shape[k].rank; k++)
      t[k] = tensor(&rows[i].shape[k]);
    cudnnStatus_t status = call(&rows[i], t);
    ck_assert_msg(status == rows[i].status, "row %zu: %s, not %s", i,
                  cudnnGetErrorString(status),
                  cudnnGetErrorString(rows[i].status));
    for (int k = 0; k < TENSORS; k++)
      OK(cudnnDestroyTensorDescriptor(t[k]));
  }
}
END_TEST

static void set_up(void) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < TENSORS; i++)
    OK(cudaMalloc(&memory[i], BYTES));
}

static void tear_down(void) {
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < TENSORS; i++)
    OK(cudaFree(memory[i]));
  OK(cudnnDestroy(handle));
}

int main(void) {
  Suite *suite = suite_create("host cudnn limits");
  TCase *cases = tcase_create("limits");
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_test(cases, calls_are_refused_as_by_cudnn_on_a_hopper_gpu);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
