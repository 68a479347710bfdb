/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of small networks, in calls of cuDNN and cuBLAS: what the programs
 * that train share. A failing call ends the program. */
#ifndef CLIENTS_NET_H
#define CLIENTS_NET_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

/* One source for two precisions: in double, rounding is so small that any
 * difference is a mistake. */
#ifdef NET_DOUBLE
typedef double net_real;
#define NET_DATA   CUDNN_DATA_DOUBLE
#define NET_DIGITS 15
#define NET_AXPY   cublasDaxpy
#define NET_GEMM   cublasDgemm
#else
typedef float net_real;
#define NET_DATA   CUDNN_DATA_FLOAT
#define NET_DIGITS 7
#define NET_AXPY   cublasSaxpy
#define NET_GEMM   cublasSgemm
#endif

#define NET_CHECK(call, ok, text)                                              \
  do {                                                                         \
    __typeof__(call) status_ = (call);                                         \
    if (status_ != (ok)) {                                                     \
      fprintf(stderr, "%s: %s\n", #call, text(status_));                       \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)
#define CUDA(call)  NET_CHECK(call, cudaSuccess, cudaGetErrorString)
#define CUDNN(call) NET_CHECK(call, CUDNN_STATUS_SUCCESS, cudnnGetErrorString)
#define CUBLAS(call)                                                           \
  NET_CHECK(call, CUBLAS_STATUS_SUCCESS, cublasGetStatusString)

enum { NET_DIMS_MAX = 5 };

typedef struct net {
  cudnnHandle_t cudnn;
  cublasHandle_t cublas;
  cudnnActivationDescriptor_t relu;
  cudnnOpTensorDescriptor_t add;
  void *workspace; /* the largest that a call has asked for */
  size_t workspace_bytes;
  net_real rate; /* of learning */
  unsigned seed; /* of the next weight */
} net_t;

/* An activation and its gradient: N, C, then space, packed. */
typedef struct net_tensor {
  cudnnTensorDescriptor_t desc;
  int dims, extent[NET_DIMS_MAX];
  size_t count;
  net_real *at, *grad;
} net_tensor_t;

/* A parameter and its gradient. */
typedef struct net_parameter {
  size_t count;
  net_real *at, *grad;
} net_parameter_t;

typedef struct net_conv {
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t desc;
  cudnnTensorDescriptor_t bias_desc;
  net_parameter_t weights, bias;
  /* What cuDNN chose, once it was asked. */
  struct {
    int known;
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t data;
    cudnnConvolutionBwdFilterAlgo_t filter;
  } algo;
} net_conv_t;

typedef struct net_norm {
  cudnnTensorDescriptor_t desc;
  net_parameter_t scale, shift;
  net_real *running_mean, *running_variance, *saved_mean, *saved_deviation;
} net_norm_t;

void net_init(net_t *net, net_real rate);
void net_fini(net_t *net);

/* Zeros, on the device. */
net_real *net_zeros(size_t count);
net_tensor_t net_tensor(int dims, const int *extent);
void net_tensor_free(net_tensor_t *tensor);
/* Random weights of this size around 0, or all of them this `value`. */
net_parameter_t net_weights(net_t *net, size_t count, net_real size);
net_parameter_t net_constants(size_t count, net_real value);
void net_parameter_free(net_parameter_t *parameter);
/* One step down the gradient. */
void net_step(net_t *net, net_parameter_t *parameter);

/* From `in` channels to `out`, the same in every dimension of space. */
net_conv_t net_conv(net_t *net, int dims, int in, int out, int kernel, int pad,
                    int stride);
void net_conv_free(net_conv_t *conv);
/* The output for this input, of the size that cuDNN says. */
net_tensor_t net_conv_output(const net_conv_t *conv, const net_tensor_t *x);
void net_conv_forward(net_t *net, net_conv_t *conv, const net_tensor_t *x,
                      const net_tensor_t *y);
/* Gradients of filter and bias; of x too where it is wanted: added to what is
 * there times `keep`. */
void net_conv_backward(net_t *net, net_conv_t *conv, const net_tensor_t *x,
                       const net_tensor_t *y, int wanted, net_real keep);
/* The transposed convolution: from y to x, with a bias of x. */
void net_conv_up(net_t *net, net_conv_t *conv, const net_tensor_t *y,
                 const net_tensor_t *x);
void net_conv_up_backward(net_t *net, net_conv_t *conv, const net_tensor_t *y,
                          const net_tensor_t *x);

net_norm_t net_norm(const net_tensor_t *x);
void net_norm_free(net_norm_t *norm);
void net_norm_forward(net_t *net, net_norm_t *norm, const net_tensor_t *x,
                      const net_tensor_t *y);
void net_norm_backward(net_t *net, net_norm_t *norm, const net_tensor_t *x,
                       const net_tensor_t *y);

cudnnPoolingDescriptor_t net_pool(cudnnPoolingMode_t mode, int spatial,
                                  const int *window);
net_tensor_t net_pool_output(cudnnPoolingDescriptor_t pool,
                             const net_tensor_t *x);
void net_pool_forward(net_t *net, cudnnPoolingDescriptor_t pool,
                      const net_tensor_t *x, const net_tensor_t *y);
void net_pool_backward(net_t *net, cudnnPoolingDescriptor_t pool,
                       const net_tensor_t *x, const net_tensor_t *y,
                       net_real keep);

/* In place. */
void net_relu(net_t *net, const net_tensor_t *x);
void net_relu_backward(net_t *net, const net_tensor_t *x);

/* The rows of a domain that this process works on. */
typedef struct net_rows {
  int total, first, count;
} net_rows_t;

/* All of `total`, or with `parts`, "30,10,20,36", that of number `part`: of
 * those the domain is the sum. False if there is no such part. */
int net_rows(int total, const char *parts, int part, net_rows_t *out);

/* Time per step: call it after each, where nothing is left to do. The first
 * quarter is not counted: while memory is touched for the first time, and the
 * processor and the threads' places settle, steps take up to twice as long. */
typedef struct net_clock {
  int steps;
  double wall, cpu; /* ms */
  double *walls, *cpus;
} net_clock_t;

void net_clock_tick(net_clock_t *clock);
/* Prints the medians and frees what the clock has. */
void net_clock_print(net_clock_t *clock);

#endif
