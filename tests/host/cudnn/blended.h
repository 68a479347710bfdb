/* SPDX-License-Identifier: Apache-2.0 */
/* Random shapes and betas, and expected results beta * old + new, for tests
 * that compare ops with their definitions in double. */
#ifndef SDG_TESTS_HOST_CUDNN_BLENDED_H
#define SDG_TESTS_HOST_CUDNN_BLENDED_H

#include <math.h>
#include <stdlib.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                        CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
static cudnnHandle_t handle;

static inline double *zeros(int64_t count) {
  return calloc((size_t)count, sizeof(double));
}

/* beta is 0 half of the time; then the old values are NaN. */
static inline double draw_beta(tensor_t *out) {
  if (case_range(0, 1))
    return 0.5;
  for (int64_t i = 0; i < out->count; i++)
    out->value[i] = NAN;
  tensor_upload(out);
  return 0;
}

static inline double blend(double alpha, double value, double beta,
                           double old) {
  return alpha * value + (beta == 0 ? 0 : beta * old);
}

static inline void check(const tensor_t *t, const double *want,
                         const double *scale, double factor, const char *what,
                         int number) {
  /* In double, the definition itself rounds. */
  if (t->type == CUDNN_DATA_DOUBLE)
    factor *= 1000;
  int64_t wrong = tensor_wrong(t, want, scale, factor);
  ck_assert_msg(wrong == -1, "%s, case %d value %ld: %s", what, number, wrong,
                tensor_text(t));
}

static inline int draw_shape(int dim[5], int most) {
  int rank = case_range(4, 5);
  for (int i = 0; i < rank; i++)
    dim[i] = case_range(1, most);
  return rank;
}

#endif
