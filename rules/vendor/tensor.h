/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor descriptors: of boxes inside tensors, and what the program's say. */
#ifndef SDG_RULES_VENDOR_TENSOR_H
#define SDG_RULES_VENDOR_TENSOR_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"

/* Sets a descriptor to the extents of `box`; strides in elements.
 * SDG_E_VENDOR_CALL where the vendor's library does not take it. */
sdg_status_t sdg_tensor_set(cudnnTensorDescriptor_t descriptor, int type,
                            const sdg_box_t *box,
                            const int64_t *stride) SDG_MUST_CHECK;

/* Bytes of an element; 0 for vectorised, sub-byte and future types, which no
 * op handles. */
int sdg_type_bytes(int type);

/* Type, extents and strides of operand->descriptor, which is a tensor's or a
 * filter's. Extents of filters are K C spatial in every layout. elem_bytes is 0
 * for vectorised, sub-byte and future types, which no op handles. False if
 * the vendor's library does not read it; nothing is reported. */
bool sdg_tensor_get(sdg_operand_t *operand);
bool sdg_filter_get(sdg_operand_t *operand);
/* The same of coordinates; operand->descriptor is that of the tensor whose
 * elements they belong to, and becomes NULL; its generation stays. */
bool sdg_coordinates_get(sdg_operand_t *operand);

#endif
