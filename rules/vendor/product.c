// SPDX-License-Identifier: Apache-2.0
// Reads products of cuBLAS: gemm and gemv, one or many.
#include "rules/vendor/product.h"

#include <math.h>
#include <string.h>

#include "rules/file/file.h"
#include "rules/vendor/intern.h"
#include "rules/vendor/vendor.h"
#include "src/call/range.h"

int sdg_product_type_bytes(int type) {
  switch (type) {
  case CUDA_R_64F:
    return 8;
  case CUDA_R_32F:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_8I:
    return 1;
  default:
    return 0;
  }
}

// cuDNN's number for a cudaDataType_t.
static sdg_type_t type_of(int type) {
  switch (type) {
  case CUDA_R_64F:
    return CUDNN_DATA_DOUBLE;
  case CUDA_R_16F:
    return CUDNN_DATA_HALF;
  case CUDA_R_16BF:
    return CUDNN_DATA_BFLOAT16;
  case CUDA_R_8I:
    return CUDNN_DATA_INT8;
  case CUDA_R_32I:
    return CUDNN_DATA_INT32;
  default:
    return CUDNN_DATA_FLOAT;
  }
}

// IEEE half to number. 0x3c00 is 1.
static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 0 ? mantissa : mantissa + 1024;
  for (int e = exponent == 0 ? 1 : exponent; e < 25; e++)
    value /= 2;
  for (int e = exponent; e > 25; e--)
    value *= 2;
  if (exponent == 31)
    value = mantissa ? __builtin_nan("") : __builtin_inf();
  return bits >> 15 ? -value : value;
}

double sdg_product_scalar(const void *scalar, int type) {
  uint16_t half;
  if (!scalar)
    return 0;
  switch (type) {
  case CUDA_R_64F:
    return *(const double *)scalar;
  case CUDA_R_16F:
    memcpy(&half, scalar, sizeof half);
    return half_value(half);
  case CUDA_R_32I:
    return *(const int32_t *)scalar;
  default:
    return *(const float *)scalar;
  }
}

sdg_box_t sdg_matrix_box(const sdg_matrix_t *matrix, const sdg_box_t *product) {
  sdg_box_t box = {.dims = matrix->dims};
  for (int d = 0; d < matrix->dims; d++)
    box.dim[d] = product->dim[matrix->dim[d]];
  return box;
}

sdg_matrix_t sdg_matrix_make(const sdg_product_t *product, sdg_role_t role,
                             const void *data, int type, int rows, int columns,
                             bool by_rows, int64_t stride, int64_t between) {
  sdg_matrix_t m = {.there = true,
                    .role = role,
                    .data = data,
                    .type = type,
                    .by_rows = by_rows};
  if (product->dims > SDG_BATCH && between != 0 &&
      (product->extent[SDG_BATCH] > 1 || product->in_pieces)) {
    m.dim[m.dims] = SDG_BATCH;
    m.stride[m.dims++] = between;
  }
  m.outer = m.dims;
  m.dim[m.dims] = by_rows ? rows : columns;
  m.stride[m.dims++] = stride;
  m.inner = m.dims;
  m.dim[m.dims] = by_rows ? columns : rows;
  m.stride[m.dims++] = 1;
  for (int d = 0; d < m.dims; d++)
    m.extent[d] = product->extent[m.dim[d]];
  return m;
}

// The type of alpha and beta; -1: no op computes that.
static int scale_of(int compute) {
  switch (compute) {
  case CUBLAS_COMPUTE_16F:
  case CUBLAS_COMPUTE_16F_PEDANTIC:
    return CUDA_R_16F;
  case CUBLAS_COMPUTE_32F:
  case CUBLAS_COMPUTE_32F_PEDANTIC:
  case CUBLAS_COMPUTE_32F_FAST_16F:
  case CUBLAS_COMPUTE_32F_FAST_16BF:
  case CUBLAS_COMPUTE_32F_FAST_TF32:
    return CUDA_R_32F;
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC:
    return CUDA_R_64F;
  case CUBLAS_COMPUTE_32I:
  case CUBLAS_COMPUTE_32I_PEDANTIC:
    return CUDA_R_32I;
  default:
    return -1;
  }
}

static bool op_known(int op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

static bool scalars_on_device(const sdg_gemm_t *gemm) {
  const sdg_cublas_t *cublas = sdg_cublas_get();
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
  return !cublas || !gemm->handle ||
         cublas->cublasGetPointerMode_v2(
             (cublasHandle_t)(uintptr_t)gemm->handle, &mode) !=
             CUBLAS_STATUS_SUCCESS ||
         mode == CUBLAS_POINTER_MODE_DEVICE;
}

// The stride of a batch of one may be 0, which is read as 1.
static int64_t between_results(const sdg_gemm_t *g) {
  return g->batch <= 1 && g->stride_c == 0 ? 1 : g->stride_c;
}

// C = alpha op(A) op(B) + beta C.
static void gemm_make(const sdg_gemm_t *g, sdg_product_t *p) {
  bool ta = g->op_a != CUBLAS_OP_N, tb = g->op_b != CUBLAS_OP_N;
  const int64_t extent[] = {g->m, g->n, g->k, g->batch};
  memcpy(p->extent, extent, sizeof p->extent);
  p->rows = SDG_M;
  p->columns = SDG_N;
  p->op[0] = g->op_a;
  p->op[1] = g->op_b;
  p->fits = g->lda > 0 && g->ldb > 0 && g->ldc > 0 && op_known(g->op_b);
  p->matrix[SDG_FACTOR_1] =
      sdg_matrix_make(p, SDG_ROLE_A, g->a, g->type_a, ta ? SDG_K : SDG_M,
                      ta ? SDG_M : SDG_K, false, g->lda, g->stride_a);
  p->matrix[SDG_FACTOR_2] =
      sdg_matrix_make(p, SDG_ROLE_B, g->b, g->type_b, tb ? SDG_N : SDG_K,
                      tb ? SDG_K : SDG_N, false, g->ldb, g->stride_b);
  p->matrix[SDG_RESULT] =
      sdg_matrix_make(p, SDG_ROLE_C, g->c, g->type_c, SDG_M, SDG_N, false,
                      g->ldc, between_results(g));
}

// y = alpha op(A) x + beta y is computed as y' = alpha x' op(A)' + beta y' with
// rows x' and y', so that increments are leading dimensions. Rules see op(A)
// times x.
static void gemv_make(const sdg_gemm_t *g, sdg_product_t *p) {
  bool ta = g->op_a != CUBLAS_OP_N;
  const int64_t extent[] = {ta ? g->n : g->m, 1, ta ? g->m : g->n, g->batch};
  memcpy(p->extent, extent, sizeof p->extent);
  p->rows = SDG_N;
  p->columns = SDG_M;
  p->op[0] = CUBLAS_OP_N;
  p->op[1] = ta ? CUBLAS_OP_N : CUBLAS_OP_T;
  p->fits = g->lda > 0 && g->ldb > 0 && g->ldc > 0;
  p->matrix[SDG_FACTOR_1] = sdg_matrix_make(
      p, SDG_ROLE_B, g->b, g->type_b, SDG_N, SDG_K, false, g->ldb, g->stride_b);
  p->matrix[SDG_FACTOR_2] =
      sdg_matrix_make(p, SDG_ROLE_A, g->a, g->type_a, ta ? SDG_K : SDG_M,
                      ta ? SDG_M : SDG_K, false, g->lda, g->stride_a);
  p->matrix[SDG_RESULT] =
      sdg_matrix_make(p, SDG_ROLE_C, g->c, g->type_c, SDG_N, SDG_M, false,
                      g->ldc, between_results(g));
}

static void plain_make(const sdg_gemm_t *gemm, sdg_product_t *out) {
  out->dims = gemm->batched ? 4 : 3;
  out->compute = gemm->compute;
  out->scale = scale_of(gemm->compute);
  if (gemm->kind == SDG_GEMM_MATRIX)
    gemm_make(gemm, out);
  else
    gemv_make(gemm, out);
  for (int d = 0; d < SDG_PRODUCT_DIMS; d++)
    if (out->extent[d] < 0 || out->extent[d] > INT32_MAX)
      out->dims = 0; // the vendor's to refuse, or larger than a message tells
  const sdg_matrix_t *result = &out->matrix[SDG_RESULT];
  bool batch_lies = gemm->batch <= 1 || gemm->stride_c > 0;
  out->fits =
      out->fits && out->dims > 0 && out->scale >= 0 && !gemm->addresses &&
      op_known(gemm->op_a) && batch_lies && gemm->stride_a >= 0 &&
      gemm->stride_b >= 0 && sdg_product_type_bytes(gemm->type_a) &&
      gemm->type_a == gemm->type_b && sdg_product_type_bytes(result->type);
  if (!out->fits)
    return;
  out->device_scalars = scalars_on_device(gemm);
  out->keeps =
      out->device_scalars || sdg_product_scalar(gemm->beta, out->scale) != 0;
  // Each rank multiplies its terms by alpha: parts that are infinities of both
  // signs would add up to NaN.
  out->sums = !out->device_scalars && out->scale != CUDA_R_32I &&
              !isinf(sdg_product_scalar(gemm->alpha, out->scale));
}

void sdg_product_make(const sdg_gemm_t *gemm, sdg_product_t *out) {
  memset(out, 0, sizeof *out);
  out->kind = gemm->kind;
  out->in_pieces = gemm->in_pieces;
  if (gemm->kind == SDG_GEMM_LT)
    sdg_product_make_lt(gemm, out);
  else
    plain_make(gemm, out);
  int operand = 1; // after the product itself
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    if (out->matrix[i].there)
      out->matrix[i].operand = operand++;
}

// An interned number of everything that decides the plan of a product, except
// addresses.
static uint64_t shape_number(const sdg_call_t *call, const sdg_product_t *p,
                             const sdg_tag_label_t *label) {
  struct {
    int entry;
    int null; // a bit for each matrix without an address
    const sdg_tag_label_t *label;
    sdg_product_t product;
  } shape;
  memset(&shape, 0, sizeof shape);
  shape.entry = call->entry;
  shape.product = *p;
  shape.label = label;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    shape.null |= (shape.product.matrix[i].data == NULL) << i;
    shape.product.matrix[i].data = NULL;
  }
  return sdg_intern(&shape, sizeof shape);
}

static void operand_add(sdg_call_t *call, const sdg_matrix_t *matrix,
                        bool is_output, uint64_t number) {
  sdg_operand_t *operand = &call->operand[call->operands++];
  *operand = (sdg_operand_t){
      .role = matrix->role,
      .is_output = is_output,
      .generation = number,
      .data = (void *)(uintptr_t)matrix->data,
      .type = type_of(matrix->type),
      .elem_bytes = sdg_product_type_bytes(matrix->type),
      .dims = matrix->dims,
  };
  for (int d = 0; d < matrix->dims; d++) {
    operand->extent[d] = matrix->extent[d];
    operand->stride[d] = matrix->stride[d];
    operand->nesting[d] = matrix->dims - d;
  }
}

void sdg_product_read(const sdg_gemm_t *gemm, sdg_call_t *call) {
  // Addresses that serve as descriptors: what ranks agreed on is kept by them.
  static const char mark, room;
  sdg_product_t product;
  sdg_product_make(gemm, &product);
  const sdg_tag_label_t *label =
      sdg_range_label(product.matrix[SDG_RESULT].data);
  uint64_t number = shape_number(call, &product, label);
  call->args = gemm;
  call->op_descriptor = &room; // keeps the numbers of sdg_product_rooms
  call->op_generation = number;
  call->operands = 1;
  call->operand[0] = (sdg_operand_t){.role = SDG_ROLE_PRODUCT,
                                     .descriptor = &mark,
                                     .generation = number,
                                     .label = label,
                                     .elem_bytes = 1,
                                     .dims = product.dims};
  memcpy(call->operand[0].extent, product.extent, sizeof product.extent);
  for (int i = 0; product.fits && i < SDG_PRODUCT_MATRICES; i++)
    if (product.matrix[i].there)
      operand_add(call, &product.matrix[i], i == SDG_RESULT, number);
}

bool sdg_matrix_lies(const sdg_matrix_t *matrix, const int64_t *extent) {
  return matrix->inner < 0 || extent[matrix->outer] == 0 ||
         matrix->stride[matrix->outer] >= extent[matrix->inner];
}

void sdg_product_names(const sdg_call_t *call, int index, const char **out) {
  sdg_product_t product;
  sdg_product_make(call->args, &product);
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    for (int d = 0; d < product.matrix[i].dims; d++)
      if (product.matrix[i].there && product.matrix[i].operand == index)
        out[d] = sdg_dim_name(sdg_dim_at(
            SDG_FAMILY_MATMUL, product.matrix[i].dim[d], SDG_PRODUCT_DIMS));
}

void sdg_product_tensor_names(sdg_role_t role, int dims, const char **out) {
  int rows = role == SDG_ROLE_B ? SDG_K : SDG_M;
  int columns = role == SDG_ROLE_A ? SDG_K : SDG_N;
  for (int d = 0; d < dims; d++) {
    int dim = d == dims - 1 ? columns : d == dims - 2 ? rows : SDG_BATCH;
    out[d] = d > 0 && dim == SDG_BATCH
                 ? "?"
                 : sdg_dim_name(
                       sdg_dim_at(SDG_FAMILY_MATMUL, dim, SDG_PRODUCT_DIMS));
  }
}
