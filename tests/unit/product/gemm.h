/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of cuBLAS on no memory, for tests of products. */
#ifndef SDG_TESTS_UNIT_PRODUCT_GEMM_H
#define SDG_TESTS_UNIT_PRODUCT_GEMM_H

#include <cublas_v2.h>

#include "rules/product/rule.h"
#include "src/base/vendor.h"
#include "tests/unit/job.h"
#include "tests/unit/random.h"

static inline cublasStatus_t host_mode(cublasHandle_t handle,
                                       cublasPointerMode_t *mode) {
  (void)handle;
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}

/* The finder of a cuBLAS whose scalars are on the host. */
static inline void *find(sdg_library_t library, const char *name) {
  static const job_fake_t fakes[] = {
      JOB_FAKE(cublasGetPointerMode_v2, host_mode)};
  (void)library;
  return job_fake_find(fakes, 1, name);
}

static uint64_t seed;
static inline int64_t draw(int64_t lo, int64_t hi) {
  seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return lo + (int64_t)(seed >> 33) % (hi - lo + 1);
}

static float one = 1, zero;
static char place[4];

/* C (m x n) = A B, one product in float, without gaps between columns. */
static inline sdg_gemm_t gemm_of(int64_t m, int64_t n, int64_t k) {
  return (sdg_gemm_t){.handle = place,
                      .m = m,
                      .n = n,
                      .k = k,
                      .batch = 1,
                      .alpha = &one,
                      .beta = &zero,
                      .a = &place[1],
                      .b = &place[2],
                      .c = &place[3],
                      .lda = m,
                      .ldb = k,
                      .ldc = m,
                      .type_a = CUDA_R_32F,
                      .type_b = CUDA_R_32F,
                      .type_c = CUDA_R_32F,
                      .compute = CUBLAS_COMPUTE_32F};
}

/* With other sizes, gaps and strides at each call. */
static inline sdg_gemm_t gemm_draw(bool batched) {
  int64_t m = draw(1, 9), n = draw(1, 9), k = draw(1, 9);
  sdg_gemm_t g = gemm_of(m, n, k);
  g.op_a = draw(0, 1) ? CUBLAS_OP_T : CUBLAS_OP_N;
  g.op_b = draw(0, 1) ? CUBLAS_OP_T : CUBLAS_OP_N;
  g.batched = batched;
  g.batch = batched ? draw(1, 4) : 1;
  g.beta = draw(0, 1) ? &one : &zero;
  g.lda = (g.op_a == CUBLAS_OP_N ? m : k) + draw(0, 3);
  g.ldb = (g.op_b == CUBLAS_OP_N ? k : n) + draw(0, 3);
  g.ldc = m + draw(0, 3);
  g.stride_a = draw(0, 1) ? 200 : 0;
  g.stride_b = 300;
  g.stride_c = 400;
  return g;
}

#endif
