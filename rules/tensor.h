/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor descriptors of boxes inside tensors. Inside rules/ only. */
#ifndef SDG_RULES_TENSOR_H
#define SDG_RULES_TENSOR_H

#include <cudnn.h>
#include <stdint.h>

#include "src/box.h"
#include "src/status.h"

/* Sets a descriptor to the extents of `box`; strides in elements.
 * SDG_E_VENDOR_CALL where the vendor's library does not take it. */
sdg_status_t sdg_tensor_set(cudnnTensorDescriptor_t descriptor, int type,
                            const sdg_box_t *box,
                            const int64_t *stride) SDG_MUST_CHECK;

#endif
