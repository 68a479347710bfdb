/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's products of matrices. Sizes and leading dimensions are words; the
 * matrices are memory. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

#include "tests/equivalence/driver/op_case.h"

static cublasHandle_t blas;
static cublasLtHandle_t light;

typedef struct {
  cudaDataType type;
  cublasComputeType_t compute;
  cudaDataType scale;
} math_t;

static cudaDataType type_of(const char *name) {
  if (!strcmp(name, "double"))
    return CUDA_R_64F;
  if (!strcmp(name, "half"))
    return CUDA_R_16F;
  return strcmp(name, "bfloat16") ? CUDA_R_32F : CUDA_R_16BF;
}

static math_t math_of(const op_call_t *call) {
  math_t math = {type_of(op_text(call, "type", "float")), CUBLAS_COMPUTE_32F,
                 CUDA_R_32F};
  if (math.type == CUDA_R_64F)
    math = (math_t){CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
  else if (op_number(call, "halves", 0))
    math = (math_t){CUDA_R_16F, CUBLAS_COMPUTE_16F, CUDA_R_16F};
  return math;
}

/* Returns a word as a scalar of that type; half supports only 0, 1 and -2. */
static const void *scalar(const op_call_t *call, const char *key, double plain,
                          cudaDataType type) {
  static union {
    float single;
    double wide;
    unsigned short half;
  } ring[8];
  static unsigned next;
  double value = op_real(call, key, plain);
  void *at = &ring[next++ % 8];
  if (type == CUDA_R_64F)
    *(double *)at = value;
  else if (type == CUDA_R_16F)
    *(unsigned short *)at = value == 0 ? 0 : value == 1 ? 0x3c00 : 0xc000;
  else
    *(float *)at = (float)value;
  return at;
}

static int prepare(op_call_t *call) {
  (void)call;
  if (!blas)
    OP_TRY(cublasCreate(&blas));
  if (!light)
    OP_TRY(cublasLtCreate(&light));
  return 0;
}

/* Moves the scalars to device memory if the case says so. */
static int scalars(op_call_t *call, cudaDataType type, const void **alpha,
                   const void **beta) {
  *alpha = scalar(call, "alpha", 1, type);
  *beta = scalar(call, "beta", 0, type);
  int device = op_number(call, "ondevice", 0);
  OP_TRY(cublasSetPointerMode(blas, device ? CUBLAS_POINTER_MODE_DEVICE
                                           : CUBLAS_POINTER_MODE_HOST));
  if (!device)
    return 0;
  OP_TRY(op_space(call, 0, 16));
  char *at = call->space[0];
  size_t bytes = type == CUDA_R_64F ? 8 : type == CUDA_R_16F ? 2 : 4;
  OP_TRY(cudaMemcpy(at, *alpha, bytes, cudaMemcpyHostToDevice));
  OP_TRY(cudaMemcpy(at + 8, *beta, bytes, cudaMemcpyHostToDevice));
  *alpha = at;
  *beta = at + 8;
  return 0;
}

#define N(key) op_number(call, key, 0)

static cublasOperation_t op_of(const op_call_t *call, const char *key) {
  const char *word = op_text(call, key, "N");
  return *word == 'T' ? CUBLAS_OP_T : *word == 'C' ? CUBLAS_OP_C : CUBLAS_OP_N;
}

static int run_gemm(op_call_t *call) {
  const char *api = op_text(call, "api", "gemm");
  math_t math = math_of(call);
  cudaDataType type_c = type_of(op_text(call, "ctype", "float"));
  void *a = op_tensor(call, "a")->device, *b = op_tensor(call, "b")->device,
       *c = op_tensor(call, "c")->device;
  cublasOperation_t ta = op_of(call, "ta"), tb = op_of(call, "tb");
  const void *alpha, *beta;
  OP_TRY(scalars(call, math.scale, &alpha, &beta));
  if (!strcmp(api, "gemm") && math.type == CUDA_R_64F)
    OP_TRY(cublasDgemm(blas, ta, tb, N("m"), N("n"), N("k"), alpha, a, N("lda"),
                       b, N("ldb"), beta, c, N("ldc")));
  else if (!strcmp(api, "gemm"))
    OP_TRY(cublasSgemm(blas, ta, tb, N("m"), N("n"), N("k"), alpha, a, N("lda"),
                       b, N("ldb"), beta, c, N("ldc")));
  else if (!strcmp(api, "gemm64"))
    OP_TRY(cublasSgemm_64(blas, ta, tb, N("m"), N("n"), N("k"), alpha, a,
                          N("lda"), b, N("ldb"), beta, c, N("ldc")));
  else if (!strcmp(api, "gemmex"))
    OP_TRY(cublasGemmEx(blas, ta, tb, N("m"), N("n"), N("k"), alpha, a,
                        math.type, N("lda"), b, math.type, N("ldb"), beta, c,
                        type_c, N("ldc"), math.compute, CUBLAS_GEMM_DEFAULT));
  else if (!strcmp(api, "strided") && math.type == CUDA_R_64F)
    OP_TRY(cublasDgemmStridedBatched(
        blas, ta, tb, N("m"), N("n"), N("k"), alpha, a, N("lda"), N("sa"), b,
        N("ldb"), N("sb"), beta, c, N("ldc"), N("sc"), N("batch")));
  else if (!strcmp(api, "strided"))
    OP_TRY(cublasSgemmStridedBatched(
        blas, ta, tb, N("m"), N("n"), N("k"), alpha, a, N("lda"), N("sa"), b,
        N("ldb"), N("sb"), beta, c, N("ldc"), N("sc"), N("batch")));
  else
    OP_TRY(cublasGemmStridedBatchedEx(
        blas, ta, tb, N("m"), N("n"), N("k"), alpha, a, math.type, N("lda"),
        N("sa"), b, math.type, N("ldb"), N("sb"), beta, c, type_c, N("ldc"),
        N("sc"), N("batch"), math.compute, CUBLAS_GEMM_DEFAULT));
  return 0;
}

static int run_gemv(op_call_t *call) {
  math_t math = math_of(call);
  void *a = op_tensor(call, "a")->device, *b = op_tensor(call, "b")->device,
       *c = op_tensor(call, "c")->device;
  cublasOperation_t ta = op_of(call, "ta");
  /* Rows of A as it is stored. */
  int m = ta == CUBLAS_OP_N ? N("m") : N("k");
  int n = ta == CUBLAS_OP_N ? N("k") : N("m");
  const void *alpha, *beta;
  OP_TRY(scalars(call, math.scale, &alpha, &beta));
  if (N("batch") > 0)
    OP_TRY(cublasSgemvStridedBatched(blas, ta, m, n, alpha, a, N("lda"),
                                     N("sa"), b, N("ldb"), N("sb"), beta, c,
                                     N("ldc"), N("sc"), N("batch")));
  else if (math.type == CUDA_R_64F)
    OP_TRY(cublasDgemv(blas, ta, m, n, alpha, a, N("lda"), b, N("ldb"), beta, c,
                       N("ldc")));
  else
    OP_TRY(cublasSgemv(blas, ta, m, n, alpha, a, N("lda"), b, N("ldb"), beta, c,
                       N("ldc")));
  return 0;
}

static int layout(cublasLtMatrixLayout_t *out, cudaDataType type, int rows,
                  int columns, int ld, int stride, int batch, int by_rows) {
  int32_t order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
  int32_t count = batch > 0 ? batch : 1;
  int64_t between = stride;
  OP_TRY(cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows,
                                    (uint64_t)columns, ld));
  OP_TRY(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_ORDER,
                                          &order, sizeof order));
  OP_TRY(cublasLtMatrixLayoutSetAttribute(
      *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  OP_TRY(cublasLtMatrixLayoutSetAttribute(
      *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &between,
      sizeof between));
  return 0;
}

/* Returns whether that matrix is stored by rows. */
static int by_rows(const op_call_t *call, char matrix) {
  const char *rows = op_text(call, "rows", "0");
  return *rows == '1' || strchr(rows, matrix) != NULL;
}

static int run_lt(op_call_t *call) {
  static const char *const follows[] = {"none",     "relu",     "gelu", "bias",
                                        "relubias", "gelubias", NULL};
  static const cublasLtEpilogue_t epilogues[] = {
      CUBLASLT_EPILOGUE_DEFAULT,   CUBLASLT_EPILOGUE_RELU,
      CUBLASLT_EPILOGUE_GELU,      CUBLASLT_EPILOGUE_BIAS,
      CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS};
  math_t math = math_of(call);
  cudaDataType type_c = type_of(op_text(call, "ctype", "float"));
  int ta = op_of(call, "ta") != CUBLAS_OP_N;
  int tb = op_of(call, "tb") != CUBLAS_OP_N;
  int32_t op_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
  int32_t op_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = epilogues[op_choice(call, "follow", follows)];
  const op_tensor_t *bias = op_tensor(call, "bias"), *d = op_tensor(call, "d");
  void *a = op_tensor(call, "a")->device, *b = op_tensor(call, "b")->device,
       *c = op_tensor(call, "c")->device;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t la, lb, lc, ld;
  OP_TRY(cublasLtMatmulDescCreate(&desc, math.compute, math.scale));
  OP_TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA,
                                        &op_a, sizeof op_a));
  OP_TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB,
                                        &op_b, sizeof op_b));
  OP_TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                        &epilogue, sizeof epilogue));
  if (bias)
    OP_TRY(cublasLtMatmulDescSetAttribute(desc,
                                          CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                          &bias->device, sizeof(void *)));
  OP_TRY(layout(&la, math.type, ta ? N("k") : N("m"), ta ? N("m") : N("k"),
                N("lda"), N("sa"), N("batch"), by_rows(call, 'a')));
  OP_TRY(layout(&lb, math.type, tb ? N("n") : N("k"), tb ? N("k") : N("n"),
                N("ldb"), N("sb"), N("batch"), by_rows(call, 'b')));
  OP_TRY(layout(&lc, type_c, N("m"), N("n"), N("ldc"), N("sc"), N("batch"),
                by_rows(call, 'c')));
  OP_TRY(layout(&ld, type_c, N("m"), N("n"), d ? N("ldd") : N("ldc"),
                d ? N("sd") : N("sc"), N("batch"),
                by_rows(call, d ? 'd' : 'c')));
  OP_TRY(cublasLtMatmul(light, desc, scalar(call, "alpha", 1, math.scale), a,
                        la, b, lb, scalar(call, "beta", 0, math.scale), c, lc,
                        d ? d->device : c, ld, NULL, NULL, 0, NULL));
  OP_TRY(cublasLtMatrixLayoutDestroy(la));
  OP_TRY(cublasLtMatrixLayoutDestroy(lb));
  OP_TRY(cublasLtMatrixLayoutDestroy(lc));
  OP_TRY(cublasLtMatrixLayoutDestroy(ld));
  OP_TRY(cublasLtMatmulDescDestroy(desc));
  return 0;
}

static const op_row_t rows[] = {
    {"matmul", prepare, run_gemm},
    {"matvec", prepare, run_gemv},
    {"matmul_lt", prepare, run_lt},
    {0},
};
OP_ROWS(rows)
