// SPDX-License-Identifier: Apache-2.0
// The objects of cuBLASLt: created, set and read attribute by attribute. Values
// are checked only when a product uses them.
#include "src/host/cublas/lt.h"

#include <stdlib.h>
#include <string.h>

typedef struct attribute {
  int id;
  size_t bytes, offset;
} attribute_t;

#define ROW(id, type, field)                                                   \
  { id, sizeof(((type *)0)->field), offsetof(type, field) }

static const attribute_t layout_rows[] = {
    ROW(CUBLASLT_MATRIX_LAYOUT_TYPE, host_layout_t, type),
    ROW(CUBLASLT_MATRIX_LAYOUT_ORDER, host_layout_t, order),
    ROW(CUBLASLT_MATRIX_LAYOUT_ROWS, host_layout_t, rows),
    ROW(CUBLASLT_MATRIX_LAYOUT_COLS, host_layout_t, columns),
    ROW(CUBLASLT_MATRIX_LAYOUT_LD, host_layout_t, ld),
    ROW(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, host_layout_t, batch),
    ROW(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, host_layout_t, stride),
    ROW(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, host_layout_t, plane),
    ROW(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, host_layout_t, batch_mode),
};

static const attribute_t matmul_rows[] = {
    ROW(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, host_matmul_t, compute),
    ROW(CUBLASLT_MATMUL_DESC_SCALE_TYPE, host_matmul_t, scale),
    ROW(CUBLASLT_MATMUL_DESC_POINTER_MODE, host_matmul_t, pointer_mode),
    ROW(CUBLASLT_MATMUL_DESC_TRANSA, host_matmul_t, op_a),
    ROW(CUBLASLT_MATMUL_DESC_TRANSB, host_matmul_t, op_b),
    ROW(CUBLASLT_MATMUL_DESC_TRANSC, host_matmul_t, op_c),
    ROW(CUBLASLT_MATMUL_DESC_FILL_MODE, host_matmul_t, fill),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE, host_matmul_t, epilogue),
    ROW(CUBLASLT_MATMUL_DESC_BIAS_POINTER, host_matmul_t, bias),
    ROW(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, host_matmul_t, bias_stride),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, host_matmul_t, aux),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, host_matmul_t, aux_ld),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, host_matmul_t,
        aux_stride),
    ROW(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, host_matmul_t,
        alpha_stride),
    ROW(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, host_matmul_t, sm_count),
    ROW(16, host_matmul_t, unnamed), // has no name in the header
    ROW(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, host_matmul_t, scale_at[0]),
    ROW(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, host_matmul_t, scale_at[1]),
    ROW(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, host_matmul_t, scale_at[2]),
    ROW(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, host_matmul_t, scale_at[3]),
    ROW(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, host_matmul_t, scale_at[4]),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, host_matmul_t, aux_type),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, host_matmul_t,
        aux_scale),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, host_matmul_t,
        aux_maximum),
    ROW(CUBLASLT_MATMUL_DESC_FAST_ACCUM, host_matmul_t, fast),
    ROW(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, host_matmul_t, bias_type),
    ROW(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, host_matmul_t, scale_mode[0]),
    ROW(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, host_matmul_t, scale_mode[1]),
    ROW(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, host_matmul_t, scale_mode[2]),
    ROW(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, host_matmul_t, scale_mode[3]),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, host_matmul_t,
        scale_mode[4]),
    ROW(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, host_matmul_t, out_scale),
    ROW(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, host_matmul_t, out_scale_mode),
    ROW(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, host_matmul_t, emulation),
};

static const attribute_t transform_rows[] = {
    ROW(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, host_transform_t, scale),
    ROW(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, host_transform_t,
        pointer_mode),
    ROW(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, host_transform_t, op_a),
    ROW(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, host_transform_t, op_b),
};

static const attribute_t preference_rows[] = {
    ROW(CUBLASLT_MATMUL_PREF_SEARCH_MODE, host_preference_t, mode),
    ROW(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, host_preference_t,
        workspace_bytes),
    ROW(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, host_preference_t,
        reductions),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, host_preference_t,
        alignment[0]),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, host_preference_t,
        alignment[1]),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, host_preference_t,
        alignment[2]),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, host_preference_t,
        alignment[3]),
    ROW(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, host_preference_t, waves),
    ROW(CUBLASLT_MATMUL_PREF_IMPL_MASK, host_preference_t, implementations),
};

static const attribute_t *find(const attribute_t *rows, size_t count, int id) {
  for (size_t i = 0; i < count; i++)
    if (rows[i].id == id)
      return &rows[i];
  return NULL;
}

static cublasStatus_t set(const attribute_t *row, void *object,
                          const void *value, size_t bytes) {
  if (!object || !row || !value || bytes != row->bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  memcpy((char *)object + row->offset, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Without a buffer only the size is returned.
static cublasStatus_t get(const attribute_t *row, const void *object,
                          void *value, size_t bytes, size_t *out_bytes) {
  if (!object || !row || (bytes == 0 && !out_bytes) ||
      (bytes > 0 && (!value || bytes != row->bytes)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (out_bytes)
    *out_bytes = row->bytes;
  if (bytes > 0)
    memcpy(value, (const char *)object + row->offset, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// ---- making ----

static host_layout_t layout_new(cudaDataType type, uint64_t rows,
                                uint64_t columns, int64_t ld) {
  return (host_layout_t){
      .type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
}

static host_matmul_t matmul_new(cublasComputeType_t compute,
                                cudaDataType scale) {
  return (host_matmul_t){.compute = (int32_t)compute,
                         .scale = scale,
                         .fill = CUBLAS_FILL_MODE_FULL,
                         .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                         .aux_type = -1,
                         .bias_type = -1};
}

static host_preference_t preference_new(void) {
  return (host_preference_t){.reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
                             .alignment = {256, 256, 256, 256},
                             .implementations = UINT64_MAX};
}

// Defines the functions that all kinds of objects have. `made` is the content
// of a new object.
#define OBJECT(Name, handle_t, opaque_t, made, parameters, ...)                \
  cublasStatus_t cublasLt##Name##Init_internal(handle_t object,                \
                                               size_t size parameters) {       \
    if (!object)                                                               \
      return CUBLAS_STATUS_INVALID_VALUE;                                      \
    if (size < sizeof(opaque_t))                                               \
      return CUBLAS_STATUS_ALLOC_FAILED;                                       \
    __typeof__(made) held = made;                                              \
    memset(object, 0, sizeof *object);                                         \
    memcpy(object, &held, sizeof held);                                        \
    return CUBLAS_STATUS_SUCCESS;                                              \
  }                                                                            \
  cublasStatus_t cublasLt##Name##Create(handle_t *object parameters) {         \
    if (!object)                                                               \
      return CUBLAS_STATUS_INVALID_VALUE;                                      \
    handle_t place = malloc(sizeof *place);                                    \
    if (!place)                                                                \
      return CUBLAS_STATUS_ALLOC_FAILED;                                       \
    *object = place;                                                           \
    return cublasLt##Name##Init_internal(place, sizeof *place __VA_ARGS__);    \
  }                                                                            \
  cublasStatus_t cublasLt##Name##Destroy(handle_t object) {                    \
    free(object);                                                              \
    return CUBLAS_STATUS_SUCCESS;                                              \
  }

#define ATTRIBUTES(Name, handle_t, id_t, rows)                                 \
  cublasStatus_t cublasLt##Name##SetAttribute(                                 \
      handle_t object, id_t id, const void *value, size_t bytes) {             \
    return set(find(rows, sizeof rows / sizeof rows[0], (int)id), object,      \
               value, bytes);                                                  \
  }                                                                            \
  cublasStatus_t cublasLt##Name##GetAttribute(                                 \
      handle_t object, id_t id, void *value, size_t bytes, size_t *written) {  \
    return get(find(rows, sizeof rows / sizeof rows[0], (int)id), object,      \
               value, bytes, written);                                         \
  }

#define AND(...) , __VA_ARGS__

OBJECT(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutOpaque_t,
       layout_new(type, rows, columns, ld),
       AND(cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld),
       AND(type, rows, columns, ld))
ATTRIBUTES(MatrixLayout, cublasLtMatrixLayout_t,
           cublasLtMatrixLayoutAttribute_t, layout_rows)
OBJECT(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescOpaque_t,
       matmul_new(compute, scale),
       AND(cublasComputeType_t compute, cudaDataType_t scale),
       AND(compute, scale))
ATTRIBUTES(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
           matmul_rows)
OBJECT(MatrixTransformDesc, cublasLtMatrixTransformDesc_t,
       cublasLtMatrixTransformDescOpaque_t,
       ((host_transform_t){.scale = scale}), AND(cudaDataType scale),
       AND(scale))
ATTRIBUTES(MatrixTransformDesc, cublasLtMatrixTransformDesc_t,
           cublasLtMatrixTransformDescAttributes_t, transform_rows)
OBJECT(MatmulPreference, cublasLtMatmulPreference_t,
       cublasLtMatmulPreferenceOpaque_t, preference_new(), , )
ATTRIBUTES(MatmulPreference, cublasLtMatmulPreference_t,
           cublasLtMatmulPreferenceAttributes_t, preference_rows)
