// SPDX-License-Identifier: Apache-2.0
// Makes the same calls again and again, on other inputs, and writes the results
// of each step to a file. Numbers are small integers, so that sums are exact.
//
// usage: replay_program RANK HOW OUT ROWS...
//   HOW  steady   nothing else changes
//        turns    three sets of tensors take turns
//        scaled   alpha and beta change
//        moved    the tensors are freed and made anew
//        streams  two streams take turns
//        threads  a second thread does the same with tensors of its own
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"

enum { N = 2, C = 3, WIDTH = 17, STEPS = 16, SETS = 3, TAPS = C * C * 9 };
enum { X, Y, P, DX, FIELDS };

static struct {
  const char *how;
  int first, rows;
} g;

// What one thread works with.
typedef struct worker {
  int number;
  FILE *out;
  cudnnHandle_t cudnn;
  cudaStream_t stream[2];
  cudnnTensorDescriptor_t desc;
  cudnnFilterDescriptor_t w_desc;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  float *field[SETS][FIELDS], *w, *dw;
  void *space;
  size_t space_bytes;
} worker_t;

static bool how_is(const char *how) {
  return !strcmp(g.how, how);
}

static size_t field_bytes(void) {
  return (size_t)(N * C * g.rows * WIDTH) * sizeof(float);
}

static void *device(size_t bytes) {
  void *memory;
  CHECK(cudaMalloc(&memory, bytes));
  return memory;
}

// Integers that depend on the place in the whole tensor.
static void fill(float *field, int seed) {
  float *host = malloc(field_bytes()), *at = host;
  for (int n = 0; n < N * C; n++)
    for (int y = g.first; y < g.first + g.rows; y++)
      for (int x = 0; x < WIDTH; x++)
        *at++ = (float)((n * 5 + y * 3 + x * 7 + seed * 11 + y * x) % 5 - 2);
  CHECK(cudaMemcpy(field, host, field_bytes(), cudaMemcpyHostToDevice));
  free(host);
}

static void put(worker_t *w, const float *memory, size_t bytes) {
  float *host = malloc(bytes);
  CHECK(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost));
  if (fwrite(host, 1, bytes, w->out) != bytes)
    exit(EXIT_FAILURE);
  free(host);
}

static void setup(worker_t *w) {
  float taps[TAPS];
  for (int i = 0; i < TAPS; i++)
    taps[i] = (float)(i * 7 % 3 - 1);
  CHECK(cudnnCreate(&w->cudnn));
  for (int i = 0; i < 2; i++)
    CHECK(cudaStreamCreateWithFlags(&w->stream[i], cudaStreamNonBlocking));
  CHECK(cudnnCreateTensorDescriptor(&w->desc));
  CHECK(cudnnSetTensor4dDescriptor(w->desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   N, C, g.rows, WIDTH));
  CHECK(cudnnCreateFilterDescriptor(&w->w_desc));
  CHECK(cudnnSetFilter4dDescriptor(w->w_desc, CUDNN_DATA_FLOAT,
                                   CUDNN_TENSOR_NCHW, C, C, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&w->conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      w->conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudnnCreatePoolingDescriptor(&w->pool));
  CHECK(cudnnSetPooling2dDescriptor(w->pool, CUDNN_POOLING_MAX,
                                    CUDNN_NOT_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  for (int s = 0; s < SETS; s++)
    for (int f = 0; f < FIELDS; f++)
      w->field[s][f] = device(field_bytes());
  w->w = device(sizeof taps);
  w->dw = device(sizeof taps);
  CHECK(cudaMemcpy(w->w, taps, sizeof taps, cudaMemcpyHostToDevice));
  w->space_bytes = (size_t)16 << 20;
  w->space = device(w->space_bytes);
}

// The tensors get one another's memory, or parts of it.
static void move(float **fields, int number) {
  for (int f = 0; f < FIELDS; f++)
    CHECK(cudaFree(fields[f]));
  void *between = device(field_bytes() / 3);
  for (int f = 0; f < FIELDS; f++)
    fields[number % 2 ? FIELDS - 1 - f : f] = device(field_bytes());
  CHECK(cudaFree(between));
}

static void step(worker_t *w, int number) {
  float **field = w->field[how_is("turns") ? number % SETS : 0];
  cudaStream_t stream = w->stream[how_is("streams") ? number % 2 : 0];
  bool scaled = how_is("scaled");
  const float one = 1, zero = 0, alpha = scaled ? (float)(1 + number % 3) : 1;
  const float beta = scaled ? (float)(number % 2) : 0;
  if (how_is("moved"))
    move(field, number);
  for (int f = 0; f < FIELDS; f++)
    fill(field[f], number + f + w->number);
  CHECK(cudaMemset(w->dw, 0, TAPS * sizeof(float)));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudnnSetStream(w->cudnn, stream));
  CHECK(cudnnConvolutionForward(
      w->cudnn, &alpha, w->desc, field[X], w->w_desc, w->w, w->conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, w->space, w->space_bytes, &beta,
      w->desc, field[Y]));
  CHECK(cudnnPoolingForward(w->cudnn, w->pool, &one, w->desc, field[Y], &zero,
                            w->desc, field[P]));
  CHECK(cudnnPoolingBackward(w->cudnn, w->pool, &alpha, w->desc, field[P],
                             w->desc, field[X], w->desc, field[Y], &beta,
                             w->desc, field[DX]));
  CHECK(cudnnConvolutionBackwardFilter(
      w->cudnn, &alpha, w->desc, field[X], w->desc, field[Y], w->conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, w->space, w->space_bytes, &beta,
      w->w_desc, w->dw));
  CHECK(cudaStreamSynchronize(stream));
  for (int f = Y; f < FIELDS; f++)
    put(w, field[f], field_bytes());
  put(w, w->dw, TAPS * sizeof(float));
}

static void *work(void *argument) {
  worker_t *w = argument;
  __typeof__(&sundog_thread) say;
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_thread");
  if (say && w->number > 0)
    CHECK(say("second"));
  setup(w);
  for (int i = 0; i < STEPS; i++)
    step(w, i);
  return NULL;
}

int main(int argc, char **argv) {
  int rank = atoi(argv[1]);
  worker_t worker[2] = {{.number = 0}, {.number = 1}};
  pthread_t second;
  int threads = !strcmp(argv[2], "threads") ? 2 : 1;
  if (argc < 5 || rank >= argc - 4)
    return EXIT_FAILURE;
  g.how = argv[2];
  g.rows = atoi(argv[4 + rank]);
  for (int r = 0; r < rank; r++)
    g.first += atoi(argv[4 + r]);
  for (int t = 0; t < threads; t++) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[3], t);
    worker[t].out = fopen(path, "wb");
    if (!worker[t].out)
      return EXIT_FAILURE;
  }
  if (threads > 1 && pthread_create(&second, NULL, work, &worker[1]))
    return EXIT_FAILURE;
  work(&worker[0]);
  if (threads > 1)
    pthread_join(second, NULL);
  for (int t = 0; t < threads; t++)
    if (fclose(worker[t].out))
      return EXIT_FAILURE;
  return EXIT_SUCCESS;
}
