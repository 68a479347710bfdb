/* SPDX-License-Identifier: Apache-2.0 */
/* A fake cuDNN for gradients of convolutions. It enqueues host functions on the
 * streams of tests/unit/fake_cuda.h, and refuses arguments that cuDNN refuses.
 * */
#ifndef SDG_TESTS_UNIT_FAKE_CONV_H
#define SDG_TESTS_UNIT_FAKE_CONV_H

#include <cudnn.h>

#include "src/geometry/box.h"
#include "tests/unit/job.h"

/* What descriptors point to: four dimensions, floats. */
typedef struct fake_tensor {
  int dims, extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
} fake_tensor_t;
typedef struct fake_filter {
  int extent[4]; /* K C H W, packed */
} fake_filter_t;
typedef struct fake_conv {
  int spatial, pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
} fake_conv_t;

/* Refuses sub-tensors, whose strides have gaps. */
void fake_conv_refuse_views(bool refuse);
/* Returns the number of descriptors that were created and not destroyed. */
int fake_conv_living(void);
/* Calls fake_cuda_install() with this cuDNN. Functions of `own` (static; NULL:
 * none) replace those of this cuDNN. */
void fake_conv_install(const job_fake_t *own, int count);

#endif
