/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients by loops over doubles, for the tests of the
 * engines. */
#ifndef SDG_TESTS_HOST_CUDNN_CONVOLUTION_LOOP_H
#define SDG_TESTS_HOST_CUDNN_CONVOLUTION_LOOP_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* A tensor of a case (FLOAT, DOUBLE, HALF or BFLOAT16), with the expected value
 * of each element of its memory. Strides are not negative. */
typedef struct {
  cudnnDataType_t type;
  void *data;
  int64_t extent[5], stride[5], span;
  double *want, *terms; /* the expected sum, and that of its absolute terms */
  bool *used;           /* false: between the elements, NaN */
} part_t;

/* Elements from case_real(). Memory ends with the last element. */
void part_create(part_t *p, cudnnDataType_t type, const int64_t extent[5],
                 const int64_t stride[5]);
void part_destroy(part_t *p);
/* An infinity, its negative or NaN at `count` elements. */
void part_break(part_t *p, int count);
/* Copies the memory. */
void *part_clone(const part_t *p);
size_t part_bytes(const part_t *p);

/* Computes the expected values: alpha times y from x and w, x (dx) from w and y
 * (dy), or w (dw) from x and y. Elements outside x count nothing. */
void loop_run(const host_conv_t *conv, part_t *x, part_t *w, part_t *y);

/* Returns the first element of memory that differs from the expected value plus
 * gamma times the old one by more than the rounding of a sum of `length` terms,
 * or a gap that was written; -1 if there is none. Infinities and NaN must be
 * equal. */
int64_t part_wrong(const part_t *have, const part_t *before, double gamma,
                   double length);

#endif
