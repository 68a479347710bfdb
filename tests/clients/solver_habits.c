/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A solver with habits of real programs: time steps that swap pointers, its
 * own memory pool, tensors that alternate within one allocation, work in
 * place, borders copied as columns, streams that wait only for events, a
 * search for algorithms with the workspace that each needs, memory that is
 * allocated and freed in stream order, sums by cuBLAS on another stream, and
 * an NCCL collective of one rank.
 *
 * usage: solver_habits OUT.npy ROWS COLUMNS STEPS */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "npy.h"

enum { CHANNELS = 4, RESULTS = 12, POOL_BYTES = 1 << 24 };

static struct {
  cudnnHandle_t cudnn;
  cublasHandle_t cublas;
  cudaStream_t work, copies; /* neither waits for the default stream */
  cudaEvent_t computed, copied;
  int rows, columns;
  size_t plane, count; /* elements of a channel, of a tensor */
  cudnnTensorDescriptor_t field, bias;
  cudnnFilterDescriptor_t three, five;
  cudnnConvolutionDescriptor_t near, far;
  cudnnOpTensorDescriptor_t add, multiply;
  cudnnActivationDescriptor_t tanh;
  float *w3, *w5, *b;
  char *pool; /* the program's own allocator */
  size_t used;
  void *space;
  size_t space_bytes;
  float *result;
  int results;
} g;

/* From the pool, 256 bytes apart, as allocators do. */
static float *pooled(size_t count) {
  float *memory = (float *)(void *)(g.pool + g.used);
  g.used += (count * sizeof(float) + 255) / 256 * 256;
  CHECK(g.used > POOL_BYTES);
  return memory;
}

static void fill(float *memory, size_t count, size_t seed, float factor) {
  float *host = malloc(count * sizeof *host);
  for (size_t i = 0; i < count; i++)
    host[i] = factor *
              ((float)(((i * 2654435761u + seed * 40503u) >> 8) % 1000) / 1000 -
               0.5f);
  CHECK(cudaMemcpy(memory, host, count * sizeof *host, cudaMemcpyHostToDevice));
  free(host);
}

static float *line(void) {
  return g.result + (size_t)g.results++ * g.count;
}

static void keep(const float *x) {
  CHECK(cudaMemcpyAsync(line(), x, g.count * sizeof *x, cudaMemcpyDeviceToHost,
                        g.work));
  CHECK(cudaStreamSynchronize(g.work));
}

static cudnnFilterDescriptor_t filter(int size) {
  cudnnFilterDescriptor_t desc;
  CHECK(cudnnCreateFilterDescriptor(&desc));
  CHECK(cudnnSetFilter4dDescriptor(desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   CHANNELS, CHANNELS, size, size));
  return desc;
}

static cudnnConvolutionDescriptor_t window(int pad, int dilation) {
  cudnnConvolutionDescriptor_t desc;
  CHECK(cudnnCreateConvolutionDescriptor(&desc));
  CHECK(cudnnSetConvolution2dDescriptor(desc, pad, pad, 1, 1, dilation,
                                        dilation, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
  return desc;
}

static cudnnOpTensorDescriptor_t op(cudnnOpTensorOp_t what) {
  cudnnOpTensorDescriptor_t desc;
  CHECK(cudnnCreateOpTensorDescriptor(&desc));
  CHECK(cudnnSetOpTensorDescriptor(desc, what, CUDNN_DATA_FLOAT,
                                   CUDNN_NOT_PROPAGATE_NAN));
  return desc;
}

static void setup(int rows, int columns) {
  g.rows = rows;
  g.columns = columns;
  g.plane = (size_t)rows * (size_t)columns;
  g.count = CHANNELS * g.plane;
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cublasCreate(&g.cublas));
  CHECK(cudaStreamCreateWithFlags(&g.work, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&g.copies, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&g.computed, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&g.copied, cudaEventDisableTiming));
  CHECK(cudnnSetStream(g.cudnn, g.work));
  CHECK(cublasSetStream(g.cublas, g.work));
  CHECK(cudnnCreateTensorDescriptor(&g.field));
  CHECK(cudnnSetTensor4dDescriptor(g.field, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, CHANNELS, rows, columns));
  CHECK(cudnnCreateTensorDescriptor(&g.bias));
  CHECK(cudnnSetTensor4dDescriptor(g.bias, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, CHANNELS, 1, 1));
  g.three = filter(3);
  g.five = filter(5);
  g.near = window(1, 1);
  g.far = window(4, 2);
  g.add = op(CUDNN_OP_TENSOR_ADD);
  g.multiply = op(CUDNN_OP_TENSOR_MUL);
  CHECK(cudnnCreateActivationDescriptor(&g.tanh));
  CHECK(cudnnSetActivationDescriptor(g.tanh, CUDNN_ACTIVATION_TANH,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  CHECK(cudaMalloc((void **)&g.pool, POOL_BYTES));
  g.w3 = pooled(9 * CHANNELS * CHANNELS);
  g.w5 = pooled(25 * CHANNELS * CHANNELS);
  g.b = pooled(CHANNELS);
  fill(g.w3, 9 * CHANNELS * CHANNELS, 1, 0.5f);
  fill(g.w5, 25 * CHANNELS * CHANNELS, 2, 0.2f);
  fill(g.b, CHANNELS, 3, 0.1f);
  g.result = calloc(RESULTS * g.count, sizeof *g.result);
}

/* The algorithm that comes first, with what it asks for. */
static void convolve(const float *x, cudnnFilterDescriptor_t w_desc,
                     const float *w, cudnnConvolutionDescriptor_t conv,
                     float beta, float *y) {
  float one = 1;
  cudnnConvolutionFwdAlgoPerf_t perf[4];
  int count;
  CHECK(cudnnGetConvolutionForwardAlgorithm_v7(g.cudnn, g.field, w_desc, conv,
                                               g.field, 4, &count, perf));
  CHECK(perf[0].status);
  if (perf[0].memory > g.space_bytes) {
    CHECK(cudaFree(g.space));
    g.space_bytes = perf[0].memory;
    CHECK(cudaMalloc(&g.space, g.space_bytes));
  }
  CHECK(cudnnConvolutionForward(g.cudnn, &one, g.field, x, w_desc, w, conv,
                                perf[0].algo, g.space, g.space_bytes, &beta,
                                g.field, y));
}

static void tanh_in_place(float *x) {
  float one = 1, zero = 0;
  CHECK(cudnnActivationForward(g.cudnn, g.tanh, &one, g.field, x, &zero,
                               g.field, x));
}

static void combine(cudnnOpTensorDescriptor_t what, float a, const float *x,
                    float b, const float *y, float *out) {
  float zero = 0;
  CHECK(cudnnOpTensor(g.cudnn, what, &a, g.field, x, &b, g.field, y, &zero,
                      g.field, out));
}

/* Two steps back and forth: level and momentum, pointers swapped. */
static void leapfrog(int steps) {
  float one = 1;
  float *now = pooled(g.count), *before = pooled(g.count),
        *next = pooled(g.count), *change = pooled(g.count);
  fill(now, g.count, 4, 1);
  CHECK(cudaMemcpyAsync(before, now, g.count * sizeof *now,
                        cudaMemcpyDeviceToDevice, g.work));
  for (int step = 0; step < steps; step++) {
    convolve(now, g.three, g.w3, g.near, 0, change);
    convolve(now, g.five, g.w5, g.far, 1, change); /* adds */
    CHECK(cudnnAddTensor(g.cudnn, &one, g.bias, g.b, &one, g.field, change));
    tanh_in_place(change);
    combine(g.add, 0.3f, change, 0.7f, before, next);
    float *oldest = before;
    before = now;
    now = next;
    next = oldest;
  }
  keep(now);
  keep(before);
}

/* One allocation of three tensors, used in turn; a border is copied from one
 * to the other as columns, on another stream. */
static void pingpong(int steps) {
  float *all;
  size_t pitch = (size_t)g.columns * sizeof *all;
  CHECK(cudaMalloc((void **)&all, 3 * g.count * sizeof *all));
  fill(all, g.count, 5, 1);
  for (int step = 0; step < steps; step++) {
    float *x = all + (size_t)(step % 3) * g.count;
    float *y = all + (size_t)((step + 1) % 3) * g.count;
    convolve(x, g.three, g.w3, g.near, 0, y);
    CHECK(cudaEventRecord(g.computed, g.work));
    CHECK(cudaStreamWaitEvent(g.copies, g.computed, 0));
    /* the first two columns of every row, then the last row of each channel */
    CHECK(cudaMemcpy2DAsync(y, pitch, x, pitch, 2 * sizeof *x,
                            CHANNELS * (size_t)g.rows, cudaMemcpyDeviceToDevice,
                            g.copies));
    CHECK(
        cudaMemcpy2DAsync(y + g.plane - (size_t)g.columns, g.plane * sizeof *y,
                          x + g.plane - (size_t)g.columns, g.plane * sizeof *x,
                          pitch, CHANNELS, cudaMemcpyDeviceToDevice, g.copies));
    CHECK(cudaEventRecord(g.copied, g.copies));
    CHECK(cudaStreamWaitEvent(g.work, g.copied, 0));
    tanh_in_place(y);
  }
  keep(all + (size_t)(steps % 3) * g.count);
  keep(all);
  CHECK(cudaFree(all));
}

/* Memory in the order of the stream, reused at once; half steps of tensors that
 * overlap those before. */
static void transient(int steps) {
  float *x = pooled(g.count), *y;
  fill(x, g.count, 6, 1);
  for (int step = 0; step < steps; step++) {
    float *a, *b;
    CHECK(cudaMallocAsync((void **)&a, g.count * sizeof *a, g.work));
    convolve(x, g.three, g.w3, g.near, 0, a);
    CHECK(cudaMallocAsync((void **)&b, g.count * sizeof *b, g.work));
    combine(g.multiply, 1, a, 0.9f, x, b);
    CHECK(cudaFreeAsync(a, g.work));
    convolve(b, g.five, g.w5, g.far, 0.25f, x);
    CHECK(cudaFreeAsync(b, g.work));
  }
  keep(x);
  CHECK(cudaMalloc((void **)&y, 2 * g.count * sizeof *y));
  CHECK(cudaMemsetAsync(y, 0, 2 * g.count * sizeof *y, g.work));
  for (int step = 0; step < 3; step++)
    convolve(x, g.three, g.w3, g.near, 1, y + (size_t)step * g.plane / 2);
  keep(y);
  keep(y + g.count / 2);
  CHECK(cudaFree(y));
}

/* Sums on the stream that computes, scaled by what they are. */
static void sums(void) {
  float *x = pooled(g.count), *y = pooled(g.count);
  float norm, dot, size, half = 0.5f, from[2];
  int largest;
  fill(x, g.count, 7, 1);
  for (int step = 0; step < 3; step++) {
    convolve(x, g.three, g.w3, g.near, 0, y);
    CHECK(cublasNrm2Ex(g.cublas, (int)g.count, y, CUDA_R_32F, 1, &norm,
                       CUDA_R_32F, CUDA_R_32F));
    CHECK(cublasDotEx(g.cublas, (int)g.count, x, CUDA_R_32F, 1, y, CUDA_R_32F,
                      1, &dot, CUDA_R_32F, CUDA_R_32F));
    CHECK(cublasSnrm2(g.cublas, (int)g.count, x, 1, &size));
    CHECK(cublasIsamax(g.cublas, (int)g.count, y, 1, &largest));
    CHECK(cublasGetVector(2, sizeof *from, y + largest / 2, 1, from, 1));
    float scale = 1 / (norm + 1);
    convolve(y, g.five, g.w5, g.far, 0, x);
    CHECK(cublasSscal(g.cublas, (int)g.count, &scale, x, 1));
    convolve(x, g.three, g.w3, g.near, 0, y);
    CHECK(cublasSaxpy(g.cublas, (int)g.count, &half, y, 1, x, 1));
    printf("%d %.9g %.9g %.9g %.9g %.9g\n", largest, (double)size, (double)norm,
           (double)dot, (double)from[0], (double)from[1]);
  }
  keep(x);
}

/* A program for many devices that has got one. */
static void collective(void) {
  ncclComm_t comm;
  int device = 0;
  float *x = pooled(g.count), *y = pooled(g.count), *z = pooled(g.count);
  fill(x, g.count, 8, 1);
  CHECK(ncclCommInitAll(&comm, 1, &device));
  convolve(x, g.three, g.w3, g.near, 0, y);
  CHECK(ncclAllReduce(y, z, g.count, ncclFloat, ncclSum, comm, g.work));
  convolve(z, g.three, g.w3, g.near, 0, y);
  CHECK(ncclGroupStart());
  CHECK(ncclSend(y, g.count, ncclFloat, 0, comm, g.work));
  CHECK(ncclRecv(x, g.count, ncclFloat, 0, comm, g.work));
  CHECK(ncclGroupEnd());
  keep(z);
  keep(x);
  CHECK(ncclCommDestroy(comm));
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: solver_habits OUT.npy ROWS COLUMNS STEPS\n");
    return 2;
  }
  int steps = atoi(argv[4]);
  setup(atoi(argv[2]), atoi(argv[3]));
  leapfrog(steps);
  pingpong(steps);
  transient(steps);
  sums();
  collective();
  npy_field_t field = {RESULTS, (int)g.count, g.result};
  npy_write(argv[1], field);
  free(g.result);
  return EXIT_SUCCESS;
}
