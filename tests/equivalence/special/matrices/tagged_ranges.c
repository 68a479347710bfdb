/* SPDX-License-Identifier: Apache-2.0 */
/* Makes products of matrices whose memory the program tags with its split, on
 * three ranks with uneven parts of the sums.
 *
 * usage: tagged_ranges RANK */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/sundog.h"

enum { M = 5, N = 7, K = 16, RANKS = 3 };
static const int cut[RANKS + 1] = {0, 7, 11, K};

static float value(int which, int i, int j) {
  return (float)((which * 7 + i * 13 + j * 29) % 17) / 8 - 1;
}

/* Returns the sum of terms [from, to). */
static float product(int i, int j, int from, int to) {
  double sum = 0;
  for (int k = from; k < to; k++)
    sum += (double)value(1, i, k) * (double)value(2, k, j);
  return (float)sum;
}

static float *upload(const float *host, int count) {
  float *at;
  if (cudaMalloc((void **)&at, (size_t)count * sizeof *at) ||
      cudaMemcpy(at, host, (size_t)count * sizeof *at, cudaMemcpyHostToDevice))
    exit(2);
  return at;
}

/* c has room for all columns, so the tag must say their parts. */
#define CUT                                                                    \
  "K:y; c = N:y; sizes = K:piece N:whole; a = K:y; b = K:y; parts = N:even"

static cublasHandle_t blas;
static float *a, *b, *c;

/* Multiplies, and compares columns [first, last) of the result with the sums of
 * terms [from, to). Returns the number of differences. */
static int multiply(const char *what, int terms, int first, int last, int from,
                    int to) {
  const float one = 1, zero = 0;
  float found[M * N];
  int wrong = 0;
  if (cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, M, N, terms, &one, a, M, b,
                  terms, &zero, c, M) ||
      cudaMemcpy(found, c, sizeof found, cudaMemcpyDeviceToHost)) {
    printf("%s: failed\n", what);
    return 1;
  }
  for (int j = first; j < last; j++)
    for (int i = 0; i < M; i++)
      wrong +=
          fabsf(found[(j - first) * M + i] - product(i, j, from, to)) > 1e-4f;
  if (wrong)
    printf("%s: %d elements are wrong\n", what, wrong);
  return wrong;
}

int main(int argc, char **argv) {
  float host_a[M * K], host_b[K * N], host_c[M * N] = {0};
  int rank = argc > 1 ? atoi(argv[1]) : 0, wrong = 0;
  int from = cut[rank], to = cut[rank + 1], terms = to - from;
  __typeof__(&sundog_tag_range) tag =
      (__typeof__(&sundog_tag_range))dlsym(RTLD_DEFAULT, "sundog_tag_range");
  if (!tag || cublasCreate(&blas))
    return 2;
  for (int k = 0; k < terms; k++) {
    for (int i = 0; i < M; i++)
      host_a[k * M + i] = value(1, i, from + k);
    for (int j = 0; j < N; j++)
      host_b[j * terms + k] = value(2, from + k, j);
  }
  a = upload(host_a, M * terms);
  b = upload(host_b, terms * N);
  c = upload(host_c, M * N);
  size_t bytes = sizeof host_c;
  /* 7 columns on 3 ranks are 3+2+2. */
  int first = rank == 0 ? 0 : 1 + 2 * rank, columns = rank == 0 ? 3 : 2;
  wrong += multiply("before", terms, 0, N, from, to);
  wrong += tag(c, bytes, "K:y; sizes = piece; a = K:y; b = K:y") != 0;
  wrong += multiply("summed", terms, 0, N, 0, K);
  wrong += multiply("summed again", terms, 0, N, 0, K);
  wrong += tag(c, bytes, CUT) != 0;
  wrong += multiply("in pieces", terms, first, first + columns, 0, K);
  wrong += tag(c, bytes, "K:y; sum = no; sizes = piece; a = K:y; b = K:y") != 0;
  wrong += multiply("not summed", terms, 0, N, from, to);
  wrong += tag(c + M, bytes - M * sizeof *c, "K:y; sizes = piece") != 0;
  wrong += multiply("elsewhere", terms, 0, N, from, to);
  wrong += tag(c, bytes, NULL) != 0;
  wrong += multiply("taken off", terms, 0, N, from, to);
  wrong += tag(c, bytes, "H:y; sizes = piece") != 108;
  wrong += tag(c, bytes, "K:y; d = N:y") != 107;
  wrong += tag(c, bytes, "M:y; c = N:y") != 108;
  wrong += tag(NULL, bytes, "K:y") != 609;
  printf("rank %d: %d wrong\n", rank, wrong);
  return wrong != 0;
}
