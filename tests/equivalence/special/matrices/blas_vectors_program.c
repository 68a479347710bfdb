// SPDX-License-Identifier: Apache-2.0
// Makes random calls of cuBLAS on vectors, and copies of them, between
// convolutions, with any lengths, strides and offsets. Compares all of its
// memory and every value with its own computation. Whole view. -DDOUBLE:
// vectors of doubles.
//
// usage: blas_vectors_program SEED STEPS [pieces]
//        pieces: instead, values of vectors that sundog must not fetch
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
#include "tests/workspace.h"

#ifdef DOUBLE
typedef double real_t;
typedef double complex complex_t;
#define BLAS(of_floats, of_doubles) cublas##of_doubles
#define REAL                        CUDA_R_64F
#define TENSOR_TYPE                 CUDNN_DATA_DOUBLE
#else
typedef float real_t;
typedef float complex complex_t;
#define BLAS(of_floats, of_doubles) cublas##of_floats
#define REAL                        CUDA_R_32F
#define TENSOR_TYPE                 CUDNN_DATA_FLOAT
#endif

enum {
  N = 2,
  C = 2,
  H = 9,
  W = 6,
  PITCH = W + 2, // in tensors with gaps after their rows
  COUNT = N * C * H * PITCH,
  TENSORS = 4,
  GAP = 12,
  ARENA = TENSORS * (COUNT + GAP)
};

static real_t host[ARENA], *device, *result;
static unsigned state;
static int latest; // the tensor that a convolution wrote last
static cudnnHandle_t cudnn;
static cublasHandle_t cublas;
static cudnnTensorDescriptor_t tensors[2]; // without gaps, with gaps
static cudnnFilterDescriptor_t filter;
static cudnnConvolutionDescriptor_t conv;
static real_t *weights, weight[C][C][3][3];

static int drawn(int from, int to) {
  state = state * 1103515245u + 12345u;
  return from + (int)((state >> 16) % (unsigned)(to - from + 1));
}

static void compare(const char *what) {
  static real_t now[ARENA];
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
    host[i] = (real_t)drawn(-3, 3);
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
}

static int place(int index) {
  return index * (COUNT + GAP);
}

static void convolve(int from, int to, bool gaps) {
  static real_t y[N * C * H * W];
  const real_t one = 1, zero = 0, *x = host + place(from);
  latest = to;
  int pitch = gaps ? PITCH : W;
  memset(y, 0, sizeof y);
  for (int i = 0; i < N * C * H * W; i++) {
    int w = i % W, h = i / W % H, k = i / W / H % C, n = i / W / H / C;
    for (int j = 0; j < C * 9; j++) {
      int s = j % 3, r = j / 3 % 3, c = j / 9, row = h + r - 1, at = w + s - 1;
      if (row >= 0 && row < H && at >= 0 && at < W)
        y[i] += weight[k][c][r][s] * x[((n * C + c) * H + row) * pitch + at];
    }
  }
  for (int i = 0; i < N * C * H * W; i++)
    host[place(to) + i / W * pitch + i % W] = y[i];
  CHECK(cudnnConvolutionForward(
      cudnn, &one, tensors[gaps], device + place(from), filter, weights, conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace(),
      WORKSPACE_BYTES, &zero, tensors[gaps], device + place(to)));
}

// A vector whose elements have `width` numbers each.
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

// Checks a value of the call, and that every rank has the same bits.
static void value_is(const char *what, double complex is, double complex right,
                     double terms) {
  bool alike = isfinite(terms) ? cabs(is - right) <= 1e-5 * terms
               : isnan(terms)  ? isnan(creal(is))
                               : creal(is) == terms;
  if (!alike) {
    printf("%s is %g + %gi, not %g + %gi\n", what, creal(is), cimag(is),
           creal(right), cimag(right));
    exit(2);
  }
  printf("%s %a %a\n", what, creal(is), cimag(is));
}

static complex_t at(const strip_t *v, int n, int i) {
  const real_t *from = host + index_of(v, n, i);
  return v->width == 2 ? from[0] + from[1] * I : from[0];
}

// Chooses where the result goes: memory of its own, or a place in the arena
// outside the call's vectors; -1: host memory.
static int result_place(const strip_t *x, const strip_t *y, int n) {
  int at = drawn(0, ARENA - 2), where = drawn(0, 3);
  if (where < 2)
    return where == 0 ? -1 : ARENA;
  bool in_x = at + 2 > x->at && at < x->at + reach(x, n);
  bool in_y = at + 2 > y->at && at < y->at + reach(y, n);
  return in_x || in_y || n == 0 ? -1 : at;
}

enum { NRM2, ASUM, DOT, DOTC };

// The result goes to the arena, or behind it, or if place_of < 0 to the host.
static void value_make(int op, int place_of, strip_t x, strip_t y, int n) {
  static const char *const names[] = {"nrm2", "asum", "dot", "dotc"};
  bool on_device = place_of >= 0, in_arena = on_device && place_of < ARENA;
  double complex right = 0;
  double terms = 0;
  long double squares = 0; // squares of doubles stay in range
  real_t out[2] = {0, 0};
  real_t *to = in_arena ? device + place_of : on_device ? result : out;
  const real_t *a = device + x.at, *b = device + y.at;
  // cuBLAS returns 0 for norms and sums of vectors with a negative step.
  for (int i = 0; i < (op <= ASUM && x.inc < 0 ? 0 : n); i++) {
    double complex p = (double complex)at(&x, n, i);
    double complex q = (double complex)at(&y, n, i);
    long double re = creal(p), im = cimag(p);
    double complex term = op == ASUM  ? fabs(creal(p)) + fabs(cimag(p))
                          : op == DOT ? p * q
                                      : conj(p) * q;
    squares += re * re + im * im;
    right += term;
    terms += cabs(term);
  }
  if (op == NRM2)
    right = terms = (double)sqrtl(squares);
  CHECK(cublasSetPointerMode(cublas, on_device ? CUBLAS_POINTER_MODE_DEVICE
                                               : CUBLAS_POINTER_MODE_HOST));
  const void *ca = a, *cb = b;
  void *cto = to;
  if (x.width == 2 && op == NRM2)
    CHECK(BLAS(Scnrm2, Dznrm2)(cublas, n, ca, x.inc, to));
  else if (x.width == 2 && op == ASUM)
    CHECK(BLAS(Scasum, Dzasum)(cublas, n, ca, x.inc, to));
  else if (x.width == 2 && op == DOT)
    CHECK(BLAS(Cdotu, Zdotu)(cublas, n, ca, x.inc, cb, y.inc, cto));
  else if (x.width == 2)
    CHECK(BLAS(Cdotc, Zdotc)(cublas, n, ca, x.inc, cb, y.inc, cto));
  else if (op == NRM2)
    CHECK(BLAS(Snrm2_64, Dnrm2_64)(cublas, n, a, x.inc, to));
  else if (op == ASUM)
    CHECK(BLAS(Sasum, Dasum)(cublas, n, a, x.inc, to));
  else if (op == DOT)
    CHECK(BLAS(Sdot, Ddot)(cublas, n, a, x.inc, b, y.inc, to));
  else
    CHECK(
        cublasDotEx(cublas, n, a, REAL, x.inc, b, REAL, y.inc, to, REAL, REAL));
  CHECK(cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST));
  if (on_device)
    CHECK(cudaMemcpy(out, to, sizeof out, cudaMemcpyDeviceToHost));
  bool pair = x.width == 2 && op >= 2;
  for (int i = 0; in_arena && i <= pair; i++)
    host[place_of + i] = out[i];
  value_is(names[op], out[0] + (pair ? out[1] : 0) * I, right, terms);
}

// BYTES: a copy by the CUDA runtime.
enum { COPY, SWAP, AXPY, SCAL, ROT, BYTES };

static void elements_make(int op, strip_t x, strip_t y, int n) {
  static real_t was[ARENA];
  const real_t alpha = drawn(0, 1) ? 1 : -1;
  memcpy(was, host, sizeof was);
  void *a = device + x.at, *b = device + y.at;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < x.width; k++) {
      int from = index_of(&x, n, i) + k, to = index_of(&y, n, i) + k;
      if (op == COPY || op == SWAP || op == BYTES)
        host[to] = was[from];
      if (op == SWAP)
        host[from] = was[to];
      if (op == AXPY)
        host[to] += alpha * was[from];
      if (op == SCAL && x.inc > 0)
        host[from] *= alpha;
      if (op == ROT) { // rotates by 90 degrees
        host[from] = alpha * was[to];
        host[to] = -alpha * was[from];
      }
    }
  const real_t none = 0;
  if (op == ROT)
    CHECK(BLAS(Srot, Drot)(cublas, n, a, x.inc, b, y.inc, &none, &alpha));
  else if (op == BYTES)
    CHECK(cudaMemcpyAsync(b, a, (size_t)(n * x.width) * sizeof *host,
                          cudaMemcpyDeviceToDevice, 0));
  else if (op == COPY && x.width == 2)
    CHECK(BLAS(Ccopy, Zcopy)(cublas, n, a, x.inc, b, y.inc));
  else if (op == COPY)
    CHECK(BLAS(Scopy, Dcopy)(cublas, n, a, x.inc, b, y.inc));
  else if (op == SWAP && x.width == 2)
    CHECK(BLAS(Cswap, Zswap)(cublas, n, a, x.inc, b, y.inc));
  else if (op == SWAP)
    CHECK(BLAS(Sswap, Dswap)(cublas, n, a, x.inc, b, y.inc));
  else if (op == AXPY)
    CHECK(BLAS(Saxpy, Daxpy)(cublas, n, &alpha, a, x.inc, b, y.inc));
  else
    CHECK(BLAS(Sscal, Dscal)(cublas, n, &alpha, a, x.inc));
}

static void vectors_draw(void) {
  static const int incs[] = {1, 1, 1, 1, -1, 2, 3, -2};
  int from = drawn(0, TENSORS - 1), to = drawn(0, TENSORS - 1);
  int op = drawn(0, 10), width = op < 2 || op > ROT ? drawn(1, 2) : 1;
  if (op > ROT && drawn(0, 3)) {
    from = latest;
    to = drawn(0, 1) ? latest : to;
  }
  int inc = incs[drawn(0, 7)], other = drawn(0, 2) ? inc : incs[drawn(0, 7)];
  strip_t x = strip_drawn(from, width, inc), y = strip_drawn(to, width, other);
  int n = drawn(0, 2) ? COUNT / width : drawn(0, COUNT);
  if (drawn(0, 8) == 0 && from != to) // reaches over both tensors and the gap
    n = (COUNT + GAP + drawn(0, COUNT)) / width;
  while (n > 0 && (x.at + reach(&x, n) > ARENA || y.at + reach(&y, n) > ARENA))
    n /= 2;
  // If a call writes, its vectors must not overlap.
  while (n > 0 && op != SCAL && op <= ROT && x.at < y.at + reach(&y, n) &&
         y.at < x.at + reach(&x, n))
    n /= 2;
  if (op > ROT)
    value_make(drawn(NRM2, DOTC), result_place(&x, &y, n), x, y, n);
  else if (n > 0)
    elements_make(op == COPY && x.inc == 1 && y.inc == 1 && drawn(0, 1) ? BYTES
                                                                        : op,
                  x, y, n);
}

// Vectors in pieces: two tensors and parts of them, also together with elements
// around them that are the same on every rank.
static void pieces_run(bool gaps) {
  static const struct {
    int op, from, to, offset, n, inc, width;
  } calls[] = {
      {NRM2, 0, 0, 0, COUNT, 1, 1},      {NRM2, 0, 0, 2, 33, 2, 1},
      {NRM2, 0, 0, 0, COUNT / 2, 1, 2},  {NRM2, 0, 0, 0, ARENA, 1, 1},
      {ASUM, 1, 1, 7, COUNT / 2, 1, 1},  {ASUM, 1, 1, 12, 20, 1, 2},
      {DOT, 0, 1, 0, COUNT, 1, 1},       {DOT, 0, 1, 5, 150, -1, 1},
      {DOT, 0, 3, 0, COUNT, 1, 1},       {DOT, 3, 0, 3, 100, 1, 1},
      {DOT, 0, 0, 0, COUNT / 2, 2, 1},   {DOT, 0, 0, 0, 2 * COUNT, 1, 1},
      {DOTC, 0, 1, 0, COUNT / 2, 1, 2},  {DOT, 0, 3, 4, 30, -1, 2},
      {ASUM, 0, 0, COUNT - 5, 40, 1, 1},
  };
  fill();
  convolve(2, 0, gaps);
  convolve(2, 1, gaps);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    for (int place_of = -1; place_of <= ARENA; place_of += ARENA + 1)
      value_make(calls[i].op, place_of,
                 (strip_t){place(calls[i].from) + calls[i].offset, calls[i].inc,
                           calls[i].width},
                 (strip_t){place(calls[i].to) + calls[i].offset, calls[i].inc,
                           calls[i].width},
                 calls[i].n);
  for (int op = COPY; op <= BYTES; op++)
    elements_make(op, (strip_t){place(0), 1, 1}, (strip_t){place(1), 1, 1},
                  COUNT);
  compare("memory");
}

// Numbers whose squares or sums overflow or underflow the type.
static void extremes_run(cudnnActivationDescriptor_t relu) {
  const double large = sizeof(real_t) == 4 ? 1e30 : 1e200;
  const real_t one = 1, zero = 0;
  const struct {
    double scale, odd; // value of all elements but one, and of that one
  } row[] = {{large, large},
             {1 / large, 1 / large},
             {1 / large, large},
             {1, INFINITY},
             {1, NAN},
             {large, INFINITY},
             {INFINITY, 1},
             {INFINITY, NAN},
             {0, 0}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    int odd = drawn(0, N * C * H * W - 1);
    for (int k = 0; k < ARENA; k++)
      host[k] = (real_t)row[i].scale;
    host[place(0) + odd] = (real_t)row[i].odd;
    CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudnnActivationForward(cudnn, relu, &one, tensors[0], device, &zero,
                                 tensors[0], device + place(1)));
    const strip_t x = {place(1), 1, 1};
    memcpy(host + place(1), host, N * C * H * W * sizeof *host);
    for (int place_of = -1; place_of <= ARENA; place_of += ARENA + 1)
      for (int op = NRM2; op <= ASUM; op++)
        value_make(op, place_of, x, x, N * C * H * W);
  }
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
    (&weight[0][0][0][0])[i] = (real_t)(drawn(0, 5) == 0);
  CHECK(cudaMemcpy(weights, weight, sizeof weight, cudaMemcpyHostToDevice));
  for (int gaps = 0; gaps < 2; gaps++) {
    int pitch = gaps ? PITCH : W;
    CHECK(cudnnCreateTensorDescriptor(&tensors[gaps]));
    CHECK(cudnnSetTensor4dDescriptorEx(tensors[gaps], TENSOR_TYPE, N, C, H, W,
                                       C * H * pitch, H * pitch, pitch, 1));
  }
  CHECK(cudnnCreateFilterDescriptor(&filter));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetFilter4dDescriptor(filter, TENSOR_TYPE, CUDNN_TENSOR_NCHW, C, C,
                                   3, 3));
  CHECK(cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1,
                                        CUDNN_CROSS_CORRELATION, TENSOR_TYPE));
  if (argc > 3 && strcmp(argv[3], "pieces") == 0) {
    pieces_run(false);
    pieces_run(true);
    cudnnActivationDescriptor_t relu;
    CHECK(cudnnCreateActivationDescriptor(&relu));
    CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                       CUDNN_PROPAGATE_NAN, 0));
    extremes_run(relu);
    return 0;
  }
  fill();
  for (int step = 0; step < steps; step++) {
    int what = drawn(0, 5);
    if (step % 8 == 7) {
      compare("memory");
      fill();
    } else if (what < 2) {
      int from = drawn(0, TENSORS - 1);
      convolve(from, (from + drawn(1, TENSORS - 1)) % TENSORS,
               drawn(0, 2) == 0);
    } else {
      vectors_draw();
    }
  }
  compare("memory");
  return 0;
}
