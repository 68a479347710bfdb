// SPDX-License-Identifier: Apache-2.0
// Computes matrix products: with oneDNN if the sums are float, with a loop in
// double if they are wider.
#include "src/host/cublas/blas.h"

#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>

// A dense float copy of rows x columns.
static float *to_float(const void *at, cudaDataType type, int64_t ld,
                       int64_t rows, int64_t columns) {
  float *dense = malloc((size_t)(rows * columns) * sizeof *dense);
  for (int64_t j = 0; dense && j < columns; j++)
    for (int64_t i = 0; i < rows; i++)
      dense[j * rows + i] = (float)host_element_load(at, type, j * ld + i);
  return dense;
}

// An operand that oneDNN can read: the matrix itself if it is float.
typedef struct operand {
  const float *at;
  int64_t ld;
  float *copy; // to be freed
} operand_t;

static bool operand_open(const host_matrix_t *matrix, const void *at,
                         int64_t rows, int64_t columns,
                         operand_t *out_operand) {
  if (matrix->type == CUDA_R_32F) {
    *out_operand = (operand_t){at, matrix->ld, NULL};
    return true;
  }
  float *copy = to_float(at, matrix->type, matrix->ld, rows, columns);
  *out_operand = (operand_t){copy, rows, copy};
  return copy != NULL;
}

// c := alpha op(a) op(b) + beta c, all float. oneDNN's matrices are row-major,
// so it computes the transposed product, with b before a.
static bool multiply_float(const host_gemm_t *gemm, const operand_t *a,
                           const operand_t *b, float alpha, float beta,
                           float *c, int64_t ldc) {
  // Ranks share the cores, so use one thread unless the user sets the number.
  int before = omp_get_max_threads();
  if (!getenv("OMP_NUM_THREADS"))
    omp_set_num_threads(1);
  dnnl_status_t status =
      dnnl_sgemm(host_op_turns(gemm->op_b) ? 'T' : 'N',
                 host_op_turns(gemm->op_a) ? 'T' : 'N', gemm->n, gemm->m,
                 gemm->k, alpha, b->at, b->ld, a->at, a->ld, beta, c, ldc);
  omp_set_num_threads(before);
  return status == dnnl_success;
}

// The matrices of one product of the batch.
typedef struct place {
  const void *a, *b;
  void *c;
} place_t;

static bool product_float(const host_gemm_t *gemm, const place_t *place,
                          double alpha, double beta) {
  operand_t a = {0}, b = {0};
  const host_matrix_t *c = &gemm->c;
  int64_t m = gemm->m, n = gemm->n, k = gemm->k;
  bool done =
      operand_open(&gemm->a, place->a, host_op_turns(gemm->op_a) ? k : m,
                   host_op_turns(gemm->op_a) ? m : k, &a) &&
      operand_open(&gemm->b, place->b, host_op_turns(gemm->op_b) ? n : k,
                   host_op_turns(gemm->op_b) ? k : n, &b);
  if (done && c->type == CUDA_R_32F) {
    done = multiply_float(gemm, &a, &b, (float)alpha, (float)beta, place->c,
                          c->ld);
  } else if (done) {
    float *sum = malloc((size_t)(m * n) * sizeof *sum);
    done = sum && multiply_float(gemm, &a, &b, 1, 0, sum, m);
    for (int64_t j = 0; done && j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        double old = beta == 0 ? 0
                               : beta * host_element_load(place->c, c->type,
                                                          j * c->ld + i);
        host_element_store(place->c, c->type, j * c->ld + i,
                           alpha * (double)sum[j * m + i] + old);
      }
    free(sum);
  }
  free(a.copy);
  free(b.copy);
  return done;
}

// Element (i, j) of op(matrix).
static host_number_t element(const host_matrix_t *matrix, const void *at,
                             cublasOperation_t op, int64_t i, int64_t j) {
  host_number_t value = host_number_load(
      at, matrix->type,
      host_op_turns(op) ? i * matrix->ld + j : j * matrix->ld + i);
  return op == CUBLAS_OP_C || op == CUBLAS_OP_CONJG ? conj(value) : value;
}

// sum += a * b for the elements of a column. `im` is NULL if there are no
// imaginary parts.
static void accumulate(int64_t m, const double *re, const double *im,
                       host_number_t b, double *sum_re, double *sum_im) {
  double b_re = creal(b), b_im = cimag(b);
  for (int64_t i = 0; i < m; i++)
    sum_re[i] += re[i] * b_re;
  for (int64_t i = 0; im && i < m; i++) {
    sum_re[i] -= im[i] * b_im;
    sum_im[i] += re[i] * b_im + im[i] * b_re;
  }
}

// Sums in double; op(a) is unpacked once, column by column.
static bool product_wide(const host_gemm_t *gemm, const place_t *place,
                         host_number_t alpha, host_number_t beta) {
  int64_t m = gemm->m, n = gemm->n, k = alpha == 0 ? 0 : gemm->k;
  bool is_complex = host_type_is_complex(gemm->c.type);
  double *re =
      malloc((size_t)(m * (k + 1) * (is_complex ? 2 : 1)) * sizeof *re);
  double *im = re && is_complex ? re + m * (k + 1) : NULL;
  if (!re)
    return false;
  double *sum_re = re + m * k, *sum_im = im ? im + m * k : NULL;
  for (int64_t p = 0; p < k; p++)
    for (int64_t i = 0; i < m; i++) {
      host_number_t value = element(&gemm->a, place->a, gemm->op_a, i, p);
      re[p * m + i] = creal(value);
      if (im)
        im[p * m + i] = cimag(value);
    }
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < m; i++)
      sum_re[i] = 0;
    for (int64_t i = 0; im && i < m; i++)
      sum_im[i] = 0;
    for (int64_t p = 0; p < k; p++)
      accumulate(m, re + p * m, im ? im + p * m : NULL,
                 element(&gemm->b, place->b, gemm->op_b, p, j), sum_re, sum_im);
    for (int64_t i = 0; i < m; i++) {
      int64_t at = j * gemm->c.ld + i;
      host_number_t sum = CMPLX(sum_re[i], im ? sum_im[i] : 0);
      host_number_t old =
          beta == 0 ? 0 : beta * host_number_load(place->c, gemm->c.type, at);
      host_number_store(place->c, gemm->c.type, at,
                        (k ? alpha * sum : 0) + old);
    }
  }
  free(re);
  return true;
}

static bool is_narrow(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

static bool place_find(const host_gemm_t *gemm, int64_t index, bool reads,
                       place_t *out_place) {
  int64_t m = gemm->m, n = gemm->n, k = gemm->k;
  *out_place = (place_t){.c = host_matrix_at(&gemm->c, index, m, n)};
  if (reads && k > 0) {
    out_place->a =
        host_matrix_at(&gemm->a, index, host_op_turns(gemm->op_a) ? k : m,
                       host_op_turns(gemm->op_a) ? m : k);
    out_place->b =
        host_matrix_at(&gemm->b, index, host_op_turns(gemm->op_b) ? n : k,
                       host_op_turns(gemm->op_b) ? k : n);
  }
  return out_place->c && (!reads || k == 0 || (out_place->a && out_place->b));
}

cudaError_t host_gemm_run(void *argument) {
  const host_gemm_t *gemm = argument;
  host_number_t alpha = host_scalar_get(&gemm->alpha);
  host_number_t beta = host_scalar_get(&gemm->beta);
  bool in_float = is_narrow(gemm->a.type) && is_narrow(gemm->b.type) &&
                  gemm->k > 0 && alpha != 0;
  for (int64_t i = 0; i < gemm->batch; i++) {
    place_t place;
    // if alpha is 0, a and b are not read
    if (!place_find(gemm, i, alpha != 0, &place))
      return cudaErrorIllegalAddress;
    if (!(in_float ? product_float(gemm, &place, creal(alpha), creal(beta))
                   : product_wide(gemm, &place, alpha, beta)))
      return cudaErrorLaunchFailure;
  }
  return cudaSuccess;
}
