// SPDX-License-Identifier: Apache-2.0
// Reads products of cuBLASLt, whose sizes are in its descriptors.
#include "rules/vendor/product.h"

#include <math.h>

#include "rules/vendor/vendor.h"
#include "rules/vendor/writes.h"

typedef struct layout {
  uint32_t type;
  int32_t order, batch;
  uint64_t rows, columns;
  int64_t ld, stride;
} layout_t;

static bool layout_get(const sdg_cublaslt_t *lt, const void *desc,
                       layout_t *out) {
  cublasLtMatrixLayout_t layout = (cublasLtMatrixLayout_t)(uintptr_t)desc;
  const struct {
    cublasLtMatrixLayoutAttribute_t id;
    void *to;
    size_t bytes;
  } rows[] = {
      {CUBLASLT_MATRIX_LAYOUT_TYPE, &out->type, sizeof out->type},
      {CUBLASLT_MATRIX_LAYOUT_ORDER, &out->order, sizeof out->order},
      {CUBLASLT_MATRIX_LAYOUT_ROWS, &out->rows, sizeof out->rows},
      {CUBLASLT_MATRIX_LAYOUT_COLS, &out->columns, sizeof out->columns},
      {CUBLASLT_MATRIX_LAYOUT_LD, &out->ld, sizeof out->ld},
      {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &out->batch, sizeof out->batch},
      {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &out->stride,
       sizeof out->stride},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (!desc || lt->cublasLtMatrixLayoutGetAttribute(
                     layout, rows[i].id, rows[i].to, rows[i].bytes, NULL) !=
                     CUBLAS_STATUS_SUCCESS)
      return false;
  return true;
}

// Whether it is stored by rows or by columns.
static bool in_lines(const layout_t *l) {
  return l->order == CUBLASLT_ORDER_ROW || l->order == CUBLASLT_ORDER_COL;
}

sdg_footprint_t sdg_footprint_of_layout(const void *at, const void *layout) {
  const sdg_cublaslt_t *lt = at ? sdg_cublaslt_get() : NULL;
  layout_t l;
  if (!lt || !layout_get(lt, layout, &l) || !in_lines(&l) || l.batch < 1)
    return (sdg_footprint_t){at, at ? SIZE_MAX : 0, false};
  bool by_rows = l.order == CUBLASLT_ORDER_ROW;
  size_t each = sdg_cublas_type_bytes((int)l.type);
  sdg_footprint_t one =
      sdg_footprint(at, each, (int64_t)(by_rows ? l.columns : l.rows),
                    (int64_t)(by_rows ? l.rows : l.columns), l.ld);
  if (l.batch == 1 || one.bytes == 0 || one.bytes == SIZE_MAX)
    return one;
  sdg_footprint_t all =
      sdg_footprint(at, each, (int64_t)(one.bytes / each), l.batch, l.stride);
  all.gaps |= one.gaps;
  return all;
}

static bool layout_fits(const layout_t *l) {
  return in_lines(l) && l->batch > 0 && l->stride >= 0 &&
         sdg_product_type_bytes((int)l->type) > 0 && l->rows <= INT32_MAX &&
         l->columns <= INT32_MAX && l->ld > 0;
}

// True if the attribute is 0. A descriptor without it: `missing_fits`.
static bool is_default(const sdg_cublaslt_t *lt, cublasLtMatmulDesc_t desc,
                       cublasLtMatmulDescAttributes_t id, size_t bytes,
                       bool missing_fits) {
  uint64_t value = 0;
  if (lt->cublasLtMatmulDescGetAttribute(desc, id, &value, bytes, NULL) !=
      CUBLAS_STATUS_SUCCESS)
    return missing_fits;
  return value == 0;
}

typedef struct matmul {
  int32_t compute, scale, pointer_mode, op_a, op_b, fill, bias_type;
  uint32_t epilogue;
  void *bias;
  int64_t bias_stride;
} matmul_t;

static bool matmul_get(const sdg_cublaslt_t *lt, cublasLtMatmulDesc_t desc,
                       matmul_t *out) {
  const struct {
    cublasLtMatmulDescAttributes_t id;
    void *to;
    size_t bytes;
  } rows[] = {
      {CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &out->compute, sizeof out->compute},
      {CUBLASLT_MATMUL_DESC_SCALE_TYPE, &out->scale, sizeof out->scale},
      {CUBLASLT_MATMUL_DESC_POINTER_MODE, &out->pointer_mode,
       sizeof out->pointer_mode},
      {CUBLASLT_MATMUL_DESC_TRANSA, &out->op_a, sizeof out->op_a},
      {CUBLASLT_MATMUL_DESC_TRANSB, &out->op_b, sizeof out->op_b},
      {CUBLASLT_MATMUL_DESC_FILL_MODE, &out->fill, sizeof out->fill},
      {CUBLASLT_MATMUL_DESC_EPILOGUE, &out->epilogue, sizeof out->epilogue},
      {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &out->bias, sizeof out->bias},
      {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &out->bias_stride,
       sizeof out->bias_stride},
      {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &out->bias_type,
       sizeof out->bias_type},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (!desc || lt->cublasLtMatmulDescGetAttribute(
                     desc, rows[i].id, rows[i].to, rows[i].bytes, NULL) !=
                     CUBLAS_STATUS_SUCCESS)
      return false;
  return true;
}

// True if the product leaves more than its result: what the gradient needs, the
// gradient of a bias, or the largest element.
static bool leaves_more(const sdg_cublaslt_t *lt, cublasLtMatmulDesc_t desc,
                        uint32_t epilogue) {
  enum { RELU_BACK = 8, BIAS_BACK = 16, GELU_BACK = 64, AUX = 128 };
  const uint32_t gradients =
      BIAS_BACK | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB;
  bool forward = !(epilogue & (RELU_BACK | GELU_BACK));
  return (epilogue & gradients) || (forward && (epilogue & AUX)) ||
         !is_default(lt, desc, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
                     sizeof(void *), true);
}

static bool adds(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}

// True if no attribute asks for more than sundog reads: no scales of matrices
// (for narrow types), no transposed C, a known epilogue and pointer mode.
static bool is_plain(const sdg_cublaslt_t *lt, cublasLtMatmulDesc_t desc,
                     const matmul_t *m) {
  static const cublasLtMatmulDescAttributes_t pointers[] = {
      CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
      CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
      CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
      CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
      CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
  };
  for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
    if (!is_default(lt, desc, pointers[i], sizeof(void *), true))
      return false;
  return is_default(lt, desc, CUBLASLT_MATMUL_DESC_TRANSC, sizeof(int32_t),
                    false) &&
         m->fill == CUBLAS_FILL_MODE_FULL &&
         (m->epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
          m->epilogue == CUBLASLT_EPILOGUE_RELU ||
          m->epilogue == CUBLASLT_EPILOGUE_GELU || adds(m->epilogue)) &&
         (m->pointer_mode == CUBLASLT_POINTER_MODE_HOST ||
          m->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE);
}

static sdg_matrix_t matrix_of(const sdg_product_t *p, sdg_role_t role,
                              const void *data, const layout_t *layout,
                              int rows, int columns) {
  return sdg_matrix_make(p, role, data, (int)layout->type, rows, columns,
                         layout->order == CUBLASLT_ORDER_ROW, layout->ld,
                         layout->stride);
}

// The vector has an element for each row of D.
static void addend_make(const matmul_t *m, int type_d, sdg_product_t *p) {
  p->addend_type = m->bias_type < 0 ? type_d : m->bias_type;
  p->addend_stride = m->bias_stride;
  p->fits = p->fits && m->bias_stride >= 0 &&
            sdg_product_type_bytes(p->addend_type) > 0;
  sdg_matrix_t *addend = &p->matrix[SDG_ADDEND];
  *addend = (sdg_matrix_t){.there = true,
                           .role = SDG_ROLE_ADDEND,
                           .data = m->bias,
                           .type = p->addend_type,
                           .inner = -1};
  if ((p->extent[SDG_BATCH] > 1 || p->in_pieces) && m->bias_stride > 0) {
    addend->dim[addend->dims] = SDG_BATCH;
    addend->stride[addend->dims++] = m->bias_stride;
  }
  addend->outer = addend->dims;
  addend->dim[addend->dims] = SDG_M;
  addend->stride[addend->dims++] = 1;
  for (int d = 0; d < addend->dims; d++)
    addend->extent[d] = p->extent[addend->dim[d]];
}

static void result_make(const sdg_gemm_t *gemm, const layout_t *c,
                        const layout_t *d, sdg_product_t *p) {
  bool same = c->ld == d->ld && c->order == d->order && c->type == d->type &&
              c->stride == d->stride;
  p->matrix[SDG_RESULT] = matrix_of(p, SDG_ROLE_D, gemm->c, d, SDG_M, SDG_N);
  p->matrix[SDG_RESULT].there = in_lines(d);
  if (!p->keeps)
    return;
  // On a rank without elements the addresses do not tell whether C and D are
  // the same memory.
  p->matrix[SDG_SOURCE] = matrix_of(p, SDG_ROLE_C, gemm->c_in, c, SDG_M, SDG_N);
  p->fits = p->fits && (gemm->c_in != gemm->c || !gemm->c || same);
}

void sdg_product_make_lt(const sdg_gemm_t *gemm, sdg_product_t *p) {
  const sdg_cublaslt_t *lt = sdg_cublaslt_get();
  cublasLtMatmulDesc_t desc = (cublasLtMatmulDesc_t)(uintptr_t)gemm->desc;
  layout_t a, b, c, d;
  matmul_t m = {0};
  if (!lt || !layout_get(lt, gemm->layout_a, &a) ||
      !layout_get(lt, gemm->layout_b, &b) ||
      !layout_get(lt, gemm->layout_c, &c) ||
      !layout_get(lt, gemm->layout_d, &d) || !matmul_get(lt, desc, &m) ||
      d.rows > INT32_MAX || d.columns > INT32_MAX || d.batch < 1)
    return;
  bool ta = m.op_a != CUBLAS_OP_N, tb = m.op_b != CUBLAS_OP_N;
  uint64_t k = ta ? a.rows : a.columns;
  if (k > INT32_MAX)
    return;
  const int64_t extent[] = {(int64_t)d.rows, (int64_t)d.columns, (int64_t)k,
                            d.batch};
  for (int i = 0; i < SDG_PRODUCT_DIMS; i++)
    p->extent[i] = extent[i];
  p->dims = SDG_PRODUCT_DIMS;
  p->rows = SDG_M;
  p->columns = SDG_N;
  p->op[0] = m.op_a;
  p->op[1] = m.op_b;
  p->compute = m.compute;
  p->scale = m.scale;
  p->epilogue = (int)m.epilogue;
  p->leaves = leaves_more(lt, desc, m.epilogue);
  p->fits = layout_fits(&a) && layout_fits(&b) && layout_fits(&c) &&
            layout_fits(&d) && is_plain(lt, desc, &m) &&
            (ta ? a.columns : a.rows) == d.rows &&
            (tb ? b.columns : b.rows) == k &&
            (tb ? b.rows : b.columns) == d.columns && c.rows == d.rows &&
            c.columns == d.columns && a.type == b.type && c.type == d.type &&
            (m.scale == CUDA_R_32F || m.scale == CUDA_R_64F ||
             m.scale == CUDA_R_16F || m.scale == CUDA_R_32I) &&
            (d.batch == 1 || d.stride > 0);
  const layout_t *each[] = {&a, &b, &c};
  for (int i = 0; i < 3; i++)
    p->fits = p->fits && (each[i]->batch == 1 || each[i]->batch == d.batch);
  // One matrix for all products of the batch.
  a.stride = a.batch < d.batch ? 0 : a.stride;
  b.stride = b.batch < d.batch ? 0 : b.stride;
  if (d.batch == 1) // others may have several
    c.stride = d.stride = 1;
  p->device_scalars = m.pointer_mode != CUBLASLT_POINTER_MODE_HOST;
  p->keeps = p->device_scalars || sdg_product_scalar(gemm->beta, m.scale) != 0;
  p->fits = p->fits && (!p->keeps || c.batch == d.batch);
  p->matrix[SDG_FACTOR_1] = matrix_of(p, SDG_ROLE_A, gemm->a, &a,
                                      ta ? SDG_K : SDG_M, ta ? SDG_M : SDG_K);
  p->matrix[SDG_FACTOR_2] = matrix_of(p, SDG_ROLE_B, gemm->b, &b,
                                      tb ? SDG_N : SDG_K, tb ? SDG_K : SDG_N);
  result_make(gemm, &c, &d, p);
  if (adds(m.epilogue))
    addend_make(&m, (int)d.type, p);
  // Sums are added by cublasLtMatrixTransform.
  p->sums = p->fits && !p->device_scalars && p->scale == CUDA_R_32F &&
            d.type != CUDA_R_8I &&
            !isinf(sdg_product_scalar(gemm->alpha, m.scale));
}
