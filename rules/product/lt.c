// SPDX-License-Identifier: Apache-2.0
// Calls of cuBLASLt on parts of matrices: products with their epilogues, and
// sums of matrices of different types.
#include "rules/product/lt.h"

#include "rules/vendor/vendor.h"

// Describes the part of a matrix in `box` (of the product) to cuBLASLt, in the
// order of elements that the program's own layout has.
static cublasStatus_t layout_make(const sdg_cublaslt_t *lt,
                                  const sdg_matrix_t *matrix, int type,
                                  const sdg_product_lt_matrix_t *part,
                                  const sdg_box_t *box,
                                  cublasLtMatrixLayout_t *out) {
  int64_t outer = sdg_box_length(box, matrix->dim[matrix->outer]);
  int64_t inner =
      matrix->inner < 0 ? 1 : sdg_box_length(box, matrix->dim[matrix->inner]);
  int32_t order = matrix->by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
  int32_t batch = (int32_t)sdg_box_length(box, SDG_BATCH);
  cublasStatus_t status = lt->cublasLtMatrixLayoutCreate(
      out, (cudaDataType)type, (uint64_t)(matrix->by_rows ? outer : inner),
      (uint64_t)(matrix->by_rows ? inner : outer), part->ld);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = lt->cublasLtMatrixLayoutSetAttribute(
        *out, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order);
  if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
    status = lt->cublasLtMatrixLayoutSetAttribute(
        *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
  if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
    status = lt->cublasLtMatrixLayoutSetAttribute(
        *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &part->between,
        sizeof part->between);
  return status;
}

static void layouts_destroy(const sdg_cublaslt_t *lt,
                            cublasLtMatrixLayout_t *layout, int count) {
  for (int i = 0; i < count; i++)
    if (layout[i])
      (void)lt->cublasLtMatrixLayoutDestroy(layout[i]);
}

static cublasStatus_t set(const sdg_cublaslt_t *lt, cublasLtMatmulDesc_t desc,
                          cublasLtMatmulDescAttributes_t id, const void *value,
                          size_t bytes) {
  return lt->cublasLtMatmulDescSetAttribute(desc, id, value, bytes);
}

static cublasStatus_t epilogue_set(const sdg_cublaslt_t *lt,
                                   const sdg_product_t *p,
                                   const sdg_product_multiply_args_t *multiply,
                                   const sdg_exec_t *exec,
                                   cublasLtMatmulDesc_t desc) {
  uint32_t epilogue = (uint32_t)p->epilogue;
  const sdg_matrix_t *addend = &p->matrix[SDG_ADDEND];
  cublasStatus_t status =
      set(lt, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  if (status != CUBLAS_STATUS_SUCCESS || !addend->there)
    return status;
  sdg_box_t box = sdg_matrix_box(addend, &multiply->box);
  const void *at = sdg_exec_element(exec, multiply->addend, &box);
  int32_t type = p->addend_type;
  status = set(lt, desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at);
  if (status == CUBLAS_STATUS_SUCCESS &&
      type != p->matrix[SDG_RESULT].type) // else the vendor's default
    status =
        set(lt, desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
  if (status == CUBLAS_STATUS_SUCCESS && p->addend_stride != 0)
    status = set(lt, desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                 &p->addend_stride, sizeof p->addend_stride);
  return status;
}

static cublasStatus_t desc_make(const sdg_cublaslt_t *lt,
                                const sdg_product_t *p,
                                const sdg_product_multiply_args_t *multiply,
                                const sdg_product_lt_factors_t *with,
                                const sdg_exec_t *exec,
                                cublasLtMatmulDesc_t *out) {
  int32_t op_a = p->op[0], op_b = p->op[1];
  int32_t mode = p->device_scalars ? CUBLASLT_POINTER_MODE_DEVICE
                                   : CUBLASLT_POINTER_MODE_HOST;
  cublasStatus_t status = lt->cublasLtMatmulDescCreate(
      out, (cublasComputeType_t)with->compute, (cudaDataType)with->scale);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = set(lt, *out, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = set(lt, *out, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
  if (status == CUBLAS_STATUS_SUCCESS)
    status =
        set(lt, *out, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
  if (status == CUBLAS_STATUS_SUCCESS && multiply->follows)
    status = epilogue_set(lt, p, multiply, exec, *out);
  return status;
}

int sdg_product_lt_multiply(const sdg_product_t *p,
                            const sdg_product_multiply_args_t *multiply,
                            const sdg_call_t *call, const sdg_exec_t *exec) {
  const sdg_cublaslt_t *lt = sdg_cublaslt_get();
  const sdg_gemm_t *gemm = call->args;
  if (!lt)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  // Without a source, old values are read from the result.
  int source = multiply->source < 0 ? multiply->result : multiply->source;
  const int slab[] = {multiply->factor[0], multiply->factor[1], source,
                      multiply->result};
  const sdg_matrix_t *result = &p->matrix[SDG_RESULT];
  const sdg_matrix_t *matrix[] = {
      &p->matrix[SDG_FACTOR_1], &p->matrix[SDG_FACTOR_2],
      multiply->source < 0 || multiply->source == multiply->result
          ? result
          : &p->matrix[SDG_SOURCE],
      result};
  sdg_product_lt_matrix_t part[4];
  cublasLtMatrixLayout_t layout[4] = {NULL};
  cublasLtMatmulDesc_t desc = NULL;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; i++) {
    int type =
        i >= 2 && multiply->widened ? sdg_product_sum_type(p) : matrix[i]->type;
    part[i] = sdg_product_lt_matrix(exec, matrix[i], slab[i], &multiply->box);
    status =
        layout_make(lt, matrix[i], type, &part[i], &multiply->box, &layout[i]);
  }
  sdg_product_lt_factors_t with;
  sdg_product_lt_factors(p, multiply, gemm, &with);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = desc_make(lt, p, multiply, &with, exec, &desc);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = lt->cublasLtMatmul((cublasLtHandle_t)(uintptr_t)gemm->handle, desc,
                                with.alpha, part[0].at, layout[0], part[1].at,
                                layout[1], with.beta, part[2].at, layout[2],
                                part[3].at, layout[3], NULL, gemm->workspace,
                                gemm->workspace_bytes, exec->stream);
  if (desc)
    (void)lt->cublasLtMatmulDescDestroy(desc);
  layouts_destroy(lt, layout, 4);
  return (int)status;
}

int sdg_product_lt_add(const sdg_product_t *p,
                       const sdg_product_addition_t *add,
                       const sdg_call_t *call, const sdg_exec_t *exec) {
  const sdg_cublaslt_t *lt = sdg_cublaslt_get();
  const sdg_matrix_t *result = &p->matrix[SDG_RESULT];
  const sdg_gemm_t *gemm = call->args;
  if (!lt)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  int wide = sdg_product_sum_type(p);
  const int slab[] = {add->from, add->source, add->to};
  const int type[] = {wide, add->source_widened ? wide : result->type,
                      add->to_widened ? wide : result->type};
  // A separate source may have other strides than the result.
  bool apart = add->source != add->to && !add->source_widened &&
               p->matrix[SDG_SOURCE].there;
  const sdg_matrix_t *matrix[] = {
      result, apart ? &p->matrix[SDG_SOURCE] : result, result};
  sdg_product_lt_scalar_t one = sdg_product_lt_scalar(1, wide),
                          other = {.wide = 0};
  if (add->beta == SDG_BETA_ONE)
    other = one;
  else if (add->beta == SDG_BETA_PROGRAM)
    other =
        sdg_product_lt_scalar(sdg_product_scalar(gemm->beta, p->scale), wide);
  sdg_product_lt_matrix_t part[3];
  cublasLtMatrixLayout_t layout[3] = {NULL};
  cublasLtMatrixTransformDesc_t desc = NULL;
  cublasStatus_t status =
      lt->cublasLtMatrixTransformDescCreate(&desc, (cudaDataType)wide);
  for (int i = 0; i < 3 && status == CUBLAS_STATUS_SUCCESS; i++) {
    part[i] = sdg_product_lt_matrix(exec, matrix[i], slab[i], &add->box);
    status =
        layout_make(lt, matrix[i], type[i], &part[i], &add->box, &layout[i]);
  }
  if (status == CUBLAS_STATUS_SUCCESS)
    status = lt->cublasLtMatrixTransform(
        (cublasLtHandle_t)(uintptr_t)gemm->handle, desc, &one, part[0].at,
        layout[0], &other, add->beta == SDG_BETA_ZERO ? NULL : part[1].at,
        add->beta == SDG_BETA_ZERO ? NULL : layout[1], part[2].at, layout[2],
        exec->stream);
  if (desc)
    (void)lt->cublasLtMatrixTransformDescDestroy(desc);
  layouts_destroy(lt, layout, 3);
  return (int)status;
}
