/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills boxes inside strided device tensors with CUDA runtime calls
 * only; the host never accesses device memory. */
#ifndef SDG_SRC_EXCHANGE_DEVICE_H
#define SDG_SRC_EXCHANGE_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/box.h"

/* A box of elements in device memory: `data` is the address of its first
 * element; strides are in elements, >= 0. */
typedef struct sdg_region {
  void *data;
  const int64_t *stride;
} sdg_region_t;

/* A copy may have one dimension more than a tensor: several boxes at once. */
enum { SDG_COPY_DIMS_MAX = SDG_DIMS_MAX + 1 };

/* Enqueues a copy of `extent` (dims numbers) elements of elem_bytes each. The
 * two regions must not overlap. Uses as few runtime calls as the strides
 * allow: one for a halo of a packed NCHW or NHWC tensor. */
sdg_status_t sdg_device_copy(const sdg_region_t *from, const sdg_region_t *to,
                             const int64_t *extent, int dims, int elem_bytes,
                             cudaStream_t stream) SDG_MUST_CHECK;

/* Like sdg_device_copy, but `to` is host memory. Returns false, without a
 * report, if the runtime refuses the copy. */
bool sdg_device_fetch(const sdg_region_t *from, const sdg_region_t *to,
                      const int64_t *extent, int dims, int elem_bytes,
                      cudaStream_t stream) SDG_MUST_CHECK;

/* Enqueues a fill of the region with zero bytes. */
sdg_status_t sdg_device_zero(const sdg_region_t *region, const int64_t *extent,
                             int dims, int elem_bytes,
                             cudaStream_t stream) SDG_MUST_CHECK;

#endif
