/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions 3x3 of half numbers on rows of a larger tensor, for probes. */
#ifndef SDG_TESTS_GPU_PROBE_CONV_H
#define SDG_TESTS_GPU_PROBE_CONV_H

#include <cudnn.h>

#include "tests/gpu/probe.h"

enum { PROBE_KERNEL = 3, PROBE_HALF_BYTES = 2 };

/* Returns memory with pseudo-random numbers of sizes 1/2 to 1 and both signs; a
 * GPU computes zeros faster than a program's numbers. */
static inline char *probe_halves(size_t bytes) {
  enum { BLOCK = 1 << 19 };
  unsigned short *block = malloc(BLOCK * PROBE_HALF_BYTES);
  char *at = probe_device(bytes);
  unsigned state = 1;
  if (!block)
    exit(2);
  for (int i = 0; i < BLOCK; i++) {
    state = state * 1664525u + 1013904223u;
    block[i] = (unsigned short)(0x3800 | (state >> 16 & 0x83ff));
  }
  for (size_t done = 0, part; done < bytes; done += part) {
    part = bytes - done < BLOCK * PROBE_HALF_BYTES ? bytes - done
                                                   : BLOCK * PROBE_HALF_BYTES;
    PROBE_CUDA(cudaMemcpy(at + done, block, part, cudaMemcpyHostToDevice));
  }
  free(block);
  return at;
}

/* x has `x_rows` rows of `edge` columns, y `y_rows` of as many. */
typedef struct probe_conv {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t how;
  int algorithm;
  char *x_at, *y_at, *w_at, *space; /* space: probe_conv_space() */
  size_t space_bytes;
} probe_conv_t;

/* The first `rows` rows of a tensor of `edge` rows and columns. */
static inline cudnnTensorDescriptor_t
probe_rows(cudnnTensorFormat_t order, int channels, int edge, int rows) {
  cudnnTensorDescriptor_t desc;
  int last = order == CUDNN_TENSOR_NHWC;
  PROBE_CUDNN(cudnnCreateTensorDescriptor(&desc));
  PROBE_CUDNN(cudnnSetTensor4dDescriptorEx(
      desc, CUDNN_DATA_HALF, 1, channels, rows, edge, channels * edge * edge,
      last ? 1 : edge * edge, last ? channels * edge : edge,
      last ? channels : 1));
  return desc;
}

/* Pads columns, and rows if x and y have as many. */
static inline void probe_conv_open(probe_conv_t *c, cudnnTensorFormat_t order,
                                   int channels, int edge, int x_rows,
                                   int y_rows) {
  c->x = probe_rows(order, channels, edge, x_rows);
  c->y = probe_rows(order, channels, edge, y_rows);
  PROBE_CUDNN(cudnnCreateFilterDescriptor(&c->w));
  PROBE_CUDNN(cudnnSetFilter4dDescriptor(c->w, CUDNN_DATA_HALF, order, channels,
                                         channels, PROBE_KERNEL, PROBE_KERNEL));
  PROBE_CUDNN(cudnnCreateConvolutionDescriptor(&c->how));
  PROBE_CUDNN(cudnnSetConvolution2dDescriptor(c->how, x_rows == y_rows, 1, 1, 1,
                                              1, 1, CUDNN_CROSS_CORRELATION,
                                              CUDNN_DATA_FLOAT));
  PROBE_CUDNN(cudnnSetConvolutionMathType(c->how, CUDNN_TENSOR_OP_MATH));
}

static inline void probe_conv_close(const probe_conv_t *c) {
  PROBE_CUDNN(cudnnDestroyTensorDescriptor(c->x));
  PROBE_CUDNN(cudnnDestroyTensorDescriptor(c->y));
  PROBE_CUDNN(cudnnDestroyFilterDescriptor(c->w));
  PROBE_CUDNN(cudnnDestroyConvolutionDescriptor(c->how));
}

static inline cudnnStatus_t probe_conv_forward(const probe_conv_t *c) {
  static const float one = 1, zero = 0;
  return cudnnConvolutionForward(
      c->cudnn, &one, c->x, c->x_at, c->w, c->w_at, c->how,
      (cudnnConvolutionFwdAlgo_t)c->algorithm, c->space, c->space_bytes, &zero,
      c->y, c->y_at);
}

static inline cudnnStatus_t probe_conv_data(const probe_conv_t *c) {
  static const float one = 1, zero = 0;
  return cudnnConvolutionBackwardData(
      c->cudnn, &one, c->w, c->w_at, c->y, c->y_at, c->how,
      (cudnnConvolutionBwdDataAlgo_t)c->algorithm, c->space, c->space_bytes,
      &zero, c->x, c->x_at);
}

static inline cudnnStatus_t probe_conv_filter(const probe_conv_t *c) {
  static const float one = 1, zero = 0;
  return cudnnConvolutionBackwardFilter(
      c->cudnn, &one, c->x, c->x_at, c->y, c->y_at, c->how,
      (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, c->space, c->space_bytes,
      &zero, c->w, c->w_at);
}

static inline size_t probe_conv_elements(int channels, int edge) {
  return (size_t)channels * (size_t)edge * (size_t)edge;
}

#endif
