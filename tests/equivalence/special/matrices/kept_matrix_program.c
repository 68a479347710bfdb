// SPDX-License-Identifier: Apache-2.0
// Makes products that read a matrix which sundog fetched for an earlier
// product, in every order of programs; some steps write the matrix in between.
//
// usage: kept_matrix_program RANK SIZE STEPS...
//
// The tensors are this rank's pieces of tokens and hidden units. Each word is
// letters in their order:
//   F forward, h = W x           D gradient of h, V' dy
//   W gradient of W, dh x'       d gradient of V, dy h'
//   G forward with other weights
//   e like W, but added to the old values
//   u, U  copies other values into x, dy; sundog sees it
//   k, K  the same, but sundog does not see it
//   o  copies other values into x on rank 0 only
//   s  the following calls use another stream
//   r  frees x, and allocates it again with values that sundog does not see
//   a  y = x x'; both factors have one address
// Each result must be that of the current values. If a call fails, the program
// ends with status 3; if a result is wrong, with status 1.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { TOKENS = 20, INPUTS = 5, HIDDEN = 13, OUTPUTS = 4, OTHER = 8 };
enum { RANKS_MAX = 8 };

static int rank, size;
static cublasHandle_t blas;
static cudaStream_t other;

// A matrix stored by columns; this rank has some of its rows or columns.
typedef struct matrix {
  int which, rows, columns; // extents of the whole
  int row, column;          // where this rank's part begins
  int rows_here, columns_here;
  float *at;
  int salt[RANKS_MAX]; // values of each rank's part
} matrix_t;

// The first row or column of rank r. The first ranks have one more than others.
static int first_of(int extent, int r) {
  int more = extent % size;
  return extent / size * r + (r < more ? r : more);
}

static int owner_of(int extent, int i) {
  int r = 0;
  while (first_of(extent, r + 1) <= i)
    r++;
  return r;
}

// Integers, so that the order of additions does not matter.
static float number(const matrix_t *m, int i, int j) {
  int r = m->columns == TOKENS && m->columns_here < TOKENS ? owner_of(TOKENS, j)
                                                           : 0;
  int salt = m->salt[r];
  return (float)((m->which * 7 + i * 13 + j * 29 + i * j + salt * (3 + i)) % 7 -
                 3);
}

static size_t bytes_of(const matrix_t *m) {
  return (size_t)m->rows_here * (size_t)m->columns_here * sizeof(float);
}

static float *values(const matrix_t *m) {
  float *host = malloc(bytes_of(m) + 1);
  for (int j = 0; j < m->columns_here; j++)
    for (int i = 0; i < m->rows_here; i++)
      host[j * m->rows_here + i] = number(m, m->row + i, m->column + j);
  return host;
}

static void upload(const matrix_t *m, int unseen) {
  static void *driver;
  static int (*copy)(unsigned long long, const void *, size_t);
  if (!driver && (driver = dlopen("libcuda.so.1", RTLD_NOW)))
    *(void **)&copy = dlsym(driver, "cuMemcpyHtoD_v2");
  float *host = values(m);
  CHECK(cudaDeviceSynchronize());
  if (unseen)
    CHECK(!copy || copy((uintptr_t)m->at, host, bytes_of(m)));
  else
    CHECK(cudaMemcpy(m->at, host, bytes_of(m), cudaMemcpyHostToDevice));
  free(host);
}

static matrix_t make(int which, int rows, int columns, int cut) {
  matrix_t m = {.which = which,
                .rows = rows,
                .columns = columns,
                .rows_here = rows,
                .columns_here = columns};
  if (cut == 0) {
    m.row = first_of(rows, rank);
    m.rows_here = first_of(rows, rank + 1) - m.row;
  } else {
    m.column = first_of(columns, rank);
    m.columns_here = first_of(columns, rank + 1) - m.column;
  }
  CHECK(cudaMalloc((void **)&m.at, bytes_of(&m)));
  upload(&m, 0);
  return m;
}

static float element(const matrix_t *m, int turned, int i, int j) {
  return turned ? number(m, j, i) : number(m, i, j);
}

// Compares this rank's part of c with op(a) op(b) + `times` its old values.
static void compare(int ta, const matrix_t *a, int tb, const matrix_t *b,
                    const matrix_t *c, int terms, int times, const char *step) {
  float *is = malloc(bytes_of(c) + 1);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(is, c->at, bytes_of(c), cudaMemcpyDeviceToHost));
  for (int j = 0; j < c->columns_here; j++)
    for (int i = 0; i < c->rows_here; i++) {
      float sum = 0, found = is[j * c->rows_here + i];
      for (int k = 0; k < terms; k++)
        sum += element(a, ta, c->row + i, k) * element(b, tb, k, c->column + j);
      sum += (float)times * number(c, c->row + i, c->column + j);
      if (sum != found) {
        fprintf(stderr, "kept_matrix_program: %s: %d,%d is %g, not %g\n", step,
                c->row + i, c->column + j, (double)found, (double)sum);
        exit(1);
      }
    }
  free(is);
}

// c = op(a) op(b) + beta c. `terms`: the whole K; `n`: as the call states it.
static void multiply(int ta, const matrix_t *a, int tb, const matrix_t *b,
                     const matrix_t *c, int n, int terms, int beta,
                     const char *step) {
  const float one = 1, old = (float)beta;
  upload(c, 0);
  int status = (int)cublasSgemm(blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                                tb ? CUBLAS_OP_T : CUBLAS_OP_N, c->rows_here, n,
                                terms, &one, a->at, a->rows_here, b->at,
                                b->rows_here, &old, c->at, c->rows_here);
  if (status)
    exit(3);
  compare(ta, a, tb, b, c, terms, beta, step);
}

static void salt(matrix_t *m, int only, int unseen) {
  for (int r = 0; r < size; r++)
    m->salt[r] += only < 0 || only == r;
  if (only < 0 || only == rank)
    upload(m, unseen);
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  rank = atoi(argv[1]);
  size = atoi(argv[2]);
  CHECK(cublasCreate(&blas));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  matrix_t x = make(1, INPUTS, TOKENS, 1), dy = make(2, OUTPUTS, TOKENS, 1);
  matrix_t w = make(3, HIDDEN, INPUTS, 0), v = make(4, OUTPUTS, HIDDEN, 1);
  matrix_t more = make(5, OTHER, INPUTS, 0), h = make(6, HIDDEN, TOKENS, 0);
  matrix_t dh = make(7, HIDDEN, TOKENS, 0), dw = make(8, HIDDEN, INPUTS, 0);
  matrix_t dv = make(9, OUTPUTS, HIDDEN, 1), g = make(10, OTHER, TOKENS, 0);
  matrix_t to = make(11, HIDDEN, TOKENS, 0), gram = make(12, INPUTS, INPUTS, 0);
  for (int i = 3; i < argc; i++) {
    for (const char *step = argv[i]; *step; step++)
      switch (*step) {
      case 'F':
        multiply(0, &w, 0, &x, &to, TOKENS, INPUTS, 0, step);
        break;
      case 'G':
        multiply(0, &more, 0, &x, &g, TOKENS, INPUTS, 0, step);
        break;
      case 'W':
      case 'e':
        multiply(0, &dh, 1, &x, &dw, INPUTS, TOKENS, *step == 'e', argv[i]);
        break;
      case 'D':
        multiply(1, &v, 0, &dy, &to, TOKENS, OUTPUTS, 0, argv[i]);
        break;
      case 'd':
        multiply(0, &dy, 1, &h, &dv, dv.columns_here, TOKENS, 0, argv[i]);
        break;
      case 'a':
        multiply(0, &x, 1, &x, &gram, INPUTS, TOKENS, 0, step);
        break;
      case 's':
        CHECK(cudaDeviceSynchronize());
        CHECK(cublasSetStream(blas, other));
        break;
      case 'r':
        CHECK(cudaFree(x.at));
        CHECK(cudaMalloc((void **)&x.at, bytes_of(&x)));
        salt(&x, -1, 1);
        break;
      case 'o':
        salt(&x, 0, 0);
        break;
      default:
        salt(*step == 'U' || *step == 'K' ? &dy : &x, -1,
             *step == 'k' || *step == 'K');
      }
    CHECK(cublasSetStream(blas, NULL));
    CHECK(cudaDeviceSynchronize());
  }
  return 0;
}
