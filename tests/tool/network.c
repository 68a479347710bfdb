// SPDX-License-Identifier: Apache-2.0
// A network with the layers that its arguments list: convolutions, ReLUs,
// poolings, softmax over channels and divisive normalizations. It does not use
// sundog's functions.
//
// usage: network IN.npy OUT.npy [nhwc] [own] LAYER...
//   IN, OUT  float32 arrays N C H W, or N C D H W
//   nhwc     tensors are kept with their channels innermost
//   own      computes the sizes of outputs itself instead of asking cuDNN
//   conv=CHANNELS,KERNEL,STRIDE,PAD  relu  pool=KERNEL,STRIDE
//   softmax  over channels
//   divide   divisive normalization
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { DIMS = 5 };

/* A tensor of `dims` dimensions on the device. */
typedef struct {
  int dims, extent[DIMS];
  cudnnTensorDescriptor_t desc;
  float *data;
} tensor_t;

static int nhwc, own;
static cudnnHandle_t cudnn;
static const float one = 1, zero = 0;

static size_t count_of(const tensor_t *t) {
  size_t count = 1;
  for (int d = 0; d < t->dims; d++)
    count *= (size_t)t->extent[d];
  return count;
}

static void strides_of(const tensor_t *t, int *stride) {
  int step = 1;
  if (nhwc) {
    stride[1] = 1;
    step = t->extent[1];
  }
  for (int d = t->dims - 1; d >= 0; d--) {
    if (nhwc && d == 1)
      continue;
    stride[d] = step;
    step *= t->extent[d];
  }
}

static void tensor_make(tensor_t *t) {
  int stride[DIMS];
  strides_of(t, stride);
  CHECK(cudnnCreateTensorDescriptor(&t->desc));
  CHECK(cudnnSetTensorNdDescriptor(t->desc, CUDNN_DATA_FLOAT, t->dims,
                                   t->extent, stride));
  CHECK(cudaMalloc((void **)&t->data, count_of(t) * sizeof(float)));
}

/* Converts between the file's order, channels first, and the device's. */
static void reorder(const tensor_t *t, const float *from, float *to, int back) {
  int stride[DIMS], index[DIMS] = {0};
  strides_of(t, stride);
  for (size_t i = 0; i < count_of(t); i++) {
    size_t at = 0;
    for (int d = 0; d < t->dims; d++)
      at += (size_t)index[d] * (size_t)stride[d];
    to[back ? i : at] = from[back ? at : i];
    for (int d = t->dims - 1; d >= 0 && ++index[d] == t->extent[d]; d--)
      index[d] = 0;
  }
}

static tensor_t tensor_read(const char *path) {
  tensor_t t = {.dims = 0};
  char head[10], text[65536] = "";
  FILE *file = fopen(path, "rb");
  if (!file || fread(head, 1, 10, file) != 10)
    exit(3);
  size_t length = (unsigned char)head[8] + 256u * (unsigned char)head[9];
  if (fread(text, 1, length, file) != length || !strstr(text, "<f4"))
    exit(3);
  char *at = strchr(strstr(text, "shape"), '(');
  while (*at != ')' && t.dims < DIMS)
    t.extent[t.dims++] = (int)strtol(at + 1, &at, 10);
  tensor_make(&t);
  float *from = malloc(count_of(&t) * 4), *to = malloc(count_of(&t) * 4);
  if (fread(from, 4, count_of(&t), file) != count_of(&t))
    exit(3);
  fclose(file);
  reorder(&t, from, to, 0);
  CHECK(cudaMemcpy(t.data, to, count_of(&t) * 4, cudaMemcpyHostToDevice));
  free(from);
  free(to);
  return t;
}

static void tensor_write(const tensor_t *t, const char *path) {
  float *from = malloc(count_of(t) * 4), *to = malloc(count_of(t) * 4);
  CHECK(cudaMemcpy(from, t->data, count_of(t) * 4, cudaMemcpyDeviceToHost));
  reorder(t, from, to, 1);
  char text[119] = "";
  int n = snprintf(text, sizeof text,
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (");
  for (int d = 0; d < t->dims; d++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%d, ", t->extent[d]);
  n += snprintf(text + n, sizeof text - (size_t)n, "), }");
  memset(text + n, ' ', sizeof text - 1 - (size_t)n);
  text[117] = '\n';
  FILE *file = fopen(path, "wb");
  if (!file || fwrite("\x93NUMPY\x01\0v\0", 1, 10, file) != 10 ||
      fwrite(text, 1, 118, file) != 118 ||
      fwrite(to, 4, count_of(t), file) != count_of(t) || fclose(file) != 0)
    exit(3);
  free(from);
  free(to);
}

static tensor_t convolve(const tensor_t *x, int channels, int kernel,
                         int stride, int pad) {
  tensor_t y = {.dims = x->dims, .extent = {x->extent[0], channels}};
  int spatial = x->dims - 2, window[DIMS], pads[DIMS], steps[DIMS], ones[DIMS];
  window[0] = channels;
  window[1] = x->extent[1];
  size_t taps = (size_t)channels * (size_t)x->extent[1];
  for (int d = 0; d < spatial; d++) {
    window[2 + d] = kernel;
    pads[d] = pad;
    steps[d] = stride;
    ones[d] = 1;
    taps *= (size_t)kernel;
    y.extent[2 + d] = (x->extent[2 + d] + 2 * pad - kernel) / stride + 1;
  }
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  CHECK(cudnnCreateFilterDescriptor(&w));
  CHECK(cudnnSetFilterNdDescriptor(w, CUDNN_DATA_FLOAT,
                                   nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                   x->dims, window));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetConvolutionNdDescriptor(conv, spatial, pads, steps, ones,
                                        CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
  if (!own)
    CHECK(cudnnGetConvolutionNdForwardOutputDim(conv, x->desc, w, y.dims,
                                                y.extent));
  tensor_make(&y);
  float *value = malloc(taps * 4), *data;
  for (size_t i = 0; i < taps; i++)
    value[i] = (float)(i * i % 7) - 3;
  CHECK(cudaMalloc((void **)&data, taps * 4));
  CHECK(cudaMemcpy(data, value, taps * 4, cudaMemcpyHostToDevice));
  free(value);
  size_t bytes;
  void *space;
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, x->desc, w, conv, y.desc, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
      &bytes));
  CHECK(cudaMalloc(&space, bytes + 1));
  for (int i = 0; i < 2; i++)
    CHECK(cudnnConvolutionForward(cudnn, &one, x->desc, x->data, w, data, conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                  space, bytes, &zero, y.desc, y.data));
  return y;
}

static tensor_t pool(const tensor_t *x, int kernel, int stride) {
  tensor_t y = {.dims = x->dims, .extent = {x->extent[0], x->extent[1]}};
  int window[DIMS], pads[DIMS] = {0}, steps[DIMS];
  for (int d = 0; d < x->dims - 2; d++) {
    window[d] = kernel;
    steps[d] = stride;
    y.extent[2 + d] = (x->extent[2 + d] - kernel) / stride + 1;
  }
  cudnnPoolingDescriptor_t desc;
  CHECK(cudnnCreatePoolingDescriptor(&desc));
  CHECK(cudnnSetPoolingNdDescriptor(desc, CUDNN_POOLING_MAX,
                                    CUDNN_NOT_PROPAGATE_NAN, x->dims - 2,
                                    window, pads, steps));
  if (!own)
    CHECK(cudnnGetPoolingNdForwardOutputDim(desc, x->desc, y.dims, y.extent));
  tensor_make(&y);
  CHECK(cudnnPoolingForward(cudnn, desc, &one, x->desc, x->data, &zero, y.desc,
                            y.data));
  return y;
}

static void relu(const tensor_t *x) {
  cudnnActivationDescriptor_t desc;
  CHECK(cudnnCreateActivationDescriptor(&desc));
  CHECK(cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_RELU,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  CHECK(cudnnActivationForward(cudnn, desc, &one, x->desc, x->data, &zero,
                               x->desc, x->data));
}

static void softmax(const tensor_t *x) {
  CHECK(cudnnSoftmaxForward(cudnn, CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, &one, x->desc, x->data,
                            &zero, x->desc, x->data));
}

static tensor_t divide(const tensor_t *x) {
  tensor_t y = *x;
  tensor_make(&y);
  void *room[2];
  for (int i = 0; i < 2; i++)
    CHECK(cudaMalloc(&room[i], count_of(x) * sizeof(float)));
  cudnnLRNDescriptor_t desc;
  CHECK(cudnnCreateLRNDescriptor(&desc));
  CHECK(cudnnSetLRNDescriptor(desc, 5, 1, 0.75, 1));
  CHECK(cudnnDivisiveNormalizationForward(
      cudnn, desc, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &one, x->desc, x->data,
      NULL, room[0], room[1], &zero, y.desc, y.data));
  return y;
}

int main(int argc, char **argv) {
  int at = 3, c, k, s, p;
  if (argc < 4)
    return 2;
  for (; at < argc; at++)
    if (strcmp(argv[at], "nhwc") == 0)
      nhwc = 1;
    else if (strcmp(argv[at], "own") == 0)
      own = 1;
    else
      break;
  CHECK(cudnnCreate(&cudnn));
  tensor_t x = tensor_read(argv[1]);
  for (; at < argc; at++)
    if (sscanf(argv[at], "conv=%d,%d,%d,%d", &c, &k, &s, &p) == 4)
      x = convolve(&x, c, k, s, p);
    else if (sscanf(argv[at], "pool=%d,%d", &k, &s) == 2)
      x = pool(&x, k, s);
    else if (strcmp(argv[at], "divide") == 0)
      x = divide(&x);
    else if (strcmp(argv[at], "relu") == 0)
      relu(&x);
    else if (strcmp(argv[at], "softmax") == 0)
      softmax(&x);
    else
      return 2;
  tensor_write(&x, argv[2]);
  return EXIT_SUCCESS;
}
