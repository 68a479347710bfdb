/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices of all four types, on the device and in double. */
#ifndef SDG_TESTS_HOST_MATRIX_H
#define SDG_TESTS_HOST_MATRIX_H

#include <complex.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "tests/calls.h"
#include "tests/unit/harness.h"

enum { LIMIT = 9, LD_MAX = 14, CELLS = LD_MAX * LD_MAX, ROUNDS = 120 };

typedef double _Complex number_t;

/* A matrix that the device has, too: `at` in device memory. */
typedef struct matrix {
  cudaDataType type;
  int ld;
  number_t value[CELLS];
  void *at;
} matrix_t;

static cublasHandle_t handle;
static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F,
                                     CUDA_C_64F};

static inline void setup(void) {
  srand(3);
  OK(cublasCreate(&handle));
}

static inline void teardown(void) {
  OK(cublasDestroy(handle));
}

static inline int below(int limit) {
  return rand() % limit;
}

static inline bool is_complex(cudaDataType type) {
  return type == CUDA_C_32F || type == CUDA_C_64F;
}

static inline bool is_single(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_C_32F;
}

static inline number_t number_random(cudaDataType type) {
  double re = (below(65) - 32) / 16.0, im = (below(65) - 32) / 16.0;
  return is_complex(type) ? CMPLX(re, im) : re;
}

static inline void number_put(void *at, cudaDataType type, int i,
                              number_t value) {
  if (type == CUDA_R_32F)
    ((float *)at)[i] = (float)creal(value);
  else if (type == CUDA_R_64F)
    ((double *)at)[i] = creal(value);
  else if (type == CUDA_C_32F)
    ((float _Complex *)at)[i] = (float _Complex)value;
  else
    ((number_t *)at)[i] = value;
}

static inline number_t number_get(const void *at, cudaDataType type, int i) {
  if (type == CUDA_R_32F)
    return ((const float *)at)[i];
  if (type == CUDA_R_64F)
    return ((const double *)at)[i];
  if (type == CUDA_C_32F)
    return ((const float _Complex *)at)[i];
  return ((const number_t *)at)[i];
}

static inline void matrix_upload(matrix_t *m) {
  number_t bytes[CELLS];
  for (int i = 0; i < CELLS; i++)
    number_put(bytes, m->type, i, m->value[i]);
  OK(cudaMemcpy(m->at, bytes, sizeof bytes, cudaMemcpyHostToDevice));
}

static inline matrix_t matrix_random(cudaDataType type, int rows) {
  matrix_t m = {.type = type, .ld = rows + below(LD_MAX - rows)};
  for (int i = 0; i < CELLS; i++)
    m.value[i] = number_random(type);
  OK(cudaMalloc(&m.at, CELLS * sizeof(number_t)));
  matrix_upload(&m);
  return m;
}

/* Copies it from the device. */
static inline void matrix_check(const matrix_t *m, const number_t *expected) {
  number_t bytes[CELLS];
  double room = is_single(m->type) ? 4e-5 : 1e-11;
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(bytes, m->at, sizeof bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < CELLS; i++) {
    number_t found = number_get(bytes, m->type, i);
    ck_assert_double_le(cabs(found - expected[i]),
                        room * (1 + cabs(expected[i])));
  }
}

static inline void matrix_free(matrix_t *m) {
  OK(cudaFree(m->at));
}

static inline number_t op_at(const matrix_t *m, cublasOperation_t op, int i,
                             int j) {
  number_t value =
      op == CUBLAS_OP_N ? m->value[j * m->ld + i] : m->value[i * m->ld + j];
  return op == CUBLAS_OP_C ? conj(value) : value;
}

static inline cublasOperation_t op_random(void) {
  return (cublasOperation_t)below(3);
}

/* Returns a number in host memory, in the type of the function. */
typedef struct scalar {
  _Alignas(16) char bytes[16];
  number_t value;
} scalar_t;

static inline scalar_t scalar_random(cudaDataType type) {
  scalar_t s = {.value = number_random(type)};
  if (below(5) == 0)
    s.value = below(2);
  number_put(s.bytes, type, 0, s.value);
  return s;
}

/* The functions of the four types, as one function of untyped pointers. */
#define FOUR(name, version, suffix, kind)                                      \
  ((kind)(type == CUDA_R_32F ? (void (*)(void))cublasS##name##version##suffix  \
          : type == CUDA_R_64F                                                 \
              ? (void (*)(void))cublasD##name##version##suffix                 \
          : type == CUDA_C_32F                                                 \
              ? (void (*)(void))cublasC##name##version##suffix                 \
              : (void (*)(void))cublasZ##name##version##suffix))

/* Full matrices, column by column, of n rows. */
typedef struct full {
  int rows;
  number_t value[CELLS];
} full_t;

static inline number_t *cell(full_t *f, int i, int j) {
  return &f->value[j * f->rows + i];
}

static inline full_t full_product(full_t *a, full_t *b, int m, int n, int k) {
  full_t c = {.rows = m};
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      number_t sum = 0;
      for (int p = 0; p < k; p++)
        sum += *cell(a, i, p) * *cell(b, p, j);
      *cell(&c, i, j) = sum;
    }
  return c;
}

static inline full_t full_op(const matrix_t *m, cublasOperation_t op, int rows,
                             int columns) {
  full_t f = {.rows = rows};
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++)
      *cell(&f, i, j) = op_at(m, op, i, j);
  return f;
}

/* op of the triangle that is stored. */
static inline full_t full_triangle(const matrix_t *m, bool lower, bool unit,
                                   cublasOperation_t op, int n) {
  full_t f = {.rows = n};
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      bool stored = lower ? i >= j : i <= j;
      number_t value = i == j && unit ? 1
                       : stored       ? m->value[j * m->ld + i]
                                      : 0;
      if (op == CUBLAS_OP_C)
        value = conj(value);
      if (op == CUBLAS_OP_N)
        *cell(&f, i, j) = value;
      else
        *cell(&f, j, i) = value;
    }
  return f;
}

static inline full_t full_half(const matrix_t *m, bool lower, bool hermitian,
                               int n) {
  full_t f = {.rows = n};
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      if (lower ? i < j : i > j)
        continue;
      number_t value = m->value[j * m->ld + i];
      *cell(&f, j, i) = hermitian ? conj(value) : value;
      *cell(&f, i, j) = hermitian && i == j ? creal(value) : value;
    }
  return f;
}

#endif
