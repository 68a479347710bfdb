/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that every client of the preload tests makes: cuDNN descriptors and
 * sizes, valid and invalid ones. Each prints a line with its status. They need
 * no GPU. */
#ifndef SDG_TESTS_PRELOAD_DESCRIPTOR_CALLS_H
#define SDG_TESTS_PRELOAD_DESCRIPTOR_CALLS_H

#include <cudnn.h>
#include <stdio.h>
#include <string.h>

/* How a client reaches a function; some clients define it as a look-up. */
#ifndef CUDNN
#define CUDNN(name) name
#endif

#define SHOW(name, ...) printf(#name " %d\n", (int)CUDNN(name)(__VA_ARGS__))

static void descriptor_calls_convolution(void) {
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t op;
  int n = -1, c = -1, h = -1, wide = -1, dims[5] = {0};
  SHOW(cudnnCreateTensorDescriptor, &x);
  SHOW(cudnnCreateFilterDescriptor, &w);
  SHOW(cudnnCreateConvolutionDescriptor, &op);
  SHOW(cudnnSetTensor4dDescriptor, x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3,
       32, 20);
  SHOW(cudnnSetFilter4dDescriptor, w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 8, 3,
       3, 5);
  SHOW(cudnnSetConvolution2dDescriptor, op, 1, 2, 2, 1, 1, 1,
       CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  SHOW(cudnnGetConvolution2dForwardOutputDim, op, x, w, &n, &c, &h, &wide);
  printf("2d %d %d %d %d\n", n, c, h, wide);
  /* No descriptor was set since, so the call is not captured again. */
  SHOW(cudnnGetConvolution2dForwardOutputDim, op, x, w, &n, &c, &h, &wide);
  SHOW(cudnnSetTensorNdDescriptorEx, x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 4,
       (const int[]){1, 6, 9, 7});
  SHOW(cudnnSetFilterNdDescriptor, w, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 4,
       (const int[]){4, 6, 3, 3});
  SHOW(cudnnGetConvolutionNdForwardOutputDim, op, x, w, 4, dims);
  printf("nd %d %d %d %d\n", dims[0], dims[1], dims[2], dims[3]);
  /* A filter with other channels: cuDNN itself refuses it. */
  SHOW(cudnnSetFilter4dDescriptor, w, CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 4, 5,
       3, 3);
  SHOW(cudnnGetConvolution2dForwardOutputDim, op, x, w, &n, &c, &h, &wide);
  SHOW(cudnnSetTensor4dDescriptor, x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, -2,
       3, 32, 20);
  SHOW(cudnnDestroyConvolutionDescriptor, op);
  SHOW(cudnnDestroyFilterDescriptor, w);
  SHOW(cudnnDestroyTensorDescriptor, x);
}

static void descriptor_calls_pooling(void) {
  cudnnTensorDescriptor_t x, derived;
  cudnnPoolingDescriptor_t op;
  int n = -1, c = -1, h = -1, w = -1;
  size_t bytes = 0;
  SHOW(cudnnCreateTensorDescriptor, &x);
  SHOW(cudnnCreateTensorDescriptor, &derived);
  SHOW(cudnnCreatePoolingDescriptor, &op);
  SHOW(cudnnSetTensor4dDescriptorEx, x, CUDNN_DATA_DOUBLE, 2, 3, 16, 16, 768,
       256, 16, 1);
  SHOW(cudnnSetPooling2dDescriptor, op, CUDNN_POOLING_MAX,
       CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2);
  SHOW(cudnnGetPooling2dForwardOutputDim, op, x, &n, &c, &h, &w);
  printf("pool %d %d %d %d\n", n, c, h, w);
  SHOW(cudnnDropoutGetReserveSpaceSize, x, &bytes);
  printf("reserve %zu\n", bytes);
  SHOW(cudnnDeriveBNTensorDescriptor, derived, x, CUDNN_BATCHNORM_SPATIAL);
  SHOW(cudnnGetTensorSizeInBytes, derived, &bytes);
  printf("derived %zu\n", bytes);
  SHOW(cudnnDestroyPoolingDescriptor, op);
  SHOW(cudnnDestroyTensorDescriptor, derived);
  SHOW(cudnnDestroyTensorDescriptor, x);
}

/* An op whose tensors are in a plan: cuDNN itself refuses it without a plan. */
static void descriptor_calls_graph(void) {
  SHOW(cudnnBackendExecute, NULL, NULL, NULL);
}

static int descriptor_calls(void) {
  char text[256] = "";
  descriptor_calls_graph();
  descriptor_calls_convolution();
  descriptor_calls_pooling();
  /* After a failure of cuDNN itself the text varies between versions. */
  CUDNN(cudnnGetLastErrorString)(text, sizeof text);
  printf("sundog's text: %s\n", strncmp(text, "SDG-", 4) == 0 ? text : "no");
  fflush(stdout);
  return 0;
}

#endif
