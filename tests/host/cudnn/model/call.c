// SPDX-License-Identifier: Apache-2.0
// One call of each function that the model of a GPU has limits for.
#include "tests/host/cudnn/model/call.h"

#include <cuda_runtime_api.h>

#include "tests/calls.h"
#include "tests/unit/harness.h"

enum { BYTES = 1 << 17, MEMORIES = 6 };

static cudnnHandle_t handle;
static void *memory[MEMORIES];

// Factors of calls: floats, or doubles for tensors in double.
// Twice, because scalars of a transformation have the type of its output.
static const float float_one[2] = {1, 1}, float_zero[2] = {0, 0};
static const double double_one = 1, double_zero = 0;
static const void *one, *zero;

void call_start(void) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < MEMORIES; i++)
    OK(cudaMalloc(&memory[i], BYTES));
}

void call_stop(void) {
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < MEMORIES; i++)
    OK(cudaFree(memory[i]));
  OK(cudnnDestroy(handle));
}

cudnnHandle_t call_handle(void) {
  return handle;
}

// ---- tensors ---------------------------------------------------------------

static int extent_of(const shape_t *shape, int d) {
  return d == 0 ? shape->images : d == 1 ? 2 : shape->rank > 5 ? 2 : 4;
}

// The dimension that the larger tensor has twice as long, or -1.
static int halved(const shape_t *shape) {
  switch (shape->layout) {
  case NCHW_ROWS:
  case NHWC_ROWS:
    return shape->rank - 2;
  case NCHW_COLUMNS:
  case NHWC_COLUMNS:
    return shape->rank - 1;
  case NCHW_SLICES:
  case NHWC_SLICES:
    return 2;
  default:
    return -1;
  }
}

cudnnTensorDescriptor_t call_tensor(const shape_t *shape) {
  int dim[8], stride[8], order[8], count = 0, at = 1, rank = shape->rank;
  bool last = shape->layout == NHWC || shape->layout == NHWC_ROWS ||
              shape->layout == NHWC_COLUMNS || shape->layout == NHWC_SLICES;
  bool turned = shape->layout == CNHW;
  if (last)
    order[count++] = 1;
  for (int d = rank - 1; d >= 2; d--)
    order[count++] = d;
  if (turned)
    order[count++] = 0;
  if (!last)
    order[count++] = 1;
  if (!turned)
    order[count++] = 0;
  for (int i = 0; i < rank; i++) {
    int d = order[i];
    dim[d] = extent_of(shape, d);
    stride[d] = at;
    at *= dim[d] * (d == halved(shape) ? 2 : 1);
  }
  cudnnTensorDescriptor_t desc;
  OK(cudnnCreateTensorDescriptor(&desc));
  OK(cudnnSetTensorNdDescriptor(desc, shape->type, rank, dim, stride));
  return desc;
}

// One element for each channel.
static cudnnTensorDescriptor_t channels(cudnnDataType_t type, int rank) {
  int dim[8], stride[8];
  for (int d = 0; d < rank; d++) {
    dim[d] = d == 1 ? 2 : 1;
    stride[d] = d < 1 ? 2 : 1;
  }
  cudnnTensorDescriptor_t desc;
  OK(cudnnCreateTensorDescriptor(&desc));
  OK(cudnnSetTensorNdDescriptor(desc, type, rank, dim, stride));
  return desc;
}

static cudnnActivationDescriptor_t relu_make(void) {
  cudnnActivationDescriptor_t relu;
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                  CUDNN_PROPAGATE_NAN, 0));
  return relu;
}

// ---- convolutions ----------------------------------------------------------

typedef struct {
  const call_t *call;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  size_t bytes;
} conv_t;

static cudnnStatus_t forward(const conv_t *c, bool bias) {
  cudnnConvolutionFwdAlgo_t algo =
      (cudnnConvolutionFwdAlgo_t)c->call->algorithm;
  if (!bias)
    return cudnnConvolutionForward(handle, one, c->x, memory[0], c->w,
                                   memory[1], c->conv, algo, memory[3],
                                   c->bytes, zero, c->y, memory[2]);
  const shape_t *shape = &c->call->shape[0];
  cudnnTensorDescriptor_t b = channels(shape->type, shape->rank);
  cudnnActivationDescriptor_t relu = relu_make();
  cudnnStatus_t status = cudnnConvolutionBiasActivationForward(
      handle, one, c->x, memory[0], c->w, memory[1], c->conv, algo, memory[3],
      c->bytes, zero, c->y, memory[2], b, memory[4], relu, c->y, memory[2]);
  OK(cudnnDestroyActivationDescriptor(relu));
  OK(cudnnDestroyTensorDescriptor(b));
  return status;
}

static cudnnStatus_t conv_ask(conv_t *c) {
  switch (c->call->function) {
  case DATA:
    return cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle, c->w, c->y, c->conv, c->x,
        (cudnnConvolutionBwdDataAlgo_t)c->call->algorithm, &c->bytes);
  case FILTER:
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle, c->x, c->y, c->conv, c->w,
        (cudnnConvolutionBwdFilterAlgo_t)c->call->algorithm, &c->bytes);
  default:
    return cudnnGetConvolutionForwardWorkspaceSize(
        handle, c->x, c->w, c->conv, c->y,
        (cudnnConvolutionFwdAlgo_t)c->call->algorithm, &c->bytes);
  }
}

static cudnnStatus_t conv_run(const conv_t *c) {
  switch (c->call->function) {
  case DATA:
    return cudnnConvolutionBackwardData(
        handle, one, c->w, memory[1], c->y, memory[2], c->conv,
        (cudnnConvolutionBwdDataAlgo_t)c->call->algorithm, memory[3], c->bytes,
        zero, c->x, memory[0]);
  case FILTER:
    return cudnnConvolutionBackwardFilter(
        handle, one, c->x, memory[0], c->y, memory[2], c->conv,
        (cudnnConvolutionBwdFilterAlgo_t)c->call->algorithm, memory[3],
        c->bytes, zero, c->w, memory[1]);
  default:
    return forward(c, c->call->function == FORWARD_BIAS);
  }
}

static cudnnStatus_t convolution(const call_t *call,
                                 const cudnnTensorDescriptor_t t[]) {
  const int pad[3] = {0}, step[3] = {1, 1, 1}, window[5] = {2, 2, 1, 1, 1};
  const shape_t *shape = &call->shape[0];
  conv_t c = {.call = call, .x = t[0], .y = t[1]};
  bool last = shape->layout == NHWC || shape->layout == NHWC_ROWS ||
              shape->layout == NHWC_COLUMNS || shape->layout == NHWC_SLICES;
  OK(cudnnCreateFilterDescriptor(&c.w));
  OK(cudnnSetFilterNdDescriptor(c.w, shape->type,
                                last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                shape->rank, window));
  OK(cudnnCreateConvolutionDescriptor(&c.conv));
  OK(cudnnSetConvolutionNdDescriptor(c.conv, shape->rank - 2, pad, step, step,
                                     CUDNN_CROSS_CORRELATION,
                                     shape->type == I8    ? I32
                                     : shape->type == F64 ? F64
                                                          : F32));
  cudnnStatus_t asked = conv_ask(&c);
  c.bytes -= call->short_of;
  cudnnStatus_t status = conv_run(&c);
  if (!call->short_of)
    ck_assert_int_eq((int)asked, (int)status);
  OK(cudnnDestroyFilterDescriptor(c.w));
  OK(cudnnDestroyConvolutionDescriptor(c.conv));
  return status;
}

// ---- normalisations --------------------------------------------------------

typedef struct {
  cudnnTensorDescriptor_t x, y, dx, saved; // saved: y of the forward call
  cudnnTensorDescriptor_t params;
  cudnnActivationDescriptor_t relu;
} norm_t;

static cudnnStatus_t bn_run(function_t function, const norm_t *n) {
  cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
  cudnnBatchNormOps_t ops =
      function == BN_ACTIVATION || function == BN_ACTIVATION_BACKWARD
          ? CUDNN_BATCHNORM_OPS_BN_ACTIVATION
          : CUDNN_BATCHNORM_OPS_BN;
  void *const *m = memory;
  if (function == BN_INFERENCE)
    return cudnnBatchNormalizationForwardInference(
        handle, mode, one, zero, n->x, m[0], n->y, m[1], n->params, m[4], m[4],
        m[4], m[4], 1e-5);
  if (function == BN || function == BN_OWN_SCALES || function == BN_ACTIVATION)
    return cudnnBatchNormalizationForwardTrainingEx(
        handle, mode, ops, one, zero, n->x, m[0], NULL, NULL, n->y, m[1],
        n->params, m[4], m[4], 0, NULL, NULL, 1e-5, NULL, NULL, n->relu, NULL,
        0, NULL, 0);
  return cudnnBatchNormalizationBackwardEx(
      handle, mode, ops, one, zero, one, zero, n->x, m[0], n->saved, m[3], n->y,
      m[1], NULL, NULL, n->dx, m[2], n->params, m[4], m[4], m[5], m[5], 1e-5,
      NULL, NULL, n->relu, NULL, 0, NULL, 0);
}

static cudnnStatus_t norm_run(function_t function, const norm_t *n) {
  cudnnNormMode_t mode = CUDNN_NORM_PER_CHANNEL;
  cudnnNormOps_t ops =
      function == NORM_ACTIVATION || function == NORM_ACTIVATION_BACKWARD
          ? CUDNN_NORM_OPS_NORM_ACTIVATION
          : CUDNN_NORM_OPS_NORM;
  cudnnNormAlgo_t algo = CUDNN_NORM_ALGO_STANDARD;
  void *const *m = memory;
  if (function == NORM_INFERENCE)
    return cudnnNormalizationForwardInference(
        handle, mode, ops, algo, one, zero, n->x, m[0], n->params, m[4], m[4],
        n->params, m[4], m[4], NULL, NULL, NULL, n->y, m[1], 1e-5, 1);
  if (function == NORM || function == NORM_ACTIVATION)
    return cudnnNormalizationForwardTraining(
        handle, mode, ops, algo, one, zero, n->x, m[0], n->params, m[4], m[4],
        0, n->params, NULL, NULL, 1e-5, NULL, NULL, n->relu, NULL, NULL, n->y,
        m[1], NULL, 0, NULL, 0, 1);
  return cudnnNormalizationBackward(
      handle, mode, ops, algo, one, zero, one, zero, n->x, m[0], n->saved, m[3],
      n->y, m[1], NULL, NULL, n->dx, m[2], n->params, m[4], m[4], m[5], m[5],
      1e-5, n->params, NULL, NULL, n->relu, NULL, 0, NULL, 0, 1);
}

static cudnnStatus_t norm(const call_t *call,
                          const cudnnTensorDescriptor_t t[]) {
  const shape_t *shape = &call->shape[0];
  cudnnDataType_t type = shape->type == F64 ? F64 : F32;
  if (call->function == BN_OWN_SCALES)
    type = shape->type;
  norm_t n = {.x = t[0], .y = t[1], .dx = t[2], .saved = t[3]};
  n.params = channels(type, shape->rank);
  n.relu = relu_make();
  cudnnStatus_t status = call->function < NORM_INFERENCE
                             ? bn_run(call->function, &n)
                             : norm_run(call->function, &n);
  OK(cudnnDestroyActivationDescriptor(n.relu));
  OK(cudnnDestroyTensorDescriptor(n.params));
  return status;
}

// ---- the others ------------------------------------------------------------

static cudnnStatus_t pool(const call_t *call,
                          const cudnnTensorDescriptor_t t[]) {
  const int window[6] = {1, 1, 1, 1, 1, 1}, pad[6] = {0};
  cudnnPoolingDescriptor_t how;
  OK(cudnnCreatePoolingDescriptor(&how));
  OK(cudnnSetPoolingNdDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN,
                                 call->shape[0].rank - 2, window, pad, window));
  cudnnStatus_t status =
      call->function == POOL
          ? cudnnPoolingForward(handle, how, one, t[0], memory[0], zero, t[1],
                                memory[1])
          : cudnnPoolingBackward(handle, how, one, t[0], memory[0], t[1],
                                 memory[1], t[2], memory[2], zero, t[3],
                                 memory[3]);
  OK(cudnnDestroyPoolingDescriptor(how));
  return status;
}

static cudnnStatus_t activation(const call_t *call,
                                const cudnnTensorDescriptor_t t[]) {
  cudnnActivationDescriptor_t relu = relu_make();
  bool in_place = call->function == ACTIVATION_IN_PLACE;
  cudnnStatus_t status =
      call->function == ACTIVATION_BACKWARD
          ? cudnnActivationBackward(handle, relu, one, t[0], memory[0], t[1],
                                    memory[1], t[2], memory[2], zero, t[3],
                                    memory[3])
          : cudnnActivationForward(handle, relu, one, t[0], memory[0], zero,
                                   t[1], memory[in_place ? 0 : 1]);
  OK(cudnnDestroyActivationDescriptor(relu));
  return status;
}

static cudnnStatus_t op(const call_t *call, const cudnnTensorDescriptor_t t[]) {
  cudnnDataType_t compute = call->shape[0].type == F64 ? F64 : F32;
  void *b = memory[call->function == OP_A_IS_B ? 0 : 1];
  void *c = call->function == OP_IN_A   ? memory[0]
            : call->function == OP_IN_B ? b
                                        : memory[2];
  cudnnOpTensorDescriptor_t how;
  OK(cudnnCreateOpTensorDescriptor(&how));
  OK(cudnnSetOpTensorDescriptor(how, CUDNN_OP_TENSOR_ADD, compute,
                                CUDNN_PROPAGATE_NAN));
  cudnnStatus_t status = cudnnOpTensor(handle, how, one, t[0], memory[0], one,
                                       t[1], b, zero, t[2], c);
  OK(cudnnDestroyOpTensorDescriptor(how));
  return status;
}

// The second shape's type is the output's.
static cudnnStatus_t reduce(const call_t *call, cudnnTensorDescriptor_t a) {
  const shape_t *shape = call->shape;
  cudnnDataType_t out = shape[1].rank ? shape[1].type : shape[0].type;
  cudnnTensorDescriptor_t c = call->function == REDUCE_NOTHING
                                  ? call_tensor(&shape[0])
                                  : channels(out, shape[0].rank);
  cudnnReduceTensorDescriptor_t how;
  OK(cudnnCreateReduceTensorDescriptor(&how));
  OK(cudnnSetReduceTensorDescriptor(how, CUDNN_REDUCE_TENSOR_ADD,
                                    call->function == REDUCE_IN_HALF ? F16
                                    : shape[0].type == F64           ? F64
                                                                     : F32,
                                    CUDNN_PROPAGATE_NAN,
                                    CUDNN_REDUCE_TENSOR_NO_INDICES,
                                    CUDNN_32BIT_INDICES));
  cudnnStatus_t status = cudnnReduceTensor(handle, how, NULL, 0, NULL, 0, one,
                                           a, memory[0], zero, c, memory[1]);
  OK(cudnnDestroyReduceTensorDescriptor(how));
  OK(cudnnDestroyTensorDescriptor(c));
  return status;
}

static cudnnStatus_t bias(const call_t *call, cudnnTensorDescriptor_t dy) {
  cudnnTensorDescriptor_t db =
      channels(call->shape[0].type, call->shape[0].rank);
  cudnnStatus_t status = cudnnConvolutionBackwardBias(
      handle, one, dy, memory[0], zero, db, memory[1]);
  OK(cudnnDestroyTensorDescriptor(db));
  return status;
}

static cudnnStatus_t lrn(const call_t *call,
                         const cudnnTensorDescriptor_t t[]) {
  cudnnLRNDescriptor_t how;
  cudnnLRNMode_t mode = CUDNN_LRN_CROSS_CHANNEL_DIM1;
  OK(cudnnCreateLRNDescriptor(&how));
  OK(cudnnSetLRNDescriptor(how, 3, 1, 0.5, 1));
  cudnnStatus_t status =
      call->function == LRN
          ? cudnnLRNCrossChannelForward(handle, how, mode, one, t[0], memory[0],
                                        zero, t[1], memory[1])
          : cudnnLRNCrossChannelBackward(handle, how, mode, one, t[0],
                                         memory[0], t[1], memory[1], t[2],
                                         memory[2], zero, t[3], memory[3]);
  OK(cudnnDestroyLRNDescriptor(how));
  return status;
}

static cudnnStatus_t softmax(function_t function,
                             const cudnnTensorDescriptor_t t[]) {
  cudnnSoftmaxAlgorithm_t algo = CUDNN_SOFTMAX_ACCURATE;
  cudnnSoftmaxMode_t mode = CUDNN_SOFTMAX_MODE_CHANNEL;
  if (function == SOFTMAX)
    return cudnnSoftmaxForward(handle, algo, mode, one, t[0], memory[0], zero,
                               t[1], memory[1]);
  return cudnnSoftmaxBackward(handle, algo, mode, one, t[0], memory[0], t[1],
                              memory[1], zero, t[2], memory[2]);
}

static cudnnStatus_t run(const call_t *call,
                         const cudnnTensorDescriptor_t t[]) {
  switch (call->function) {
  case TRANSFORM:
    return cudnnTransformTensor(handle, one, t[0], memory[0], zero, t[1],
                                memory[1]);
  case ADD:
    return cudnnAddTensor(handle, one, t[0], memory[0], one, t[1], memory[1]);
  case SET:
    return cudnnSetTensor(handle, t[0], memory[0], one);
  case SCALE:
    return cudnnScaleTensor(handle, t[0], memory[0], one);
  case OP:
  case OP_IN_A:
  case OP_IN_B:
  case OP_A_IS_B:
    return op(call, t);
  case REDUCE:
  case REDUCE_NOTHING:
  case REDUCE_IN_HALF:
    return reduce(call, t[0]);
  case SOFTMAX:
  case SOFTMAX_BACKWARD:
    return softmax(call->function, t);
  case ACTIVATION:
  case ACTIVATION_IN_PLACE:
  case ACTIVATION_BACKWARD:
    return activation(call, t);
  case POOL:
  case POOL_BACKWARD:
    return pool(call, t);
  case LRN:
  case LRN_BACKWARD:
    return lrn(call, t);
  case BIAS:
    return bias(call, t[0]);
  case FORWARD:
  case FORWARD_BIAS:
  case DATA:
  case FILTER:
    return convolution(call, t);
  default:
    return norm(call, t);
  }
}

cudnnStatus_t call_make(const call_t *call) {
  cudnnTensorDescriptor_t t[CALL_TENSORS] = {NULL};
  for (int i = 0; i < CALL_TENSORS && call->shape[i].rank; i++)
    t[i] = call_tensor(&call->shape[i]);
  bool wide = call->shape[0].type == F64;
  one = wide ? (const void *)&double_one : float_one;
  zero = wide ? (const void *)&double_zero : float_zero;
  cudnnStatus_t status = run(call, t);
  for (int i = 0; i < CALL_TENSORS; i++)
    if (t[i])
      OK(cudnnDestroyTensorDescriptor(t[i]));
  return status;
}
