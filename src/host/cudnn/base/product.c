// SPDX-License-Identifier: Apache-2.0
// Products of matrices: oneDNN's for float, loops over rows for double.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/primitive.h"
#include "src/host/cudnn/base/real.h"

bool host_product_float(bool turn_a, bool turn_b, int64_t m, int64_t n,
                        int64_t k, const float *a, int64_t lda, const float *b,
                        int64_t ldb, float beta, float *c, int64_t ldc) {
  if (k == 0) {
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
    return true;
  }
  if (m == 0 || n == 0)
    return true;
  int threads = host_threads_enter();
  dnnl_status_t status = dnnl_sgemm(turn_a ? 'T' : 'N', turn_b ? 'T' : 'N', m,
                                    n, k, 1, a, lda, b, ldb, beta, c, ldc);
  omp_set_num_threads(threads);
  return status == dnnl_success;
}

// The rows of b that stay in the first cache.
enum { HOST_DEPTH = 64 };

bool host_product_double(bool turn_a, bool turn_b, int64_t m, int64_t n,
                         int64_t k, const double *a, int64_t lda,
                         const double *b, int64_t ldb, double beta, double *c,
                         int64_t ldc) {
  double *turned = NULL;
  if (turn_b) {
    turned = malloc((size_t)(n * k) * sizeof *turned);
    if (!turned)
      return false;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < k; j++)
        turned[j * n + i] = b[i * ldb + j];
    b = turned;
    ldb = n;
  }
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
  for (int64_t first = 0; first < k; first += HOST_DEPTH) {
    int64_t end = k - first < HOST_DEPTH ? k : first + HOST_DEPTH;
    for (int64_t i = 0; i < m; i++)
      for (int64_t l = first; l < end; l++) {
        double factor = turn_a ? a[l * lda + i] : a[i * lda + l];
        for (int64_t j = 0; j < n; j++)
          c[i * ldc + j] += factor * b[l * ldb + j];
      }
  }
  free(turned);
  return true;
}
