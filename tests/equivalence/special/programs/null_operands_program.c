// SPDX-License-Identifier: Apache-2.0
// Makes calls that lack the memory of one operand, or a scaling factor, and
// prints their statuses. Between them, and at the end, it makes complete calls.
//
// usage: null_operands_program FILE [products]
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"

enum { POINTERS = 8, BYTES = 1 << 14, SPACE = 1 << 20 };

static const float one = 1, zero = 0;
// How many scaling factors the call took so far, and which one is NULL.
static int scale_made, scale_absent = -1;
#define ONE  scaled(&one)
#define ZERO scaled(&zero)
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

static const float *scaled(const float *by) {
  return scale_made++ == scale_absent ? NULL : by;
}

typedef cudnnStatus_t call_fn(void *const *p);

static cudnnStatus_t conv_forward(void *const *p) {
  return cudnnConvolutionForward(g.cudnn, ONE, g.x, p[0], g.w, p[1], g.conv,
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                 g.space, SPACE, ZERO, g.x, p[2]);
}

static cudnnStatus_t conv_fused(void *const *p) {
  return cudnnConvolutionBiasActivationForward(
      g.cudnn, ONE, g.x, p[0], g.w, p[1], g.conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, g.space, SPACE, ONE,
      g.x, p[2], g.bias, p[3], g.relu, g.x, p[4]);
}

static cudnnStatus_t conv_data(void *const *p) {
  return cudnnConvolutionBackwardData(g.cudnn, ONE, g.w, p[0], g.x, p[1],
                                      g.conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                      g.space, SPACE, ZERO, g.x, p[2]);
}

static cudnnStatus_t conv_filter(void *const *p) {
  return cudnnConvolutionBackwardFilter(
      g.cudnn, ONE, g.x, p[0], g.x, p[1], g.conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, g.space, SPACE, ZERO, g.w, p[2]);
}

static cudnnStatus_t conv_bias(void *const *p) {
  return cudnnConvolutionBackwardBias(g.cudnn, ONE, g.x, p[0], ZERO, g.bias,
                                      p[1]);
}

static cudnnStatus_t pool_forward(void *const *p) {
  return cudnnPoolingForward(g.cudnn, g.pool, ONE, g.x, p[0], ZERO, g.x, p[1]);
}

static cudnnStatus_t pool_backward(void *const *p) {
  return cudnnPoolingBackward(g.cudnn, g.pool, ONE, g.x, p[0], g.x, p[1], g.x,
                              p[2], ZERO, g.x, p[3]);
}

static cudnnStatus_t softmax_forward(void *const *p) {
  return cudnnSoftmaxForward(g.cudnn, CUDNN_SOFTMAX_ACCURATE,
                             CUDNN_SOFTMAX_MODE_INSTANCE, ONE, g.x, p[0], ZERO,
                             g.x, p[1]);
}

static cudnnStatus_t softmax_backward(void *const *p) {
  return cudnnSoftmaxBackward(g.cudnn, CUDNN_SOFTMAX_ACCURATE,
                              CUDNN_SOFTMAX_MODE_INSTANCE, ONE, g.x, p[0], g.x,
                              p[1], ZERO, g.x, p[2]);
}

static cudnnStatus_t activation(void *const *p) {
  return cudnnActivationForward(g.cudnn, g.relu, ONE, g.x, p[0], ZERO, g.x,
                                p[1]);
}

static cudnnStatus_t op_tensor(void *const *p) {
  return cudnnOpTensor(g.cudnn, g.add, ONE, g.x, p[0], ONE, g.x, p[1], ZERO,
                       g.x, p[2]);
}

static cudnnStatus_t scale(void *const *p) {
  return cudnnScaleTensor(g.cudnn, g.x, p[0], ONE);
}

static cudnnStatus_t reduce(void *const *p) {
  return cudnnReduceTensor(g.cudnn, g.sum, NULL, 0, g.space, SPACE, ONE, g.x,
                           p[0], ZERO, g.bias, p[1]);
}

static cudnnStatus_t norm_infer(void *const *p) {
  return cudnnBatchNormalizationForwardInference(
      g.cudnn, CUDNN_BATCHNORM_SPATIAL, ONE, ZERO, g.x, p[0], g.x, p[1], g.bias,
      p[2], p[3], p[4], p[5], 1e-4);
}

static cudnnStatus_t norm_train(void *const *p) {
  return cudnnBatchNormalizationForwardTraining(
      g.cudnn, CUDNN_BATCHNORM_SPATIAL, ONE, ZERO, g.x, p[0], g.x, p[1], g.bias,
      p[2], p[3], 0.5, NULL, NULL, 1e-4, NULL, NULL);
}

static cudnnStatus_t norm_backward(void *const *p) {
  return cudnnBatchNormalizationBackward(
      g.cudnn, CUDNN_BATCHNORM_SPATIAL, ONE, ZERO, ONE, ZERO, g.x, p[0], g.x,
      p[1], g.x, p[2], g.bias, p[3], p[4], p[5], 1e-4, NULL, NULL);
}

static cudnnStatus_t lrn_forward(void *const *p) {
  return cudnnLRNCrossChannelForward(g.cudnn, g.lrn,
                                     CUDNN_LRN_CROSS_CHANNEL_DIM1, ONE, g.x,
                                     p[0], ZERO, g.x, p[1]);
}

static cudnnStatus_t lrn_backward(void *const *p) {
  return cudnnLRNCrossChannelBackward(
      g.cudnn, g.lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, ONE, g.x, p[0], g.x, p[1],
      g.x, p[2], ZERO, g.x, p[3]);
}

static cudnnStatus_t activation_backward(void *const *p) {
  return cudnnActivationBackward(g.cudnn, g.relu, ONE, g.x, p[0], g.x, p[1],
                                 g.x, p[2], ZERO, g.x, p[3]);
}

static cudnnStatus_t add_tensor(void *const *p) {
  return cudnnAddTensor(g.cudnn, ONE, g.bias, p[0], ONE, g.x, p[1]);
}

static cudnnStatus_t transform(void *const *p) {
  return cudnnTransformTensor(g.cudnn, ONE, g.x, p[0], ZERO, g.x, p[1]);
}

static cudnnStatus_t set_tensor(void *const *p) {
  return cudnnSetTensor(g.cudnn, g.x, p[0], ONE);
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
    {"lrn_backward", lrn_backward, 4},
    {"activation_backward", activation_backward, 4},
    {"add_tensor", add_tensor, 2},
    {"transform", transform, 2},
    {"set_tensor", set_tensor, 1},
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

// Returns how many scaling factors a call takes.
static int made_by(call_fn *call, void *const *all) {
  scale_made = 0;
  CHECK(call(all));
  return scale_made;
}

// Makes the incomplete calls first, and again after a complete one.
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
      for (int i = 0, scales = made_by(calls[c].call, all); i < scales; i++) {
        scale_made = 0;
        scale_absent = i;
        int status = (int)calls[c].call(all);
        scale_absent = -1;
        fprintf(file, "%s without a scale: %d, %d\n", calls[c].name, status,
                (int)cudaDeviceSynchronize());
      }
      CHECK(calls[c].call(all));
    }
}

// Products of M x K and K x N without alpha, without beta, and with both.
static void products_make(FILE *file, void *const *all) {
  enum { M = 8, N = 6, K = 10 };
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t how;
  cublasLtMatrixLayout_t a, b, c;
  CHECK(cublasCreate(&blas));
  CHECK(cublasLtCreate(&lt));
  CHECK(cublasLtMatmulDescCreate(&how, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CHECK(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, M, K, M));
  CHECK(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, K, N, K));
  CHECK(cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, M, N, M));
  for (int i = 0; i < 6; i++) {
    const float *alpha = i % 3 == 1 ? NULL : &one;
    const float *beta = i % 3 == 2 ? NULL : &zero;
    fprintf(file, "gemm %d\n",
            (int)cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, alpha,
                             all[0], M, all[1], K, beta, all[2], M));
    fprintf(file, "gemv %d\n",
            (int)cublasSgemv(blas, CUBLAS_OP_N, M, K, alpha, all[0], M, all[1],
                             1, beta, all[2], 1));
    fprintf(file, "matmul %d\n",
            (int)cublasLtMatmul(lt, how, alpha, all[0], a, all[1], b, beta,
                                all[2], c, all[2], c, NULL, NULL, 0, 0));
    CHECK(cudaDeviceSynchronize());
  }
}

int main(int count, char **arguments) {
  FILE *file = count > 1 ? fopen(arguments[1], "w") : NULL;
  void *all[POINTERS];
  if (!file)
    return 1;
  set_up();
  for (int i = 0; i < POINTERS; i++) {
    CHECK(cudaMalloc(&all[i], BYTES));
    CHECK(cudaMemset(all[i], 0, BYTES));
  }
  if (count > 2)
    products_make(file, all);
  else
    calls_make(file, all);
  return fclose(file) != 0;
}
