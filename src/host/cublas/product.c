// SPDX-License-Identifier: Apache-2.0
// Computes matrix products: oneDNN where the sums are float, a loop in double
// where they are wider.
#include "src/host/cublas/blas.h"

#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>

static void *matrix_of(const host_matrix_t *matrix, int64_t index) {
  return (char *)matrix->at +
         (size_t)(index * matrix->stride) * host_type_bytes(matrix->type);
}

/* A dense float copy of rows x columns. */
static float *to_float(const void *at, cudaDataType type, int64_t ld,
                       int64_t rows, int64_t columns) {
  float *dense = malloc((size_t)(rows * columns) * sizeof *dense);
  for (int64_t j = 0; dense && j < columns; j++)
    for (int64_t i = 0; i < rows; i++)
      dense[j * rows + i] = (float)host_element_load(at, type, j * ld + i);
  return dense;
}

/* An operand that oneDNN can read: the matrix itself if it is float. */
typedef struct operand {
  const float *at;
  int64_t ld;
  float *copy; /* to be freed */
} operand_t;

static bool operand_open(const host_matrix_t *matrix, int64_t index,
                         int64_t rows, int64_t columns,
                         operand_t *out_operand) {
  void *at = matrix_of(matrix, index);
  if (matrix->type == CUDA_R_32F) {
    *out_operand = (operand_t){at, matrix->ld, NULL};
    return true;
  }
  float *copy = to_float(at, matrix->type, matrix->ld, rows, columns);
  *out_operand = (operand_t){copy, rows, copy};
  return copy != NULL;
}

/* c := alpha op(a) op(b) + beta c, all float. oneDNN's matrices are row-major:
 * it is told the transposed product, b before a. */
static bool multiply_float(const host_gemm_t *gemm, const operand_t *a,
                           const operand_t *b, float alpha, float beta,
                           float *c, int64_t ldc) {
  /* Ranks share the cores: one thread, unless the user says how many. */
  int before = omp_get_max_threads();
  if (!getenv("OMP_NUM_THREADS"))
    omp_set_num_threads(1);
  dnnl_status_t status = dnnl_sgemm(
      gemm->transpose_b ? 'T' : 'N', gemm->transpose_a ? 'T' : 'N', gemm->n,
      gemm->m, gemm->k, alpha, b->at, b->ld, a->at, a->ld, beta, c, ldc);
  omp_set_num_threads(before);
  return status == dnnl_success;
}

static bool product_float(const host_gemm_t *gemm, int64_t index, double alpha,
                          double beta) {
  operand_t a = {0}, b = {0};
  const host_matrix_t *c = &gemm->c;
  void *target = matrix_of(c, index);
  int64_t m = gemm->m, n = gemm->n, k = gemm->k;
  bool done = operand_open(&gemm->a, index, gemm->transpose_a ? k : m,
                           gemm->transpose_a ? m : k, &a) &&
              operand_open(&gemm->b, index, gemm->transpose_b ? n : k,
                           gemm->transpose_b ? k : n, &b);
  if (done && c->type == CUDA_R_32F) {
    done =
        multiply_float(gemm, &a, &b, (float)alpha, (float)beta, target, c->ld);
  } else if (done) {
    float *sum = malloc((size_t)(m * n) * sizeof *sum);
    done = sum && multiply_float(gemm, &a, &b, 1, 0, sum, m);
    for (int64_t j = 0; done && j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        double old = beta == 0 ? 0
                               : beta * host_element_load(target, c->type,
                                                          j * c->ld + i);
        host_element_store(target, c->type, j * c->ld + i,
                           alpha * (double)sum[j * m + i] + old);
      }
    free(sum);
  }
  free(a.copy);
  free(b.copy);
  return done;
}

static void product_double(const host_gemm_t *gemm, int64_t index, double alpha,
                           double beta) {
  const host_matrix_t *a = &gemm->a, *b = &gemm->b, *c = &gemm->c;
  const void *from_a = matrix_of(a, index), *from_b = matrix_of(b, index);
  void *target = matrix_of(c, index);
  for (int64_t j = 0; j < gemm->n; j++)
    for (int64_t i = 0; i < gemm->m; i++) {
      double sum = 0;
      for (int64_t p = 0; p < gemm->k; p++)
        sum += host_element_load(from_a, a->type,
                                 gemm->transpose_a ? i * a->ld + p
                                                   : p * a->ld + i) *
               host_element_load(from_b, b->type,
                                 gemm->transpose_b ? p * b->ld + j
                                                   : j * b->ld + p);
      double old =
          beta == 0 ? 0
                    : beta * host_element_load(target, c->type, j * c->ld + i);
      host_element_store(target, c->type, j * c->ld + i, alpha * sum + old);
    }
}

static bool is_narrow(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

cudaError_t host_gemm_run(void *argument) {
  const host_gemm_t *gemm = argument;
  double alpha = host_scalar_get(&gemm->alpha);
  double beta = host_scalar_get(&gemm->beta);
  bool in_float = is_narrow(gemm->a.type) && is_narrow(gemm->b.type) &&
                  gemm->k > 0 && alpha != 0;
  host_gemm_t scaling = *gemm; /* alpha 0: a and b are not read */
  if (alpha == 0)
    scaling.k = 0;
  for (int64_t i = 0; i < gemm->batch; i++) {
    if (!in_float)
      product_double(&scaling, i, alpha, beta);
    else if (!product_float(gemm, i, alpha, beta))
      return cudaErrorLaunchFailure;
  }
  return cudaSuccess;
}
