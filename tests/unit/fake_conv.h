/* SPDX-License-Identifier: Apache-2.0 */
/* A fake cuDNN for gradients of convolutions. It enqueues host functions on the
 * streams of tests/unit/fake_cuda.h, and refuses arguments that cuDNN refuses.
 * */
#ifndef SDG_TESTS_UNIT_FAKE_CONV_H
#define SDG_TESTS_UNIT_FAKE_CONV_H

#include <cudnn.h>

#include "src/geometry/box.h"
#include "tests/unit/job.h"

/* What the descriptors of the tests point to. Four dimensions, floats. */
typedef struct fake_tensor {
  int dims, extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
} fake_tensor_t;
typedef struct fake_filter {
  int extent[4]; /* K C H W, packed */
} fake_filter_t;
typedef struct fake_conv {
  int spatial, pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
} fake_conv_t;

/* Sub-tensors (whose strides leave room) are refused. */
void fake_conv_refuse_views(bool refuse);
/* Descriptors that were created and not destroyed. */
int fake_conv_living(void);
/* fake_cuda_install() with this cuDNN; functions of `own` (static, NULL: none)
 * come before its own. */
void fake_conv_install(const job_fake_t *own, int count);

#endif
