// SPDX-License-Identifier: Apache-2.0
// cublasLtMatmul: products with an epilogue. There is one algorithm.
#include "src/host/cublas/lt.h"

#include <stdlib.h>
#include <string.h>

static bool is_zero(const host_factor_t *factor) {
  return !factor->vector && host_scalar_get(&factor->scalar) == 0;
}

// A matrix in column order, as the product expects it: a matrix in row order is
// the transpose of one in column order.
static host_matrix_t columns_of(const host_layout_t *layout, const void *at,
                                int32_t op, cublasOperation_t *out_op) {
  static const cublasOperation_t flipped[] = {
      [CUBLAS_OP_N] = CUBLAS_OP_T,
      [CUBLAS_OP_T] = CUBLAS_OP_N,
      [CUBLAS_OP_C] = CUBLAS_OP_CONJG,
  };
  *out_op =
      layout->order == CUBLASLT_ORDER_ROW ? flipped[op] : (cublasOperation_t)op;
  return (host_matrix_t){.at = (void *)at,
                         .type = (cudaDataType)layout->type,
                         .ld = layout->ld,
                         .stride = layout->batch > 1 ? layout->stride : 0};
}

// The type in which the sums are kept.
static cudaDataType sum_type(const host_ltproduct_t *p) {
  cudaDataType a = (cudaDataType)p->a.type;
  if (host_type_is_complex(a))
    return CUDA_C_64F;
  return a == CUDA_R_64F || a == CUDA_R_8I ? CUDA_R_64F : CUDA_R_32F;
}

static cudaError_t product_run(void *argument) {
  const host_ltproduct_t *p = argument;
  int64_t m = (int64_t)p->d.rows, n = (int64_t)p->d.columns;
  cudaDataType type = sum_type(p);
  host_gemm_t gemm = {
      .m = m,
      .n = n,
      .k = (int64_t)(host_op_turns(p->matmul.op_a) ? p->a.rows : p->a.columns),
      .batch = 1,
      .alpha = {.value = 1},
      .c = {.type = type, .ld = m}};
  gemm.a = columns_of(&p->a, p->at_a, p->matmul.op_a, &gemm.op_a);
  gemm.b = columns_of(&p->b, p->at_b, p->matmul.op_b, &gemm.op_b);
  gemm.c.at = malloc((size_t)(m * n) * host_type_bytes(type));
  cudaError_t error = gemm.c.at ? cudaSuccess : cudaErrorLaunchFailure;
  host_number_t *sums = NULL;
  if (host_epilogue_sums(p)) {
    sums = malloc((size_t)m * sizeof *sums);
    error = sums ? error : cudaErrorLaunchFailure;
  }
  bool keeps = p->at_c && !is_zero(&p->beta);
  for (int64_t batch = 0; error == cudaSuccess && batch < p->d.batch; batch++) {
    host_gemm_t one = gemm;
    one.a.at =
        (char *)gemm.a.at + host_span_bytes(gemm.a.type, batch * gemm.a.stride);
    one.b.at =
        (char *)gemm.b.at + host_span_bytes(gemm.b.type, batch * gemm.b.stride);
    error = host_gemm_run(&one);
    for (int64_t i = 0; sums && i < m; i++)
      sums[i] = 0;
    for (int64_t j = 0; error == cudaSuccess && j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        host_number_t value = host_factor_get(&p->alpha, i) *
                              host_number_load(gemm.c.at, type, j * m + i);
        if (keeps)
          value += host_factor_get(&p->beta, i) *
                   host_layout_load(&p->c, p->at_c, batch, i, j);
        value = host_epilogue_follow(p, batch, i, j, value);
        if (sums)
          sums[i] += value;
        host_layout_store(&p->d, p->at_d, batch, i, j, value);
      }
    if (error == cudaSuccess)
      host_epilogue_finish(p, batch, sums);
  }
  free(sums);
  free(gemm.c.at);
  return error;
}

// Whether these types can be combined: as in GemmEx, but D may have a type of
// its own.
static bool types_fit(const host_ltproduct_t *p) {
  int32_t a = p->a.type, c = p->c.type, d = p->d.type, s = p->matmul.scale;
  if (a != p->b.type || c != d)
    return false;
  switch (a) {
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return (d == a || d == CUDA_R_32F) && (s == CUDA_R_32F || s == CUDA_R_16F);
  case CUDA_R_8I:
    return (d == CUDA_R_32I && s == CUDA_R_32I) ||
           ((d == CUDA_R_8I || d == CUDA_R_32F) && s == CUDA_R_32F);
  case CUDA_R_32F:
  case CUDA_R_64F:
  case CUDA_C_32F:
  case CUDA_C_64F:
    return d == a && s == a;
  default:
    return false;
  }
}

// Whether such a product can be computed; looks at no address.
static cublasStatus_t product_check(host_ltproduct_t *p) {
  host_matmul_t *m = &p->matmul;
  const host_layout_t *layouts[] = {&p->a, &p->b, &p->c, &p->d};
  for (int i = 0; i < 4; i++) {
    cublasStatus_t status = host_layout_check(layouts[i]);
    if (status)
      return status;
    if (layouts[i]->batch != p->d.batch && layouts[i]->batch != 1)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  if ((unsigned)m->op_a > CUBLAS_OP_C || (unsigned)m->op_b > CUBLAS_OP_C ||
      (unsigned)m->pointer_mode >
          CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool ta = m->op_a != CUBLAS_OP_N, tb = m->op_b != CUBLAS_OP_N;
  if ((ta ? p->a.columns : p->a.rows) != p->d.rows ||
      (tb ? p->b.rows : p->b.columns) != p->d.columns ||
      (ta ? p->a.rows : p->a.columns) != (tb ? p->b.columns : p->b.rows) ||
      p->c.rows != p->d.rows || p->c.columns != p->d.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool scaled = m->aux_scale || m->aux_maximum || m->out_scale;
  for (int i = 0; i < 5; i++)
    scaled = scaled || m->scale_at[i];
  if (scaled || m->op_c != CUBLAS_OP_N || m->fill != CUBLAS_FILL_MODE_FULL ||
      !types_fit(p) || p->d.rows == 0 || p->d.columns == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return host_epilogue_check(p);
}

static bool host_ltproduct_take(host_ltproduct_t *p, cublasLtMatmulDesc_t desc,
                                cublasLtMatrixLayout_t a,
                                cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c,
                                cublasLtMatrixLayout_t d) {
  *p = (host_ltproduct_t){0};
  if (!desc || !a || !b || !c || !d)
    return false;
  memcpy(&p->matmul, desc, sizeof p->matmul);
  memcpy(&p->a, a, sizeof p->a);
  memcpy(&p->b, b, sizeof p->b);
  memcpy(&p->c, c, sizeof p->c);
  memcpy(&p->d, d, sizeof p->d);
  return true;
}

static bool factors_read(host_ltproduct_t *p, const void *alpha,
                         const void *beta) {
  int mode = p->matmul.pointer_mode;
  cudaDataType type = (cudaDataType)p->matmul.scale;
  int64_t rows = (int64_t)p->d.rows;
  bool vector = mode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
  if (!host_factor_read(alpha, type, mode == CUBLASLT_POINTER_MODE_DEVICE,
                        vector, rows, &p->alpha))
    return false;
  if (mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO) {
    p->beta = (host_factor_t){.scalar = {.type = type}};
    return true;
  }
  return host_factor_read(beta, type, mode == CUBLASLT_POINTER_MODE_DEVICE,
                          mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR, rows,
                          &p->beta);
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
               const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
               const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
               const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
               cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspaceSizeInBytes,
               cudaStream_t stream) {
  (void)algo, (void)workspace, (void)workspaceSizeInBytes;
  host_ltproduct_t p;
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!host_ltproduct_take(&p, computeDesc, Adesc, Bdesc, Cdesc, Ddesc) ||
      !alpha || !A || !B || !D)
    return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = product_check(&p);
  if (status)
    return status;
  if (!factors_read(&p, alpha, beta))
    return alpha && beta ? CUBLAS_STATUS_EXECUTION_FAILED
                         : CUBLAS_STATUS_INVALID_VALUE;
  p.at_a = host_layout_resolve(&p.a, A);
  p.at_b = host_layout_resolve(&p.b, B);
  p.at_c = C ? host_layout_resolve(&p.c, C) : NULL;
  p.at_d = host_layout_resolve(&p.d, D);
  if (!C && (p.beta.vector || p.beta.scalar.device || !is_zero(&p.beta)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!p.at_a || !p.at_b || !p.at_d || (C && !p.at_c) ||
      !host_epilogue_resolve(&p))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_work_submit(stream, product_run, &p, sizeof p);
}

// ---- the one algorithm ----

static cublasStatus_t result_give(host_ltproduct_t *p,
                                  cublasLtMatmulHeuristicResult_t *result) {
  cublasStatus_t status = product_check(p);
  *result = (cublasLtMatmulHeuristicResult_t){.state = status, .wavesCount = 1};
  return status;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
    cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
    cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
    int *returnAlgoCount) {
  host_ltproduct_t p;
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!host_ltproduct_take(&p, operationDesc, Adesc, Bdesc, Cdesc, Ddesc) ||
      !preference || requestedAlgoCount < 1 || !heuristicResultsArray ||
      !returnAlgoCount)
    return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = result_give(&p, heuristicResultsArray);
  *returnAlgoCount = status == CUBLAS_STATUS_SUCCESS;
  return status;
}

cublasStatus_t cublasLtMatmulAlgoCheck(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
    cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
    cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result) {
  host_ltproduct_t p;
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!host_ltproduct_take(&p, operationDesc, Adesc, Bdesc, Cdesc, Ddesc) ||
      !algo || !result)
    return CUBLAS_STATUS_INVALID_VALUE;
  return result_give(&p, result);
}

cublasStatus_t cublasLtMatmulAlgoGetIds(
    cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
    cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
    cudaDataType_t Ctype, cudaDataType_t Dtype, int requestedAlgoCount,
    int algoIdsArray[], int *returnAlgoCount) {
  host_ltproduct_t p = {
      .matmul = {.compute = (int32_t)computeType, .scale = scaleType},
      .a = {.type = Atype},
      .b = {.type = Btype},
      .c = {.type = Ctype},
      .d = {.type = Dtype}};
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requestedAlgoCount < 1 || !algoIdsArray || !returnAlgoCount)
    return CUBLAS_STATUS_INVALID_VALUE;
  *returnAlgoCount = types_fit(&p);
  if (*returnAlgoCount)
    algoIdsArray[0] = 0;
  return *returnAlgoCount ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoInit(
    cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
    cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
    cudaDataType_t Ctype, cudaDataType_t Dtype, int algoId,
    cublasLtMatmulAlgo_t *algo) {
  int id, count;
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!algo || algoId != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  memset(algo, 0, sizeof *algo);
  return cublasLtMatmulAlgoGetIds(lightHandle, computeType, scaleType, Atype,
                                  Btype, Ctype, Dtype, 1, &id, &count);
}
