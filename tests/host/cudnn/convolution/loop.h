/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients by loops over doubles, for the tests of the
 * engines. */
#ifndef SDG_TESTS_HOST_CUDNN_CONVOLUTION_LOOP_H
#define SDG_TESTS_HOST_CUDNN_CONVOLUTION_LOOP_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* A tensor of a case (FLOAT, DOUBLE, HALF or BFLOAT16), with what is expected
 * at each element of its memory. Strides are not negative. */
typedef struct {
  cudnnDataType_t type;
  void *data;
  int64_t extent[5], stride[5], span;
  double *want, *terms; /* the sum there, and of absolute terms */
  bool *used;           /* false: between the elements, NaN */
} part_t;

/* Elements from case_real(). Memory ends with the last element. */
void part_create(part_t *p, cudnnDataType_t type, const int64_t extent[5],
                 const int64_t stride[5]);
void part_destroy(part_t *p);
/* An infinity, its negative or NaN at `count` elements. */
void part_break(part_t *p, int count);
/* The memory once more. */
void *part_clone(const part_t *p);
size_t part_bytes(const part_t *p);

/* What the problem makes of the three: alpha times y of x and w, x (dx) of w
 * and y (dy), w (dw) of x and y. What lies outside takes no part. */
void loop_run(const host_conv_t *conv, part_t *x, part_t *w, part_t *y);

/* The first element of memory that is not what is wanted plus gamma of what was
 * there before, within the rounding of a sum of `length` terms, or that lies
 * between elements and was written; -1 if all is well. Infinities and NaN are
 * wanted as they are. */
int64_t part_wrong(const part_t *have, const part_t *before, double gamma,
                   double length);

#endif
