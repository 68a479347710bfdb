// SPDX-License-Identifier: Apache-2.0
// Makes calls that lack the memory of one operand, and says what became of
// them. In between, and at the end, all is there.
//
// usage: absentcase FILE
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"

enum { POINTERS = 8, BYTES = 1 << 14, SPACE = 1 << 20 };

static const float one = 1, zero = 0;
static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnActivationDescriptor_t relu;
  cudnnOpTensorDescriptor_t add;
  cudnnReduceTensorDescriptor_t sum;
  cudnnLRNDescriptor_t lrn;
  void *space;
} g;

typedef cudnnStatus_t call_fn(void *const *p);

static cudnnStatus_t conv_forward(void *const *p) {
  return cudnnConvolutionForward(g.cudnn, &one, g.x, p[0], g.w, p[1], g.conv,
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                 g.space, SPACE, &zero, g.x, p[2]);
}

static cudnnStatus_t conv_fused(void *const *p) {
  return cudnnConvolutionBiasActivationForward(
      g.cudnn, &one, g.x, p[0], g.w, p[1], g.conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, g.space, SPACE, &one,
      g.x, p[2], g.bias, p[3], g.relu, g.x, p[4]);
}

static cudnnStatus_t conv_data(void *const *p) {
  return cudnnConvolutionBackwardData(g.cudnn, &one, g.w, p[0], g.x, p[1],
                                      g.conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                      g.space, SPACE, &zero, g.x, p[2]);
}

static cudnnStatus_t conv_filter(void *const *p) {
  return cudnnConvolutionBackwardFilter(
      g.cudnn, &one, g.x, p[0], g.x, p[1], g.conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, g.space, SPACE, &zero, g.w, p[2]);
}

static cudnnStatus_t conv_bias(void *const *p) {
  return cudnnConvolutionBackwardBias(g.cudnn, &one, g.x, p[0], &zero, g.bias,
                                      p[1]);
}

static cudnnStatus_t pool_forward(void *const *p) {
  return cudnnPoolingForward(g.cudnn, g.pool, &one, g.x, p[0], &zero, g.x,
                             p[1]);
}

static cudnnStatus_t pool_backward(void *const *p) {
  return cudnnPoolingBackward(g.cudnn, g.pool, &one, g.x, p[0], g.x, p[1], g.x,
                              p[2], &zero, g.x, p[3]);
}

static cudnnStatus_t softmax_forward(void *const *p) {
  return cudnnSoftmaxForward(g.cudnn, CUDNN_SOFTMAX_ACCURATE,
                             CUDNN_SOFTMAX_MODE_INSTANCE, &one, g.x, p[0],
                             &zero, g.x, p[1]);
}

static cudnnStatus_t softmax_backward(void *const *p) {
  return cudnnSoftmaxBackward(g.cudnn, CUDNN_SOFTMAX_ACCURATE,
                              CUDNN_SOFTMAX_MODE_INSTANCE, &one, g.x, p[0], g.x,
                              p[1], &zero, g.x, p[2]);
}

static cudnnStatus_t activation(void *const *p) {
  return cudnnActivationForward(g.cudnn, g.relu, &one, g.x, p[0], &zero, g.x,
                                p[1]);
}

static cudnnStatus_t op_tensor(void *const *p) {
  return cudnnOpTensor(g.cudnn, g.add, &one, g.x, p[0], &one, g.x, p[1], &zero,
                       g.x, p[2]);
}

static cudnnStatus_t scale(void *const *p) {
  return cudnnScaleTensor(g.cudnn, g.x, p[0], &one);
}

static cudnnStatus_t reduce(void *const *p) {
  return cudnnReduceTensor(g.cudnn, g.sum, NULL, 0, g.space, SPACE, &one, g.x,
                           p[0], &zero, g.bias, p[1]);
}

static cudnnStatus_t norm_infer(void *const *p) {
  return cudnnBatchNormalizationForwardInference(
      g.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, g.x, p[0], g.x, p[1],
      g.bias, p[2], p[3], p[4], p[5], 1e-4);
}

static cudnnStatus_t norm_train(void *const *p) {
  return cudnnBatchNormalizationForwardTraining(
      g.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, g.x, p[0], g.x, p[1],
      g.bias, p[2], p[3], 0.5, NULL, NULL, 1e-4, NULL, NULL);
}

static cudnnStatus_t norm_backward(void *const *p) {
  return cudnnBatchNormalizationBackward(
      g.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, g.x, p[0],
      g.x, p[1], g.x, p[2], g.bias, p[3], p[4], p[5], 1e-4, NULL, NULL);
}

static cudnnStatus_t lrn_forward(void *const *p) {
  return cudnnLRNCrossChannelForward(g.cudnn, g.lrn,
                                     CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, g.x,
                                     p[0], &zero, g.x, p[1]);
}

static const struct {
  const char *name;
  call_fn *call;
  int pointers;
} calls[] = {
    {"conv_forward", conv_forward, 3},
    {"conv_fused", conv_fused, 5},
    {"conv_data", conv_data, 3},
    {"conv_filter", conv_filter, 3},
    {"conv_bias", conv_bias, 2},
    {"pool_forward", pool_forward, 2},
    {"pool_backward", pool_backward, 4},
    {"softmax_forward", softmax_forward, 2},
    {"softmax_backward", softmax_backward, 3},
    {"activation", activation, 2},
    {"op_tensor", op_tensor, 3},
    {"scale", scale, 1},
    {"reduce", reduce, 2},
    {"norm_infer", norm_infer, 6},
    {"norm_train", norm_train, 4},
    {"norm_backward", norm_backward, 6},
    {"lrn_forward", lrn_forward, 2},
};

static void describe(void) {
  CHECK(cudnnSetTensor4dDescriptor(g.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2,
                                   3, 8, 6));
  CHECK(cudnnSetTensor4dDescriptor(g.bias, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 3, 1, 1));
  CHECK(cudnnSetFilter4dDescriptor(g.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3,
                                   3, 3, 3));
}

static void set_up(void) {
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnCreateTensorDescriptor(&g.x));
  CHECK(cudnnCreateTensorDescriptor(&g.bias));
  CHECK(cudnnCreateFilterDescriptor(&g.w));
  CHECK(cudnnCreateConvolutionDescriptor(&g.conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      g.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudnnCreatePoolingDescriptor(&g.pool));
  CHECK(cudnnSetPooling2dDescriptor(g.pool, CUDNN_POOLING_MAX,
                                    CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  CHECK(cudnnCreateActivationDescriptor(&g.relu));
  CHECK(cudnnSetActivationDescriptor(g.relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_PROPAGATE_NAN, 0));
  CHECK(cudnnCreateOpTensorDescriptor(&g.add));
  CHECK(cudnnSetOpTensorDescriptor(g.add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN));
  CHECK(cudnnCreateReduceTensorDescriptor(&g.sum));
  CHECK(cudnnSetReduceTensorDescriptor(
      g.sum, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
      CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  CHECK(cudnnCreateLRNDescriptor(&g.lrn));
  CHECK(cudnnSetLRNDescriptor(g.lrn, 3, 1e-4, 0.75, 2));
  CHECK(cudaMalloc(&g.space, SPACE));
}

// What is missing comes first, then after a call that has all.
static void calls_make(FILE *file, void *const *all) {
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (int pass = 0; pass < 2; pass++) {
      describe();
      if (pass == 1)
        CHECK(calls[c].call(all));
      for (int i = 0; i < calls[c].pointers; i++) {
        void *p[POINTERS];
        for (int k = 0; k < POINTERS; k++)
          p[k] = k == i ? NULL : all[k];
        int status = (int)calls[c].call(p);
        fprintf(file, "%s without %d: %d, %d\n", calls[c].name, i, status,
                (int)cudaDeviceSynchronize());
      }
      CHECK(calls[c].call(all));
    }
}

int main(int count, char **arguments) {
  FILE *file = count == 2 ? fopen(arguments[1], "w") : NULL;
  void *all[POINTERS];
  if (!file)
    return 1;
  set_up();
  for (int i = 0; i < POINTERS; i++) {
    CHECK(cudaMalloc(&all[i], BYTES));
    CHECK(cudaMemset(all[i], 0, BYTES));
  }
  calls_make(file, all);
  return fclose(file) != 0;
}
