/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices whose elements do not depend on the matrices' extents.
 */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_PRODUCT_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* c (m x n) = a (m x k) b (k x n), row-major with leading dimensions. */
typedef struct {
  bool is_double; /* else products and partial sums are those of floats */
  int64_t m, n, k;
  const double *a, *b;
  int64_t lda, ldb;
  double *c; /* n elements from row to row */
} host_product_t;

/* The bits of an element of c depend on its row of a, its column of b and k
 * only: sums over 192 products each, in order, which are added as doubles.
 * False when memory is short. */
bool host_product_run(const host_product_t *product);

#endif
