// SPDX-License-Identifier: Apache-2.0
// What the functions of cuBLASLt share: the handle, matrices in their layout,
// factors.
#include "src/host/cublas/lt.h"

#include <stdlib.h>

struct cublasLtContext {
  int unused;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle) {
  int count;
  if (!lightHandle)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cudaGetDeviceCount(&count) != cudaSuccess)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  cublasLtHandle_t made = calloc(1, sizeof *made);
  if (!made)
    return CUBLAS_STATUS_ALLOC_FAILED;
  *lightHandle = made;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  if (!lightHandle)
    return CUBLAS_STATUS_INVALID_VALUE;
  free(lightHandle);
  return CUBLAS_STATUS_SUCCESS;
}

// ---- layouts ----

static int64_t line_length(const host_layout_t *l) {
  return (int64_t)(l->order == CUBLASLT_ORDER_COL ? l->rows : l->columns);
}

cublasStatus_t host_layout_check(const host_layout_t *layout) {
  if ((layout->order != CUBLASLT_ORDER_COL &&
       layout->order != CUBLASLT_ORDER_ROW) ||
      host_type_bytes((cudaDataType)layout->type) == 0 ||
      layout->batch_mode != CUBLASLT_BATCH_MODE_STRIDED || layout->plane != 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return layout->ld < line_length(layout) || layout->batch < 1
             ? CUBLAS_STATUS_INVALID_VALUE
             : CUBLAS_STATUS_SUCCESS;
}

static int64_t offset_of(const host_layout_t *l, int64_t batch, int64_t i,
                         int64_t j) {
  int64_t at = l->order == CUBLASLT_ORDER_COL ? j * l->ld + i : i * l->ld + j;
  return at + (l->batch > 1 ? batch * l->stride : 0);
}

void *host_layout_resolve(const host_layout_t *layout, const void *at) {
  int64_t elements =
      offset_of(layout, layout->batch - 1, (int64_t)layout->rows - 1,
                (int64_t)layout->columns - 1) +
      1;
  return host_memory_resolve(
      at, (size_t)elements * host_type_bytes((cudaDataType)layout->type));
}

host_number_t host_layout_load(const host_layout_t *layout, const void *at,
                               int64_t batch, int64_t i, int64_t j) {
  return host_number_load(at, (cudaDataType)layout->type,
                          offset_of(layout, batch, i, j));
}

void host_layout_store(const host_layout_t *layout, void *at, int64_t batch,
                       int64_t i, int64_t j, host_number_t value) {
  host_number_store(at, (cudaDataType)layout->type,
                    offset_of(layout, batch, i, j), value);
}

int64_t host_span_bytes(cudaDataType type, int64_t count) {
  return count * (int64_t)host_type_bytes(type);
}

// Reads alpha or beta.
bool host_factor_read(const void *at, cudaDataType type, bool device,
                      bool vector, int64_t rows, host_factor_t *out_factor) {
  *out_factor = (host_factor_t){.scalar = {.type = type}, .vector = vector};
  if (!at)
    return false;
  if (!device && !vector) {
    out_factor->scalar.value = host_number_load(at, type, 0);
    return true;
  }
  out_factor->scalar.device =
      host_memory_resolve(at, (size_t)host_span_bytes(type, vector ? rows : 1));
  return out_factor->scalar.device != NULL;
}

host_number_t host_factor_get(const host_factor_t *factor, int64_t row) {
  return factor->vector
             ? host_number_load(factor->scalar.device, factor->scalar.type, row)
             : host_scalar_get(&factor->scalar);
}
