/* SPDX-License-Identifier: Apache-2.0 */
/* A program of random ops on a few buffers, drawn from a seed: convolutions of
 * several windows, pointwise ops in and out of place, on all and on every other
 * row, pooling, sums by cuBLAS, copies and memsets of any parts, tensors that
 * lie across older ones, two streams, memory that is freed and allocated again.
 *
 * usage: random_ops OUT SEED OPS
 *        OUT has the bytes of tensors, OUT.npy the norms, which depend on the
 *        order of sums */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

#define TRY(call)                                                              \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "random_ops: op %d: %s: status %d\n", g.op, #call,       \
              status_);                                                        \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

enum { BUFFERS = 5, WINDOWS = 5, NORMS = 1000 };

/* A convolution: filter size, stride and dilation. */
static const struct {
  int size, stride, dilation;
} windows[WINDOWS] = {{1, 1, 1}, {3, 1, 1}, {5, 1, 1}, {3, 1, 2}, {3, 2, 1}};

static struct {
  FILE *out;
  float norm[NORMS];
  int norms;
  unsigned seed;
  int op;
  cudnnHandle_t cudnn;
  cublasHandle_t cublas;
  cudaStream_t stream[2];
  int current; /* stream */
  cudaEvent_t event;
  int n, c, h, w;
  size_t count; /* elements of a tensor; buffers hold two */
  float *buffer[BUFFERS];
  cudnnTensorDescriptor_t full, half, rows, bias; /* rows: every other one */
  cudnnFilterDescriptor_t filter[WINDOWS];
  cudnnConvolutionDescriptor_t conv[WINDOWS];
  float *weights[WINDOWS], *biases;
  void *work; /* for any convolution */
  size_t work_bytes;
  cudnnActivationDescriptor_t tanh;
  cudnnOpTensorDescriptor_t add;
  cudnnPoolingDescriptor_t pool;
} g;

static unsigned draw(size_t below) {
  g.seed = g.seed * 1664525u + 1013904223u;
  return (g.seed >> 10) % (unsigned)below;
}

static float *filled(size_t count) {
  float *host = malloc(count * sizeof *host), *memory;
  TRY(cudaMalloc((void **)&memory, count * sizeof *memory));
  for (size_t i = 0; i < count; i++)
    host[i] = (float)draw(1000) / 1000 - 0.5f;
  TRY(cudaMemcpy(memory, host, count * sizeof *host, cudaMemcpyHostToDevice));
  free(host);
  return memory;
}

static cudnnTensorDescriptor_t tensor(int n, int h, int w, int row) {
  cudnnTensorDescriptor_t desc;
  TRY(cudnnCreateTensorDescriptor(&desc));
  int plane = row == w ? h * w : g.h * g.w;
  TRY(cudnnSetTensor4dDescriptorEx(desc, CUDNN_DATA_FLOAT, n, g.c, h, w,
                                   g.c * plane, plane, row, 1));
  return desc;
}

static void convolutions(void) {
  for (int i = 0; i < WINDOWS; i++) {
    int size = windows[i].size, pad = size / 2 * windows[i].dilation;
    TRY(cudnnCreateFilterDescriptor(&g.filter[i]));
    TRY(cudnnSetFilter4dDescriptor(g.filter[i], CUDNN_DATA_FLOAT,
                                   CUDNN_TENSOR_NCHW, g.c, g.c, size, size));
    TRY(cudnnCreateConvolutionDescriptor(&g.conv[i]));
    TRY(cudnnSetConvolution2dDescriptor(
        g.conv[i], pad, pad, windows[i].stride, windows[i].stride,
        windows[i].dilation, windows[i].dilation, CUDNN_CROSS_CORRELATION,
        CUDNN_DATA_FLOAT));
    g.weights[i] = filled((size_t)(size * size * g.c * g.c));
    size_t bytes;
    TRY(cudnnGetConvolutionForwardWorkspaceSize(
        g.cudnn, g.full, g.filter[i], g.conv[i],
        windows[i].stride == 1 ? g.full : g.half,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
    g.work_bytes = bytes > g.work_bytes ? bytes : g.work_bytes;
  }
  if (g.work_bytes)
    TRY(cudaMalloc(&g.work, g.work_bytes));
}

static void setup(void) {
  g.n = 1 + (int)draw(2);
  g.c = 1 + (int)draw(3);
  g.h = 4 + (int)draw(14);
  g.w = 4 + (int)draw(14);
  g.count = (size_t)(g.n * g.c) * (size_t)(g.h * g.w);
  for (int i = 0; i < 2; i++)
    TRY(cudaStreamCreateWithFlags(&g.stream[i], cudaStreamNonBlocking));
  TRY(cudaEventCreateWithFlags(&g.event, cudaEventDisableTiming));
  TRY(cudnnCreate(&g.cudnn));
  TRY(cublasCreate(&g.cublas));
  TRY(cudnnSetStream(g.cudnn, g.stream[0]));
  TRY(cublasSetStream(g.cublas, g.stream[0]));
  g.full = tensor(g.n, g.h, g.w, g.w);
  g.half = tensor(g.n, (g.h + 1) / 2, (g.w + 1) / 2, (g.w + 1) / 2);
  g.rows = tensor(g.n, g.h / 2, g.w, 2 * g.w);
  g.bias = tensor(1, 1, 1, 1);
  convolutions();
  g.biases = filled((size_t)g.c);
  TRY(cudnnCreateActivationDescriptor(&g.tanh));
  TRY(cudnnSetActivationDescriptor(g.tanh, CUDNN_ACTIVATION_TANH,
                                   CUDNN_NOT_PROPAGATE_NAN, 0));
  TRY(cudnnCreateOpTensorDescriptor(&g.add));
  TRY(cudnnSetOpTensorDescriptor(g.add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                 CUDNN_NOT_PROPAGATE_NAN));
  TRY(cudnnCreatePoolingDescriptor(&g.pool));
  TRY(cudnnSetPooling2dDescriptor(g.pool, CUDNN_POOLING_MAX,
                                  CUDNN_NOT_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  for (int i = 0; i < BUFFERS; i++)
    g.buffer[i] = filled(2 * g.count);
  TRY(cudaDeviceSynchronize());
}

/* Later calls use the other stream, and wait for those before. */
static void stream_switch(void) {
  TRY(cudaEventRecord(g.event, g.stream[g.current]));
  g.current ^= 1;
  TRY(cudaStreamWaitEvent(g.stream[g.current], g.event, 0));
  TRY(cudnnSetStream(g.cudnn, g.stream[g.current]));
  TRY(cublasSetStream(g.cublas, g.stream[g.current]));
}

static void keep(const float *from, size_t count) {
  float *host = malloc(count * sizeof *host);
  TRY(cudaMemcpyAsync(host, from, count * sizeof *host, cudaMemcpyDeviceToHost,
                      g.stream[g.current]));
  TRY(cudaStreamSynchronize(g.stream[g.current]));
  fwrite(host, sizeof *host, count, g.out);
  free(host);
}

static void convolve(const float *x, float *y) {
  float factor = 0.4f, beta = draw(2) ? 0 : 0.5f;
  int i = (int)draw(WINDOWS);
  TRY(cudnnConvolutionForward(
      g.cudnn, &factor, g.full, x, g.filter[i], g.weights[i], g.conv[i],
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, g.work, g.work_bytes, &beta,
      windows[i].stride == 1 ? g.full : g.half, y));
}

/* z and y do not overlap, nor do x and y. */
static void pointwise(float *x, const float *z, float *y) {
  float one = 1, zero = 0, most = 0.6f, some = 0.3f;
  switch (draw(6)) {
  case 0:
    TRY(cudnnActivationForward(g.cudnn, g.tanh, &one, g.full, x, &zero, g.full,
                               draw(2) ? x : y));
    break;
  case 1:
    TRY(cudnnOpTensor(g.cudnn, g.add, &most, g.full, x, &some, g.full, z, &zero,
                      g.full, y));
    break;
  case 2:
    TRY(cudnnAddTensor(g.cudnn, &one, g.bias, g.biases, &most, g.full, y));
    break;
  case 3:
    TRY(cudnnScaleTensor(g.cudnn, draw(2) ? g.rows : g.full, y, &most));
    break;
  case 4:
    TRY(cudnnSetTensor(g.cudnn, draw(2) ? g.rows : g.half, y, &some));
    break;
  default:
    TRY(cudnnTransformTensor(g.cudnn, &one, g.rows, x, &zero, g.rows, y));
  }
}

static void copy(const float *x, float *y) {
  cudaStream_t stream = g.stream[g.current];
  size_t row = (size_t)g.w * sizeof *x;
  switch (draw(3)) {
  case 0:
    TRY(cudaMemcpyAsync(y, x, (1 + draw(g.count)) * sizeof *x,
                        cudaMemcpyDeviceToDevice, stream));
    break;
  case 1:
    TRY(cudaMemcpy2DAsync(y, row, x, row, (1 + draw((size_t)g.w)) * sizeof *x,
                          1 + draw(g.count / (size_t)g.w),
                          cudaMemcpyDeviceToDevice, stream));
    break;
  default:
    TRY(cudaMemsetAsync(y + draw(g.count / 2), 0,
                        (1 + draw(g.count / 2)) * sizeof *y, stream));
  }
}

/* Ops without a rule; their values may decide what the program does. */
static void others(float *x, float *y) {
  float one = 1, zero = 0, norm;
  switch (draw(3)) {
  case 0:
    TRY(cublasSaxpy(g.cublas, 1 + (int)draw(g.count), &one, x, 1, y, 1));
    break;
  case 1:
    TRY(cublasSnrm2(g.cublas, (int)g.count, x, 1, &norm));
    if (g.norms < NORMS)
      g.norm[g.norms++] = norm;
    if (norm > 50)
      TRY(cudaMemsetAsync(x, 0, g.count * sizeof *x, g.stream[g.current]));
    break;
  default:
    TRY(cudnnPoolingForward(g.cudnn, g.pool, &one, g.full, x, &zero, g.full,
                            y));
  }
}

static void renew(int index) {
  size_t bytes = 2 * g.count * sizeof(float);
  TRY(cudaStreamSynchronize(g.stream[g.current]));
  TRY(cudaFree(g.buffer[index]));
  TRY(cudaMalloc((void **)&g.buffer[index], bytes));
  TRY(cudaMemset(g.buffer[index], 0, bytes));
  TRY(cudaDeviceSynchronize());
}

static void step(void) {
  int from = (int)draw(BUFFERS), to = (from + 1 + (int)draw(BUFFERS - 1));
  to %= BUFFERS;
  float *x = g.buffer[from] + (draw(3) ? 0 : draw(g.count + 1));
  float *y = g.buffer[to] + (draw(3) ? 0 : draw(g.count + 1));
  int third = (int)draw(BUFFERS);
  const float *z = third == to ? x : g.buffer[third];
  if (draw(5) == 0)
    stream_switch();
  switch (draw(10)) {
  case 0:
  case 1:
  case 2:
    convolve(x, y);
    break;
  case 3:
  case 4:
  case 5:
    pointwise(x, z, y);
    break;
  case 6:
    copy(x, y);
    break;
  case 7:
    others(x, y);
    break;
  case 8:
    keep(x, 1 + (draw(2) ? draw(g.count) : draw(4)));
    break;
  default:
    if (draw(3) == 0)
      renew(to);
  }
}

int main(int argc, char **argv) {
  if (argc < 4 || !(g.out = fopen(argv[1], "w"))) {
    fprintf(stderr, "usage: random_ops OUT SEED OPS\n");
    return 2;
  }
  g.seed = (unsigned)atoi(argv[2]) * 7919u + 1;
  setup();
  for (g.op = 0; g.op < atoi(argv[3]); g.op++)
    step();
  for (int i = 0; i < BUFFERS; i++)
    keep(g.buffer[i], 2 * g.count);
  char name[4096];
  snprintf(name, sizeof name, "%s.npy", argv[1]);
  npy_write(name, (npy_field_t){1, g.norms, g.norm});
  return fclose(g.out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
