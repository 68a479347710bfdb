/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the vendor's calls of a product's plan, and the calls of
 * cuBLASLt. Inside rules/ only. All functions return cublasStatus_t. */
#ifndef SDG_RULES_PRODUCT_LT_H
#define SDG_RULES_PRODUCT_LT_H

#include "rules/product/rule.h"
#include "src/exchange/exec.h"

/* The part of a matrix that a sub-call uses, in a slab. */
typedef struct sdg_product_lt_matrix {
  void *at;
  int64_t ld, between; /* elements; between is 0 if the whole batch uses one
                        * matrix */
} sdg_product_lt_matrix_t;
sdg_product_lt_matrix_t sdg_product_lt_matrix(const sdg_exec_t *exec,
                                              const sdg_matrix_t *matrix,
                                              int slab,
                                              const sdg_box_t *product);

/* A number in host memory, of a cudaDataType_t. Half holds only 0 and 1. */
typedef union sdg_product_lt_scalar {
  float single;
  double wide;
  uint16_t half;
  int32_t integer;
} sdg_product_lt_scalar_t;
sdg_product_lt_scalar_t sdg_product_lt_scalar(double value, int type);

/* Types, alpha and beta of a sub-call. alpha and beta may point into `own`, so
 * the struct must not be copied. */
typedef struct sdg_product_lt_factors {
  int compute, scale;
  const void *alpha, *beta;
  sdg_product_lt_scalar_t own[2];
} sdg_product_lt_factors_t;
void sdg_product_lt_factors(const sdg_product_t *p,
                            const sdg_product_multiply_args_t *multiply,
                            const sdg_gemm_t *gemm,
                            sdg_product_lt_factors_t *out);

/* Makes one product with its epilogue, on the stream of `exec`. */
int sdg_product_lt_multiply(const sdg_product_t *p,
                            const sdg_product_multiply_args_t *multiply,
                            const sdg_call_t *call, const sdg_exec_t *exec);
/* Makes an addition, also of matrices with different types, which geam of
 * cuBLAS cannot add. A handle of cuBLAS is also a handle of cuBLASLt. */
int sdg_product_lt_add(const sdg_product_t *p,
                       const sdg_product_addition_t *add,
                       const sdg_call_t *call, const sdg_exec_t *exec);

#endif
