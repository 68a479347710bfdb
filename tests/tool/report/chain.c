/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a few layers, one behind the other, for tests of advice.
 *
 * usage: chain OUT STEPS ROWS COLUMNS LAYER...
 *        ROWS, COLUMNS: FIRST:END, the program's piece of the image
 * Layers:
 *   c:K:KH:KW[:STRIDE]  convolution to K channels, windows KH x KW, padded so
 *                       that stride 1 keeps the extents
 *   s:KH:KW             a convolution of the same input whose result is dropped
 *   p:K                 maximum pooling, K x K, stride K
 *   t:K:S               transposed convolution to K channels, S x S, stride S
 *   r                   relu in place
 *   d                   dropout of a tenth
 *   m                   softmax over channels
 *   b                   from here on backward: gradients of all convolutions
 * The image has two channels. Each step computes all layers anew. OUT becomes
 * the last layer's result as .npy: this process's piece. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                              \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "chain: %s: status %d\n", #call, status_);               \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

enum { LAYERS = 32 };

typedef struct tensor {
  cudnnTensorDescriptor_t desc;
  int extent[4];
  float *at, *grad;
} tensor_t;

typedef struct layer {
  char kind;
  int number[4], numbers;
  tensor_t x, y; /* x: the y of the layer before */
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnDropoutDescriptor_t dropout;
  void *reserve;
  size_t reserve_bytes;
  float *w, *dw;
} layer_t;

static cudnnHandle_t cudnn;
static void *work;
static size_t work_bytes;
static const float one = 1, zero = 0;

static size_t count_of(const tensor_t *t) {
  size_t count = 1;
  for (int d = 0; d < 4; d++)
    count *= (size_t)t->extent[d];
  return count;
}

static float *filled(size_t count, unsigned seed, float scale) {
  float *host = malloc((count + 1) * sizeof *host), *at;
  TRY(cudaMalloc((void **)&at, (count + 1) * sizeof *at));
  for (size_t i = 0; i < count; i++)
    host[i] = scale * (float)((int)((seed + i * 37 + i * i % 11) % 17) - 8);
  TRY(cudaMemcpy(at, host, count * sizeof *at, cudaMemcpyHostToDevice));
  free(host);
  return at;
}

static tensor_t tensor(int n, int c, int h, int w) {
  tensor_t t = {.extent = {n, c, h, w}};
  TRY(cudnnCreateTensorDescriptor(&t.desc));
  TRY(cudnnSetTensor4dDescriptor(t.desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n,
                                 c, h, w));
  t.at = filled(count_of(&t), 0, 0);
  t.grad = filled(count_of(&t), 0, 0);
  return t;
}

/* The image by global coordinates. */
static void image_fill(const tensor_t *t, int row0, int column0) {
  float *host = malloc(count_of(t) * sizeof *host), *at = host;
  for (int c = 0; c < t->extent[1]; c++)
    for (int i = 0; i < t->extent[2]; i++)
      for (int j = 0; j < t->extent[3]; j++)
        *at++ = (float)((c * 5 + (i + row0) * 13 + (j + column0) * 7 +
                         (i + row0) * (j + column0)) %
                        23) /
                8;
  TRY(cudaMemcpy(t->at, host, count_of(t) * sizeof *host,
                 cudaMemcpyHostToDevice));
  free(host);
}

static void work_need(size_t bytes) {
  if (bytes <= work_bytes)
    return;
  work_bytes = bytes;
  TRY(cudaMalloc(&work, bytes));
}

static void conv_make(layer_t *l, int in, int out, int kh, int kw, int stride,
                      int pad_h, int pad_w) {
  TRY(cudnnCreateFilterDescriptor(&l->filter));
  TRY(cudnnSetFilter4dDescriptor(l->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                 out, in, kh, kw));
  TRY(cudnnCreateConvolutionDescriptor(&l->conv));
  TRY(cudnnSetConvolution2dDescriptor(l->conv, pad_h, pad_w, stride, stride, 1,
                                      1, CUDNN_CROSS_CORRELATION,
                                      CUDNN_DATA_FLOAT));
  size_t weights = (size_t)(in * out * kh * kw);
  l->w = filled(weights, (unsigned)(kh + out), 0.03125F);
  l->dw = filled(weights, 0, 0);
}

static void data_work(cudnnFilterDescriptor_t filter, const tensor_t *dy,
                      cudnnConvolutionDescriptor_t conv, const tensor_t *dx) {
  size_t bytes;
  TRY(cudnnGetConvolutionBackwardDataWorkspaceSize(
      cudnn, filter, dy->desc, conv, dx->desc,
      CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, &bytes));
  work_need(bytes);
}

static void forward_make(layer_t *l, int channels, int kh, int kw, int stride) {
  int n, c, h, w;
  size_t bytes;
  conv_make(l, l->x.extent[1], channels, kh, kw, stride, kh / 2, kw / 2);
  TRY(cudnnGetConvolution2dForwardOutputDim(l->conv, l->x.desc, l->filter, &n,
                                            &c, &h, &w));
  l->y = tensor(n, c, h, w);
  TRY(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, l->x.desc, l->filter, l->conv, l->y.desc,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
  work_need(bytes);
  TRY(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      cudnn, l->x.desc, l->y.desc, l->conv, l->filter,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, &bytes));
  work_need(bytes);
  data_work(l->filter, &l->y, l->conv, &l->x);
}

static void transposed_make(layer_t *l, int channels, int stride) {
  const int *x = l->x.extent;
  conv_make(l, channels, x[1], stride, stride, stride, 0, 0);
  l->y = tensor(1, channels, x[2] * stride, x[3] * stride);
  data_work(l->filter, &l->x, l->conv, &l->y);
}

static void pool_make(layer_t *l, int size) {
  int n, c, h, w;
  TRY(cudnnCreatePoolingDescriptor(&l->pool));
  TRY(cudnnSetPooling2dDescriptor(l->pool, CUDNN_POOLING_MAX,
                                  CUDNN_NOT_PROPAGATE_NAN, size, size, 0, 0,
                                  size, size));
  TRY(cudnnGetPooling2dForwardOutputDim(l->pool, l->x.desc, &n, &c, &h, &w));
  l->y = tensor(n, c, h, w);
}

static void dropout_make(layer_t *l) {
  size_t bytes;
  void *states;
  TRY(cudnnCreateDropoutDescriptor(&l->dropout));
  TRY(cudnnDropoutGetStatesSize(cudnn, &bytes));
  TRY(cudaMalloc(&states, bytes));
  TRY(cudnnSetDropoutDescriptor(l->dropout, cudnn, 0.1F, states, bytes, 1));
  TRY(cudnnDropoutGetReserveSpaceSize(l->x.desc, &l->reserve_bytes));
  TRY(cudaMalloc(&l->reserve, l->reserve_bytes));
}

static void layer_make(layer_t *l, const tensor_t *x) {
  const int *n = l->number;
  l->x = *x;
  l->y = *x;
  switch (l->kind) {
  case 'c':
    forward_make(l, n[0], n[1], n[2], l->numbers > 3 ? n[3] : 1);
    break;
  case 's':
    forward_make(l, x->extent[1], n[0], n[1], 1);
    break;
  case 'p':
    pool_make(l, n[0]);
    break;
  case 't':
    transposed_make(l, n[0], n[1]);
    break;
  case 'd':
    l->y = tensor(1, x->extent[1], x->extent[2], x->extent[3]);
    dropout_make(l);
    break;
  case 'm':
    l->y = tensor(1, x->extent[1], x->extent[2], x->extent[3]);
    break;
  default:
    break;
  }
}

static void layer_forward(const layer_t *l) {
  cudnnActivationDescriptor_t relu;
  switch (l->kind) {
  case 'c':
  case 's':
    TRY(cudnnConvolutionForward(cudnn, &one, l->x.desc, l->x.at, l->filter,
                                l->w, l->conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, work,
                                work_bytes, &zero, l->y.desc, l->y.at));
    break;
  case 't':
    TRY(cudnnConvolutionBackwardData(cudnn, &one, l->filter, l->w, l->x.desc,
                                     l->x.at, l->conv,
                                     CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, work,
                                     work_bytes, &zero, l->y.desc, l->y.at));
    break;
  case 'p':
    TRY(cudnnPoolingForward(cudnn, l->pool, &one, l->x.desc, l->x.at, &zero,
                            l->y.desc, l->y.at));
    break;
  case 'r':
    TRY(cudnnCreateActivationDescriptor(&relu));
    TRY(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
    TRY(cudnnActivationForward(cudnn, relu, &one, l->x.desc, l->x.at, &zero,
                               l->x.desc, l->x.at));
    TRY(cudnnDestroyActivationDescriptor(relu));
    break;
  case 'd':
    TRY(cudnnDropoutForward(cudnn, l->dropout, l->x.desc, l->x.at, l->y.desc,
                            l->y.at, l->reserve, l->reserve_bytes));
    break;
  case 'm':
    TRY(cudnnSoftmaxForward(cudnn, CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, &one, l->x.desc,
                            l->x.at, &zero, l->y.desc, l->y.at));
    break;
  default:
    break;
  }
}

static void layer_backward(const layer_t *l, int first) {
  if (l->kind != 'c' && l->kind != 's')
    return;
  TRY(cudnnConvolutionBackwardFilter(cudnn, &one, l->x.desc, l->x.at, l->y.desc,
                                     l->y.grad, l->conv,
                                     CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, work,
                                     work_bytes, &zero, l->filter, l->dw));
  if (!first)
    TRY(cudnnConvolutionBackwardData(cudnn, &one, l->filter, l->w, l->y.desc,
                                     l->y.grad, l->conv,
                                     CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, work,
                                     work_bytes, &zero, l->x.desc, l->x.grad));
}

static void npy_save(const char *path, const tensor_t *t) {
  FILE *file = fopen(path, "wb");
  float *host = malloc(count_of(t) * sizeof *host);
  char head[119] = "";
  if (!file || !host)
    exit(EXIT_FAILURE);
  TRY(cudaMemcpy(host, t->at, count_of(t) * sizeof *host,
                 cudaMemcpyDeviceToHost));
  int bytes = snprintf(head, sizeof head,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (1, "
                       "%d, %d, %d), }",
                       t->extent[1], t->extent[2], t->extent[3]);
  memset(head + bytes, ' ', sizeof head - (size_t)bytes);
  head[117] = '\n';
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
  fwrite(head, 1, 118, file);
  fwrite(host, sizeof *host, count_of(t), file);
  if (fclose(file) != 0)
    exit(EXIT_FAILURE);
  free(host);
}

int main(int argc, char **argv) {
  static layer_t layer[LAYERS];
  int row[2], column[2], layers = 0, backward = 0;
  if (argc < 6 || argc - 5 > LAYERS ||
      sscanf(argv[3], "%d:%d", &row[0], &row[1]) != 2 ||
      sscanf(argv[4], "%d:%d", &column[0], &column[1]) != 2)
    return EXIT_FAILURE;
  TRY(cudnnCreate(&cudnn));
  tensor_t image = tensor(1, 2, row[1] - row[0], column[1] - column[0]),
           x = image;
  for (int i = 5; i < argc; i++) {
    layer_t *l = &layer[layers];
    int *n = l->number;
    if (*argv[i] == 'b') {
      backward = 1;
      continue;
    }
    l->kind = *argv[i];
    l->numbers =
        sscanf(argv[i] + 1, ":%d:%d:%d:%d", &n[0], &n[1], &n[2], &n[3]);
    layer_make(l, &x);
    if (l->kind != 's')
      x = l->y;
    layers++;
  }
  image_fill(&image, row[0], column[0]);
  for (int step = 0; step < atoi(argv[2]); step++) {
    for (int i = 0; i < layers; i++)
      layer_forward(&layer[i]);
    for (int i = layers - 1; i >= 0 && backward; i--)
      layer_backward(&layer[i], i == 0);
  }
  TRY(cudaDeviceSynchronize());
  npy_save(argv[1], &x);
  return EXIT_SUCCESS;
}
