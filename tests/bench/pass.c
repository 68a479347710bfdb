// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per call of cudnnConvolutionForward, 13 arguments, on a library
// that does nothing. Prints the median over many short batches, in CPU time of
// this thread: other work on the machine shows as little as can be.
#include <cudnn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 301, CALLS = 5000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);

  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t op;
  cudnnCreateTensorDescriptor(&x);
  cudnnCreateTensorDescriptor(&y);
  cudnnCreateFilterDescriptor(&w);
  cudnnCreateConvolutionDescriptor(&op);
  static double batch[BATCHES];
  float one_f = 1, zero = 0;
  int bad = 0;
  for (int b = -20; b < BATCHES; b++) {
    double start = now_ns();
    for (int i = 0; i < CALLS; i++)
      bad |= cudnnConvolutionForward(NULL, &one_f, x, NULL, w, NULL, op,
                                     CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL, 0,
                                     &zero, y, NULL);
    if (b >= 0)
      batch[b] = (now_ns() - start) / CALLS;
  }
  qsort(batch, BATCHES, sizeof batch[0], compare);
  printf("%.3f\n", batch[BATCHES / 2]);
  return bad != 0;
}
