/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of cuBLASLt. They may lie in the program's own memory, with the
 * sizes that the header defines. */
#ifndef SDG_SRC_HOST_CUBLAS_LT_H
#define SDG_SRC_HOST_CUBLAS_LT_H

#include <cublasLt.h>

#include "src/host/cublas/blas.h"

typedef struct host_layout {
  int32_t type, order;
  uint64_t rows, columns;
  int64_t ld, stride, plane;
  int32_t batch, batch_mode;
} host_layout_t;

typedef struct host_matmul {
  int32_t compute, scale, pointer_mode, op_a, op_b, op_c, fill;
  uint32_t epilogue;
  const void *bias;
  int64_t bias_stride;
  void *aux;
  int64_t aux_ld, aux_stride, alpha_stride;
  int32_t sm_count, aux_type, bias_type, unnamed;
  const void
      *scale_at[5]; /* of A, B, C, D, and the address for the maximum of D */
  const void *aux_scale, *aux_maximum, *out_scale, *emulation;
  int32_t scale_mode[5], out_scale_mode;
  int8_t fast;
} host_matmul_t;

typedef struct host_transform {
  int32_t scale, pointer_mode, op_a, op_b;
} host_transform_t;

typedef struct host_preference {
  uint32_t mode, reductions, alignment[4];
  float waves;
  uint64_t workspace_bytes, implementations;
} host_preference_t;

_Static_assert(sizeof(host_layout_t) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
                   sizeof(host_matmul_t) <=
                       sizeof(cublasLtMatmulDescOpaque_t) &&
                   sizeof(host_transform_t) <=
                       sizeof(cublasLtMatrixTransformDescOpaque_t) &&
                   sizeof(host_preference_t) <=
                       sizeof(cublasLtMatmulPreferenceOpaque_t),
               "fits where programs keep it");

#pragma GCC visibility push(hidden)

/* A number or, if `vector`, one number per row, in host or device memory. */
typedef struct host_factor {
  host_scalar_t scalar;
  bool vector;
} host_factor_t;

/* False if the address is NULL or not the program's. */
bool host_factor_read(const void *at, cudaDataType type, bool device,
                      bool vector, int64_t rows, host_factor_t *out_factor);
host_number_t host_factor_get(const host_factor_t *factor, int64_t row);

/* D = epilogue(alpha op(A) op(B) + beta C): the matrices, their addresses and
 * the epilogue. */
typedef struct host_ltproduct {
  host_matmul_t matmul;
  host_layout_t a, b, c, d;
  const void *at_a, *at_b, *at_c;
  void *at_d, *bias, *aux; /* bias: read, or written as a gradient */
  host_factor_t alpha, beta;
} host_ltproduct_t;

/* Checks that the epilogue is known and its parameters fit; sets types that the
 * program left unset. */
cublasStatus_t host_epilogue_check(host_ltproduct_t *p);
/* Finds the memory of bias and aux; false if it is not the program's. */
bool host_epilogue_resolve(host_ltproduct_t *p);
/* The result of the epilogue for one element. */
host_number_t host_epilogue_follow(const host_ltproduct_t *p, int64_t batch,
                                   int64_t i, int64_t j, host_number_t value);
/* _sums: whether the epilogue needs the sums of D's rows. _finish: completes
 * the epilogue after one matrix of the batch. */
bool host_epilogue_sums(const host_ltproduct_t *p);
void host_epilogue_finish(const host_ltproduct_t *p, int64_t batch,
                          const host_number_t *sums);

int64_t host_span_bytes(cudaDataType type, int64_t count);

/* Reads one element of a matrix whose rows or columns are contiguous. */
host_number_t host_layout_load(const host_layout_t *layout, const void *at,
                               int64_t batch, int64_t i, int64_t j);
void host_layout_store(const host_layout_t *layout, void *at, int64_t batch,
                       int64_t i, int64_t j, host_number_t value);
/* A readable address of the whole matrix; NULL if it is not the program's. */
void *host_layout_resolve(const host_layout_t *layout, const void *at);
/* CUBLAS_STATUS_NOT_SUPPORTED for orders, types and batches that this library
 * does not compute, _INVALID_VALUE for a leading dimension that is too small.
 */
cublasStatus_t host_layout_check(const host_layout_t *layout);

#pragma GCC visibility pop

#endif
