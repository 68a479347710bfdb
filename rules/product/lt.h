/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the vendor's calls of a product's plan, and the calls of
 * cuBLASLt. Inside rules/ only. All functions return cublasStatus_t. */
#ifndef SDG_RULES_PRODUCT_LT_H
#define SDG_RULES_PRODUCT_LT_H

#include "rules/product/rule.h"
#include "src/exchange/exec.h"

/* The part of a matrix that a sub-call uses, in a slab. */
typedef struct sdg_part_matrix {
  void *at;
  int64_t ld, between; /* elements; between is 0 if the whole batch uses one
                        * matrix */
} sdg_part_matrix_t;
sdg_part_matrix_t sdg_part_matrix(const sdg_exec_t *exec,
                                  const sdg_matrix_t *matrix, int slab,
                                  const sdg_box_t *product);

/* A number in host memory, of a cudaDataType_t. Half holds only 0 and 1. */
typedef union sdg_scalar_value {
  float single;
  double wide;
  uint16_t half;
  int32_t integer;
} sdg_scalar_value_t;
sdg_scalar_value_t sdg_scalar_value(double value, int type);

/* alpha and beta of a sub-call, which may point to `own`. */
typedef struct sdg_factors {
  int compute, scale;
  const void *alpha, *beta;
  sdg_scalar_value_t own[2];
} sdg_factors_t;
void sdg_factors_of(const sdg_product_t *p, const sdg_multiply_t *multiply,
                    const sdg_gemm_t *gemm, sdg_factors_t *out);

int sdg_product_lt_multiply(const sdg_product_t *p,
                            const sdg_multiply_t *multiply,
                            const sdg_call_t *call, const sdg_exec_t *exec);
/* Also adds matrices of different types. For that, cublas' handle is also a
 * handle of cuBLASLt. */
int sdg_product_lt_add(const sdg_product_t *p, const sdg_addition_t *add,
                       const sdg_call_t *call, const sdg_exec_t *exec);

#endif
