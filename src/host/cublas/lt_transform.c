// SPDX-License-Identifier: Apache-2.0
// cublasLtMatrixTransform: matrices from one layout to another.
#include "src/host/cublas/lt.h"

#include <string.h>

typedef struct change {
  host_transform_t transform;
  host_layout_t a, b, c;
  const void *at_a, *at_b;
  void *at_c;
  host_factor_t alpha, beta;
} change_t;

static host_number_t term(const host_layout_t *layout, const void *at,
                          int32_t op, int64_t batch, int64_t i, int64_t j) {
  host_number_t value = op == CUBLAS_OP_N
                            ? host_layout_load(layout, at, batch, i, j)
                            : host_layout_load(layout, at, batch, j, i);
  return op == CUBLAS_OP_C ? conj(value) : value;
}

static cudaError_t change_run(void *argument) {
  const change_t *p = argument;
  host_number_t alpha = host_factor_get(&p->alpha, 0);
  host_number_t beta = host_factor_get(&p->beta, 0);
  for (int64_t batch = 0; batch < p->c.batch; batch++)
    for (int64_t j = 0; j < (int64_t)p->c.columns; j++)
      for (int64_t i = 0; i < (int64_t)p->c.rows; i++) {
        host_number_t value = 0;
        if (p->at_a && alpha != 0)
          value += alpha * term(&p->a, p->at_a, p->transform.op_a, batch, i, j);
        if (p->at_b && beta != 0)
          value += beta * term(&p->b, p->at_b, p->transform.op_b, batch, i, j);
        host_layout_store(&p->c, p->at_c, batch, i, j, value);
      }
  return cudaSuccess;
}

// Takes one operand. Leaves it empty if the program gives no layout for it.
static cublasStatus_t term_take(const host_layout_t *c, const void *at,
                                cublasLtMatrixLayout_t desc, int32_t op,
                                host_layout_t *out_layout,
                                const void **out_at) {
  if (!desc || !at)
    return CUBLAS_STATUS_SUCCESS;
  memcpy(out_layout, desc, sizeof *out_layout);
  cublasStatus_t status = host_layout_check(out_layout);
  if (status)
    return status;
  bool turned = op != CUBLAS_OP_N;
  if ((unsigned)op > CUBLAS_OP_C ||
      (turned ? out_layout->columns : out_layout->rows) != c->rows ||
      (turned ? out_layout->rows : out_layout->columns) != c->columns ||
      (out_layout->batch != c->batch && out_layout->batch != 1))
    return CUBLAS_STATUS_INVALID_VALUE;
  *out_at = host_layout_resolve(out_layout, at);
  return *out_at ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasLtMatrixTransform(
    cublasLtHandle_t lightHandle, cublasLtMatrixTransformDesc_t transformDesc,
    const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
    const void *beta, const void *B, cublasLtMatrixLayout_t Bdesc, void *C,
    cublasLtMatrixLayout_t Cdesc, cudaStream_t stream) {
  change_t p = {.at_a = NULL};
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!transformDesc || !alpha || !C || !Cdesc)
    return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(&p.transform, transformDesc, sizeof p.transform);
  memcpy(&p.c, Cdesc, sizeof p.c);
  cublasStatus_t status = host_layout_check(&p.c);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = term_take(&p.c, A, Adesc, p.transform.op_a, &p.a, &p.at_a);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = term_take(&p.c, B, Bdesc, p.transform.op_b, &p.b, &p.at_b);
  if (status)
    return status;
  cudaDataType type = (cudaDataType)p.transform.scale;
  bool device = p.transform.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  if (p.transform.pointer_mode > CUBLASLT_POINTER_MODE_DEVICE ||
      host_type_bytes(type) == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  p.beta = (host_factor_t){.scalar = {.type = type}};
  if (p.at_b && !beta)
    return CUBLAS_STATUS_INVALID_VALUE;
  p.at_c = host_layout_resolve(&p.c, C);
  if (!p.at_c || !host_factor_read(alpha, type, device, false, 1, &p.alpha) ||
      (beta && !host_factor_read(beta, type, device, false, 1, &p.beta)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_work_submit(stream, change_run, &p, sizeof p);
}
