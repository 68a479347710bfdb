/* SPDX-License-Identifier: Apache-2.0 */
/* Functions compiled once for float and once for double, as HOST_REAL says.
 * REAL(name) is the name of the function for that type. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_REAL_H
#define SDG_SRC_HOST_CUDNN_BASE_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "src/host/cudnn/descriptor/types.h"

#define HOST_REAL_PASTE(name, type) name##_##type
#define HOST_REAL_NAME(name, type)  HOST_REAL_PASTE(name, type)

/* c = a b + beta c, row-major: a is m x k, b is k x n. With `turn_a`, a is
 * given as k x m; with `turn_b`, b as n x k. Leading dimensions are those of
 * the given matrices. False when memory is short. */
bool host_product_float(bool turn_a, bool turn_b, int64_t m, int64_t n,
                        int64_t k, const float *a, int64_t lda, const float *b,
                        int64_t ldb, float beta, float *c, int64_t ldc);
bool host_product_double(bool turn_a, bool turn_b, int64_t m, int64_t n,
                         int64_t k, const double *a, int64_t lda,
                         const double *b, int64_t ldb, double beta, double *c,
                         int64_t ldc);

#ifdef HOST_REAL
#define REAL(name) HOST_REAL_NAME(name, HOST_REAL)
typedef HOST_REAL real_t;

/* _load converts `count` elements of the program's type. _store converts back,
 * rounded, and adds to the old values if `adds`. */
void REAL(host_real_load)(cudnnDataType_t type, const void *from, int64_t count,
                          real_t *to);
void REAL(host_real_store)(cudnnDataType_t type, void *to, int64_t count,
                           const real_t *from, bool adds);

/* The dropout mask of `count` elements: 0, or the factor of a kept element. */
void REAL(host_real_mask)(real_t *mask, int64_t count, double probability,
                          void *states);

/* to += the sum of `rows` rows. */
void REAL(host_real_add_rows)(const real_t *from, int64_t rows, int64_t width,
                              real_t *to);
#endif

#endif
