/* SPDX-License-Identifier: Apache-2.0 */
/* Sets descriptors for boxes inside tensors, and reads the program's. */
#ifndef SDG_RULES_VENDOR_TENSOR_H
#define SDG_RULES_VENDOR_TENSOR_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"

/* Sets a descriptor to the extents of `box`; strides in elements.
 * SDG_E_VENDOR_CALL if the vendor's library refuses them. */
sdg_status_t sdg_tensor_set(cudnnTensorDescriptor_t descriptor, int type,
                            const sdg_box_t *box,
                            const int64_t *stride) SDG_MUST_CHECK;

/* Bytes of an element; 0 for vectorised, sub-byte and future types, which no
 * op handles. */
int sdg_type_bytes(int type);

/* Fills in type, extents and strides (elements) from operand->descriptor, which
 * is a tensor's or a filter's. Extents of filters are in the order K C spatial
 * in every layout. elem_bytes as sdg_type_bytes. False if the vendor's library
 * cannot read the descriptor; nothing is reported. */
bool sdg_tensor_get(sdg_operand_t *operand);
bool sdg_filter_get(sdg_operand_t *operand);
/* The same for coordinates, which have no descriptor: operand->descriptor is
 * that of the tensor whose elements they locate. It becomes NULL; the
 * generation stays. Dimension 1 is that of the coordinates. */
bool sdg_coordinates_get(sdg_operand_t *operand);

#endif
