/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on matrices with a structure, element by element. */
#ifndef SDG_SRC_HOST_CUBLAS_MATRIX_H
#define SDG_SRC_HOST_CUBLAS_MATRIX_H

#include "src/host/cublas/blas.h"

typedef enum host_matrix_kind {
  HOST_GEAM, /* C := alpha op(A) + beta op(B) */
  HOST_DGMM, /* C := A diag(B), B a row; or diag(B) A */
  HOST_RANK, /* C := alpha op(A) op(A)' + beta C, half of it; with `two` also
                op(B): alpha op(A) op(B)' + alpha' op(B) op(A)' + beta C */
  HOST_SYMM, /* C := alpha A B + beta C, half of A stored; or B A */
  HOST_TRMM, /* C := alpha op(A) B, A a triangle; or B op(A) */
  HOST_TRSM, /* B := alpha op(A)^-1 B; or B op(A)^-1; A, C as in trmm */
  HOST_GER,  /* C := alpha a' b + C, a and b rows; b conjugated */
} host_matrix_kind_t;

/* A quote above is the transpose, the conjugate one where `conjugate`. */
typedef struct host_matrix_job {
  host_matrix_kind_t kind;
  bool right;      /* A stands on the right */
  bool lower;      /* which half of A, or of C, is stored */
  bool unit;       /* ones on A's diagonal, which is not read */
  bool conjugate;  /* Hermitian instead of symmetric */
  bool transposed; /* HOST_SYMM: of A, which matters if it is Hermitian */
  bool two;
  cublasOperation_t op_a, op_b;
  int64_t m, n, k; /* of C, and of op(A)'s columns in HOST_RANK */
  int64_t batch;
  host_scalar_t alpha, beta;
  host_matrix_t a, b, c;
} host_matrix_job_t;

#pragma GCC visibility push(hidden)

/* Carries out the job; sizes are checked, addresses readable. */
cudaError_t host_matrix_run(void *job);

/* Rows and columns of an operand as it is stored. */
void host_matrix_shape_a(const host_matrix_job_t *job, int64_t *out_rows,
                         int64_t *out_columns);
void host_matrix_shape_b(const host_matrix_job_t *job, int64_t *out_rows,
                         int64_t *out_columns);

#pragma GCC visibility pop

#endif
