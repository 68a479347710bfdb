// SPDX-License-Identifier: Apache-2.0
// A step is one convolution of this rank's rows; prints how long the steps
// took.
//
// usage: pace STEPS STEP_US [WORD=RANK,AT,VALUE]...
//   slow=R,0,US   the steps of rank R take so many microseconds more
//   late=R,0,US   rank R makes its first call so much later
//   busy=R,N,US   rank R does something else for so long before its step N
//   kill=R,N,0    rank R kills itself before its step N
//   said=R,N,0    rank R prints a line at every N-th step
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/calls.h"

enum { CHANNELS = 4, ROWS = 16, COLUMNS = 256 };

static int words, rank;
static char **word;

// Returns the value of a word about this rank, or -1; AT, if it is given.
static long about(const char *name, long *out_at) {
  for (int i = 0; i < words; i++) {
    int of;
    long at, value;
    size_t length = strlen(name);
    if (strncmp(word[i], name, length) != 0 ||
        sscanf(word[i] + length, "=%d,%ld,%ld", &of, &at, &value) != 3 ||
        of != rank)
      continue;
    if (out_at)
      *out_at = at;
    return value;
  }
  return -1;
}

static void pause_us(long us) {
  const struct timespec time = {us / 1000000, us % 1000000 * 1000};
  if (us > 0)
    nanosleep(&time, NULL);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  const float one = 1, zero = 0;
  long steps = strtol(argv[1], NULL, 10), step_us = strtol(argv[2], NULL, 10);
  long busy_at = -1, said_at = -1, kill_at = -1;
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  float *in, *out, *filter;
  void *space;
  size_t bytes = 0, count = CHANNELS * ROWS * COLUMNS;
  words = argc - 3;
  word = argv + 3;
  rank = atoi(getenv("SUNDOG_RANK"));
  long slow_us = about("slow", NULL), busy_us = about("busy", &busy_at);
  long said = about("said", &said_at), killed = about("kill", &kill_at);
  CHECK(cudnnCreate(&cudnn));
  CHECK(cudnnCreateTensorDescriptor(&x));
  CHECK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                   CHANNELS, ROWS, COLUMNS));
  CHECK(cudnnCreateFilterDescriptor(&w));
  CHECK(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   CHANNELS, CHANNELS, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudaMalloc((void **)&in, count * sizeof *in));
  CHECK(cudaMalloc((void **)&out, count * sizeof *out));
  CHECK(cudaMalloc((void **)&filter, CHANNELS * CHANNELS * 9 * sizeof *filter));
  CHECK(cudaMemset(in, 0, count * sizeof *in));
  CHECK(cudaMemset(filter, 0, CHANNELS * CHANNELS * 9 * sizeof *filter));
  pause_us(about("late", NULL));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, x, w, conv, x, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
  CHECK(cudaMalloc(&space, bytes + 1));
  double start = now();
  for (long i = 0; i < steps; i++) {
    if (busy_us > 0 && i == busy_at)
      pause_us(busy_us);
    if (killed >= 0 && i == kill_at)
      raise(SIGKILL);
    CHECK(cudnnConvolutionForward(cudnn, &one, x, in, w, filter, conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                  space, bytes, &zero, x, out));
    CHECK(cudaStreamSynchronize(NULL));
    if (said >= 0 && i % said_at == 0) {
      printf("step %ld of rank %d has ended\n", i, rank);
      fflush(stdout);
    }
    pause_us(step_us + (slow_us > 0 ? slow_us : 0));
  }
  if (rank == 0)
    printf("%ld steps in %.3f s\n", steps, now() - start);
  return 0;
}
