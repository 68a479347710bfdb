/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses tensors in many ways: convolutions and pointwise ops between pooling,
 * softmax, reductions, cuBLAS, copies of every kind, memsets, parts of
 * buffers, memory that is freed and allocated again, several streams, and a
 * loop that ends when an error norm is small.
 *
 * usage: mixed OUT.npy ROWS COLUMNS [LIMIT]
 *        OUT gets one line per result; the loop ends when its norm is below
 *        LIMIT (0.21) */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "npy.h"

enum { CHANNELS = 3, STEPS_MAX = 40, RESULTS = 14 };

static struct {
  cudnnHandle_t cudnn;
  cublasHandle_t cublas;
  cudaStream_t other;
  cudaEvent_t event;
  int rows, columns;
  size_t plane, count; /* elements of a channel, of a tensor */
  cudnnTensorDescriptor_t field, half, bias, one;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t same, strided;
  cudnnActivationDescriptor_t relu;
  cudnnPoolingDescriptor_t pool;
  cudnnOpTensorDescriptor_t add;
  cudnnReduceTensorDescriptor_t norm;
  float *weights, *biases, *scalar;
  void *space;
  size_t space_bytes;
  float *result; /* on the host, RESULTS lines of `count` */
  int results;
} g;

static float *device(size_t count) {
  void *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  return memory;
}

static float noise(size_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 1000 - 0.5f;
}

static float *filled(size_t count, size_t seed, float factor) {
  float *host = malloc(count * sizeof *host), *memory = device(count);
  for (size_t i = 0; i < count; i++)
    host[i] = factor * noise(i + seed);
  CHECK(cudaMemcpy(memory, host, count * sizeof *host, cudaMemcpyHostToDevice));
  free(host);
  return memory;
}

static cudnnTensorDescriptor_t tensor(int c, int h, int w) {
  cudnnTensorDescriptor_t desc;
  CHECK(cudnnCreateTensorDescriptor(&desc));
  CHECK(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                   c, h, w));
  return desc;
}

static cudnnConvolutionDescriptor_t convolution(int stride) {
  cudnnConvolutionDescriptor_t desc;
  CHECK(cudnnCreateConvolutionDescriptor(&desc));
  CHECK(cudnnSetConvolution2dDescriptor(desc, 1, 1, stride, stride, 1, 1,
                                        CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
  return desc;
}

static void setup(int rows, int columns) {
  g.rows = rows;
  g.columns = columns;
  g.plane = (size_t)rows * (size_t)columns;
  g.count = CHANNELS * g.plane;
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cublasCreate(&g.cublas));
  CHECK(cudaStreamCreate(&g.other));
  CHECK(cudaEventCreate(&g.event));
  g.field = tensor(CHANNELS, rows, columns);
  g.half = tensor(CHANNELS, (rows + 1) / 2, (columns + 1) / 2);
  g.bias = tensor(CHANNELS, 1, 1);
  g.one = tensor(1, 1, 1);
  CHECK(cudnnCreateFilterDescriptor(&g.filter));
  CHECK(cudnnSetFilter4dDescriptor(
      g.filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, CHANNELS, CHANNELS, 3, 3));
  g.same = convolution(1);
  g.strided = convolution(2);
  CHECK(cudnnCreateActivationDescriptor(&g.relu));
  CHECK(cudnnSetActivationDescriptor(g.relu, CUDNN_ACTIVATION_TANH,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  CHECK(cudnnCreatePoolingDescriptor(&g.pool));
  CHECK(cudnnSetPooling2dDescriptor(g.pool, CUDNN_POOLING_MAX,
                                    CUDNN_NOT_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  CHECK(cudnnCreateOpTensorDescriptor(&g.add));
  CHECK(cudnnSetOpTensorDescriptor(g.add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_NOT_PROPAGATE_NAN));
  CHECK(cudnnCreateReduceTensorDescriptor(&g.norm));
  CHECK(cudnnSetReduceTensorDescriptor(
      g.norm, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_DATA_FLOAT,
      CUDNN_NOT_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
      CUDNN_32BIT_INDICES));
  g.weights = filled(9 * CHANNELS * CHANNELS, 7, 0.25f);
  g.biases = filled(CHANNELS, 11, 0.1f);
  g.scalar = device(1);
  g.space_bytes = 1 << 20;
  CHECK(cudaMalloc(&g.space, g.space_bytes));
  g.result = calloc(RESULTS * g.count, sizeof *g.result);
}

static void convolve(const float *x, cudnnConvolutionDescriptor_t desc,
                     cudnnTensorDescriptor_t y_desc, float beta, float *y) {
  float one = 1;
  CHECK(cudnnConvolutionForward(g.cudnn, &one, g.field, x, g.filter, g.weights,
                                desc, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                g.space, g.space_bytes, &beta, y_desc, y));
}

static void tanh_of(const float *x, float *y) {
  float one = 1, zero = 0;
  CHECK(cudnnActivationForward(g.cudnn, g.relu, &one, g.field, x, &zero,
                               g.field, y));
}

static float *result_line(void) {
  return g.result + (size_t)g.results++ * g.count;
}

static void keep(const float *x, size_t count) {
  CHECK(
      cudaMemcpy(result_line(), x, count * sizeof *x, cudaMemcpyDeviceToHost));
}

/* Relaxes x until two steps differ little; the norm is copied to the host. */
static int relax(float *x, float limit) {
  float one = 1, minus = -1, zero = 0, half = 0.5f, norm = 1;
  float *y = device(g.count), *change = device(g.count);
  int step = 0;
  for (; step < STEPS_MAX && (step < 10 || norm > limit); step++) {
    convolve(x, g.same, g.field, 0, y);
    CHECK(cudnnAddTensor(g.cudnn, &one, g.bias, g.biases, &one, g.field, y));
    tanh_of(y, y);
    CHECK(cudnnOpTensor(g.cudnn, g.add, &one, g.field, y, &minus, g.field, x,
                        &zero, g.field, change));
    CHECK(cudnnOpTensor(g.cudnn, g.add, &half, g.field, x, &half, g.field, y,
                        &zero, g.field, x));
    CHECK(cudnnReduceTensor(g.cudnn, g.norm, NULL, 0, g.space, g.space_bytes,
                            &one, g.field, change, &zero, g.one, g.scalar));
    CHECK(cudaMemcpy(&norm, g.scalar, sizeof norm, cudaMemcpyDeviceToHost));
    norm /= (float)g.rows;
  }
  CHECK(cudaFree(y));
  CHECK(cudaFree(change));
  return step;
}

/* Ops that no rule splits. */
static void whole_ops(const float *x) {
  float one = 1, zero = 0;
  float *y = device(g.count), *z = device(g.count);
  convolve(x, g.same, g.field, 0, y);
  CHECK(cudnnPoolingForward(g.cudnn, g.pool, &one, g.field, y, &zero, g.field,
                            z));
  keep(z, g.count);
  convolve(z, g.same, g.field, 0, y);
  CHECK(cudnnSoftmaxForward(g.cudnn, CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, &one, g.field, y, &zero,
                            g.field, y));
  convolve(y, g.strided, g.half, 0, z);
  size_t half = (size_t)((g.rows + 1) / 2) * (size_t)((g.columns + 1) / 2);
  keep(z, CHANNELS * half);
  CHECK(cudaFree(y));
  CHECK(cudaFree(z));
}

/* cuBLAS reads and writes what convolutions wrote and read, by pieces. */
static void products(const float *x) {
  float one = 1, half = 0.5f, norm, product, single;
  float *y = device(2 * g.count);
  convolve(x, g.same, g.field, 0, y + g.count); /* behind the first half */
  CHECK(cublasSnrm2(g.cublas, (int)g.count, y + g.count, 1, &norm));
  CHECK(cublasSdot(g.cublas, (int)g.count, x, 1, y + g.count, 1, &product));
  CHECK(cudaMemcpy(&single, y + g.count + g.plane / 2, sizeof single,
                   cudaMemcpyDeviceToHost));
  convolve(x, g.same, g.field, 0, y);
  CHECK(cublasSaxpy(g.cublas, (int)g.plane, &half, x, 1, y + g.plane, 1));
  convolve(y, g.same, g.field, 1, y + g.count);
  CHECK(cublasSgemm(g.cublas, CUBLAS_OP_N, CUBLAS_OP_N, g.columns, CHANNELS,
                    g.columns, &one, y + g.count, g.columns, y, g.columns,
                    &half, y + g.count, g.columns));
  keep(y + g.count, g.count);
  float *line = result_line();
  line[0] = norm;
  line[1] = product;
  line[2] = single;
  CHECK(cudaFree(y));
}

/* Copies and memsets of all of a tensor and of parts. */
static void copies(const float *x) {
  size_t row = (size_t)g.columns * sizeof *x;
  float *y = device(g.count), *z = device(g.count);
  convolve(x, g.same, g.field, 0, y);
  CHECK(cudaMemcpy(z, y, g.count * sizeof *y, cudaMemcpyDeviceToDevice));
  convolve(z, g.same, g.field, 0, y);
  CHECK(cudaMemset(y + 2 * g.columns, 0, 3 * row));
  CHECK(cudaMemset2D(y + g.plane, row, 0, row / 2, (size_t)g.rows));
  keep(y, g.count);
  tanh_of(y, z);
  CHECK(cudaMemset(z, 0, g.count * sizeof *z));
  keep(z, g.plane);
  tanh_of(y, z);
  CHECK(cudaMemcpy2D(z + g.plane, row, y, row, row, (size_t)g.rows / 2,
                     cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy2D(result_line(), row, z + g.columns, 2 * row, row,
                     (size_t)g.rows / 2, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(y));
  CHECK(cudaFree(z));
}

/* Work on two streams, ordered by an event, and copies without waiting. */
static void streams(const float *x) {
  float *y = device(g.count), *z = device(g.count), *host;
  CHECK(cudaMallocHost((void **)&host, g.count * sizeof *host));
  CHECK(cudnnSetStream(g.cudnn, g.other));
  convolve(x, g.same, g.field, 0, y);
  CHECK(cudaMemcpyAsync(z, y, g.count * sizeof *y, cudaMemcpyDeviceToDevice,
                        g.other));
  tanh_of(y, y);
  CHECK(cudaEventRecord(g.event, g.other));
  CHECK(cudnnSetStream(g.cudnn, NULL));
  CHECK(cudaStreamWaitEvent(NULL, g.event, 0));
  convolve(y, g.same, g.field, 1, z);
  CHECK(cudaMemcpyAsync(host, y, g.count * sizeof *host, cudaMemcpyDeviceToHost,
                        g.other));
  CHECK(cudaStreamSynchronize(g.other));
  memcpy(result_line(), host, g.count * sizeof *host);
  keep(z, g.count);
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(y));
  CHECK(cudaFree(z));
}

/* A recorded copy reads what is there when it is launched. */
static void graph(const float *x) {
  float *y = device(g.count), *z = device(g.count);
  cudaGraph_t recorded;
  cudaGraphExec_t runnable;
  CHECK(cudaStreamBeginCapture(g.other, cudaStreamCaptureModeRelaxed));
  CHECK(cudaMemcpyAsync(z, y, g.count * sizeof *y, cudaMemcpyDeviceToDevice,
                        g.other));
  CHECK(cudaStreamEndCapture(g.other, &recorded));
  CHECK(cudaGraphInstantiate(&runnable, recorded, 0));
  convolve(x, g.same, g.field, 0, y);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphLaunch(runnable, g.other));
  CHECK(cudaStreamSynchronize(g.other));
  convolve(z, g.same, g.field, 1, y);
  keep(y, g.count);
  CHECK(cudaGraphExecDestroy(runnable));
  CHECK(cudaGraphDestroy(recorded));
  CHECK(cudaFree(y));
  CHECK(cudaFree(z));
}

/* Two tensors in one buffer, then a larger one in the same memory. */
static void pieces(const float *x) {
  float two = 2;
  float *y = device(2 * g.count);
  for (int i = 0; i < 3; i++) {
    convolve(x, g.same, g.field, 0, y + (size_t)i * g.plane);
    tanh_of(y + (size_t)i * g.plane, y + g.count);
  }
  CHECK(cudnnSetTensor(g.cudnn, g.half, y + g.plane / 2, &two));
  CHECK(cudnnScaleTensor(g.cudnn, g.field, y, &two));
  keep(y, g.count);
  CHECK(cudaFree(y));
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: mixed OUT.npy ROWS COLUMNS [LIMIT]\n");
    return 2;
  }
  setup(atoi(argv[2]), atoi(argv[3]));
  float *x = filled(g.count, 0, 1);
  int steps = relax(x, argc > 4 ? (float)atof(argv[4]) : 0.21f);
  printf("%d steps\n", steps);
  keep(x, g.count);
  whole_ops(x);
  products(x);
  copies(x);
  streams(x);
  graph(x);
  pieces(x);
  npy_field_t field = {RESULTS, (int)g.count, g.result};
  npy_write(argv[1], field);
  CHECK(cudaFree(x));
  CHECK(cublasDestroy(g.cublas));
  CHECK(cudnnDestroy(g.cudnn));
  free(g.result);
  return EXIT_SUCCESS;
}
