/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of floats or doubles, computed in doubles: the sums and maps of
 * normalisations, one build per instruction set. All builds give the same bits,
 * and a map's result for an element does not depend on its position in the row.
 */
#ifndef SDG_SRC_HOST_CUDNN_BASE_ROWS_H
#define SDG_SRC_HOST_CUDNN_BASE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* Rows of `count` contiguous values, element by element:
 *   map:      out = alpha * f(slope * (x - mean) + offset + with) + beta * out
 *   gradient: out = alpha * slope * (dy - offset - curve * (x - mean))
 *                   + beta * out
 * f: `relu` or nothing. dy: `with`, or 0 where there is a `gate` that is not
 * above 0; sums() stores it in `through` if that is not NULL. In map, `with`
 * may be NULL. out is not read if beta is 0, and may be any of the others.
 *
 * For floats the factor of x - mean is applied to x, and the mean becomes part
 * of the constant: doubles have enough digits for that. For doubles `subtract`
 * says to compute the difference first. */
typedef struct {
  int64_t count;
  const void *x, *with, *gate;
  void *out, *through;
  double mean, slope, offset, curve;
  double alpha, beta;
  bool relu, subtract;
} host_row_t;

typedef struct {
  double (*sum)(const void *x, int64_t count);
  /* The sum of squares of x - mean. */
  double (*squares)(const void *x, int64_t count, double mean);
  void (*map)(const host_row_t *row);
  /* Adds the sums of dy and of dy * (x - mean). */
  void (*sums)(const host_row_t *row, double *io_sum, double *io_product);
  void (*gradient)(const host_row_t *row);
} host_rows_t;

/* The build with the widest vectors that the processor has. */
const host_rows_t *host_rows(bool is_double);

extern const host_rows_t host_rows_float_base, host_rows_double_base;
#ifdef __x86_64__
extern const host_rows_t host_rows_float_avx2, host_rows_double_avx2;
extern const host_rows_t host_rows_float_avx512, host_rows_double_avx512;
#endif

#endif
