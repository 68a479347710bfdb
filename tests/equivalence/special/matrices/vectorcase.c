// SPDX-License-Identifier: Apache-2.0
// A program that draws calls of cuBLAS on vectors, between convolutions, with
// lengths, strides and places of any kind, and compares all of its memory and
// every value with what it works out itself. Whole view.
//
// usage: vectorcase SEED STEPS
#include <complex.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum {
  N = 2,
  C = 2,
  H = 9,
  W = 5,
  COUNT = N * C * H * W,
  TENSORS = 4,
  GAP = 12,
  ARENA = TENSORS * (COUNT + GAP)
};

static float host[ARENA], *device, *result;
static unsigned state;
static cudnnHandle_t cudnn;
static cublasHandle_t cublas;
static cudnnTensorDescriptor_t tensor;
static cudnnFilterDescriptor_t filter;
static cudnnConvolutionDescriptor_t conv;
static float *weights, weight[C][C][3][3];

static int drawn(int from, int to) {
  state = state * 1103515245u + 12345u;
  return from + (int)((state >> 16) % (unsigned)(to - from + 1));
}

static void compare(const char *what) {
  static float now[ARENA];
  CHECK(cudaMemcpy(now, device, sizeof now, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ARENA; i++)
    if (now[i] != host[i]) {
      printf("%s: element %d is %g, not %g\n", what, i, (double)now[i],
             (double)host[i]);
      exit(2);
    }
}

static void fill(void) {
  for (int i = 0; i < ARENA; i++)
    host[i] = (float)drawn(-3, 3);
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
}

static int place(int index) {
  return index * (COUNT + GAP);
}

static void convolve(int from, int to) {
  static float y[COUNT];
  const float one = 1, zero = 0, *x = host + place(from);
  memset(y, 0, sizeof y);
  for (int i = 0; i < COUNT; i++) {
    int w = i % W, h = i / W % H, k = i / W / H % C, n = i / W / H / C;
    for (int j = 0; j < C * 9; j++) {
      int s = j % 3, r = j / 3 % 3, c = j / 9, row = h + r - 1, at = w + s - 1;
      if (row >= 0 && row < H && at >= 0 && at < W)
        y[i] += weight[k][c][r][s] * x[((n * C + c) * H + row) * W + at];
    }
  }
  memcpy(host + place(to), y, sizeof y);
  CHECK(cudnnConvolutionForward(
      cudnn, &one, tensor, device + place(from), filter, weights, conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NULL, 0, &zero, tensor,
      device + place(to)));
}

// A vector of `width` floats an element: `at`, `n` elements `inc` apart.
typedef struct strip {
  int at, inc, width;
} strip_t;

static int index_of(const strip_t *v, int n, int i) {
  int from = v->inc < 0 ? (1 - n) * v->inc : 0;
  return v->at + (from + i * v->inc) * v->width;
}

static int reach(const strip_t *v, int n) {
  return ((n - 1) * abs(v->inc) + 1) * v->width;
}

static strip_t strip_drawn(int tensor_index, int width, int inc) {
  int offset = drawn(0, 2) ? 0 : drawn(0, 9) * 2;
  return (strip_t){place(tensor_index) + offset, inc, width};
}

// A value of the call is right, on every rank in the same bits.
static void value_is(const char *what, double complex is, double complex right,
                     double terms) {
  if (cabs(is - right) > 1e-5 * terms + 1e-30) {
    printf("%s is %g + %gi, not %g + %gi\n", what, creal(is), cimag(is),
           creal(right), cimag(right));
    exit(2);
  }
  printf("%s %a %a\n", what, creal(is), cimag(is));
}

static float complex at(const strip_t *v, int n, int i) {
  const float *from = host + index_of(v, n, i);
  return v->width == 2 ? from[0] + from[1] * I : from[0];
}

static void value_make(strip_t x, strip_t y, int n) {
  static const char *const names[] = {"nrm2", "asum", "dot", "dotc"};
  int op = drawn(0, 3), on_device = drawn(0, 1);
  double complex right = 0;
  double terms = 0;
  float out[2] = {0, 0}, *to = on_device ? result : out;
  const float *a = device + x.at, *b = device + y.at;
  // Norms and sums of vectors that go backwards are 0.
  for (int i = 0; i < (op < 2 && x.inc < 0 ? 0 : n); i++) {
    double complex p = (double complex)at(&x, n, i);
    double complex q = (double complex)at(&y, n, i);
    double complex term = op == 0   ? creal(p) * creal(p) + cimag(p) * cimag(p)
                          : op == 1 ? fabs(creal(p)) + fabs(cimag(p))
                          : op == 2 ? p * q
                                    : conj(p) * q;
    right += term;
    terms += cabs(term);
  }
  if (op == 0) {
    right = sqrt(creal(right));
    terms = sqrt(terms);
  }
  CHECK(cublasSetPointerMode(cublas, on_device ? CUBLAS_POINTER_MODE_DEVICE
                                               : CUBLAS_POINTER_MODE_HOST));
  const void *ca = a, *cb = b;
  void *cto = to;
  if (x.width == 2 && op == 0)
    CHECK(cublasScnrm2(cublas, n, ca, x.inc, to));
  else if (x.width == 2 && op == 1)
    CHECK(cublasScasum(cublas, n, ca, x.inc, to));
  else if (x.width == 2 && op == 2)
    CHECK(cublasCdotu(cublas, n, ca, x.inc, cb, y.inc, cto));
  else if (x.width == 2)
    CHECK(cublasCdotc(cublas, n, ca, x.inc, cb, y.inc, cto));
  else if (op == 0)
    CHECK(cublasSnrm2(cublas, n, a, x.inc, to));
  else if (op == 1)
    CHECK(cublasSasum(cublas, n, a, x.inc, to));
  else if (op == 2)
    CHECK(cublasSdot(cublas, n, a, x.inc, b, y.inc, to));
  else
    CHECK(cublasDotEx(cublas, n, a, CUDA_R_32F, x.inc, b, CUDA_R_32F, y.inc, to,
                      CUDA_R_32F, CUDA_R_32F));
  CHECK(cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST));
  if (on_device)
    CHECK(cudaMemcpy(out, result, sizeof out, cudaMemcpyDeviceToHost));
  bool pair = x.width == 2 && op >= 2;
  value_is(names[op], out[0] + (pair ? out[1] : 0) * I, right, terms);
}

static void elements_make(int op, strip_t x, strip_t y, int n) {
  static float was[ARENA];
  const float alpha = drawn(0, 1) ? 1 : -1;
  memcpy(was, host, sizeof was);
  void *a = device + x.at, *b = device + y.at;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < x.width; k++) {
      int from = index_of(&x, n, i) + k, to = index_of(&y, n, i) + k;
      if (op == 0 || op == 1)
        host[to] = was[from];
      if (op == 1)
        host[from] = was[to];
      if (op == 2)
        host[to] += alpha * was[from];
      if (op == 3 && x.inc > 0)
        host[from] *= alpha;
    }
  if (op == 0 && x.width == 2)
    CHECK(cublasCcopy(cublas, n, a, x.inc, b, y.inc));
  else if (op == 0)
    CHECK(cublasScopy(cublas, n, a, x.inc, b, y.inc));
  else if (op == 1 && x.width == 2)
    CHECK(cublasCswap(cublas, n, a, x.inc, b, y.inc));
  else if (op == 1)
    CHECK(cublasSswap(cublas, n, a, x.inc, b, y.inc));
  else if (op == 2)
    CHECK(cublasSaxpy(cublas, n, &alpha, a, x.inc, b, y.inc));
  else
    CHECK(cublasSscal(cublas, n, &alpha, a, x.inc));
}

static void vectors_draw(void) {
  static const int incs[] = {1, 1, 1, 1, -1, 2, 3, -2};
  int from = drawn(0, TENSORS - 1), to = drawn(0, TENSORS - 1);
  int op = drawn(0, 7), width = op < 2 || op > 3 ? drawn(1, 2) : 1;
  int inc = incs[drawn(0, 7)], other = drawn(0, 2) ? inc : incs[drawn(0, 7)];
  strip_t x = strip_drawn(from, width, inc), y = strip_drawn(to, width, other);
  int n = drawn(0, 2) ? COUNT / width : drawn(0, COUNT);
  if (drawn(0, 8) == 0 && from != to) // both tensors of an arena, and the gap
    n = (COUNT + GAP + drawn(0, COUNT)) / width;
  while (n > 0 && (x.at + reach(&x, n) > ARENA || y.at + reach(&y, n) > ARENA))
    n /= 2;
  // Elements that lie in both vectors of a call that writes have no order.
  while (n > 0 && op < 3 && x.at < y.at + reach(&y, n) &&
         y.at < x.at + reach(&x, n))
    n /= 2;
  if (op > 3)
    value_make(x, y, n);
  else if (n > 0)
    elements_make(op, x, y, n);
}

int main(int argc, char **argv) {
  int steps = argc > 2 ? atoi(argv[2]) : 40;
  state = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cublasCreate(&cublas));
  CHECK(cudaMalloc((void **)&device, sizeof host));
  CHECK(cudaMalloc((void **)&result, 2 * sizeof *result));
  CHECK(cudaMalloc((void **)&weights, sizeof weight));
  for (int i = 0; i < C * C * 9; i++)
    (&weight[0][0][0][0])[i] = (float)(drawn(0, 5) == 0);
  CHECK(cudaMemcpy(weights, weight, sizeof weight, cudaMemcpyHostToDevice));
  CHECK(cudnnCreateTensorDescriptor(&tensor));
  CHECK(cudnnCreateFilterDescriptor(&filter));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   N, C, H, W));
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   C, C, 3, 3));
  CHECK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  fill();
  for (int step = 0; step < steps; step++) {
    int what = drawn(0, 5);
    if (step % 8 == 7) {
      compare("memory");
      fill();
    } else if (what < 2) {
      int from = drawn(0, TENSORS - 1);
      convolve(from, (from + drawn(1, TENSORS - 1)) % TENSORS);
    } else {
      vectors_draw();
    }
  }
  compare("memory");
  return 0;
}
