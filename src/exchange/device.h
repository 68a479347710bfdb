/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: copies and fills of boxes inside strided tensors, with CUDA
 * runtime calls only, as the host never accesses it; and sundog's own buffers.
 */
#ifndef SDG_SRC_EXCHANGE_DEVICE_H
#define SDG_SRC_EXCHANGE_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
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

/* A copy of bytes: extents, and strides of both regions, outermost first. The
 * last dimension is a run of bytes. 4 dimensions at least. */
enum { SDG_NARROW_DIMS_MAX = 8 };
typedef struct sdg_narrow {
  const void *from;
  void *to;
  int dims;
  int extent[SDG_NARROW_DIMS_MAX];
  int from_stride[SDG_NARROW_DIMS_MAX], to_stride[SDG_NARROW_DIMS_MAX];
} sdg_narrow_t;
/* Enqueues such a copy as one kernel. */
typedef sdg_status_t sdg_narrow_copy_t(const sdg_narrow_t *copy,
                                       cudaStream_t stream);
/* From now on sdg_device_copy makes copies of runs that are shorter than
 * sdg_cost_agreed().run_bytes by this function. NULL: by none. Any thread. */
void sdg_device_set_narrow(sdg_narrow_copy_t *copy);

/* Like sdg_device_copy, but `to` is host memory. Returns false, without a
 * report, if the runtime refuses the copy. */
bool sdg_device_fetch(const sdg_region_t *from, const sdg_region_t *to,
                      const int64_t *extent, int dims, int elem_bytes,
                      cudaStream_t stream) SDG_MUST_CHECK;

/* Enqueues a fill of the region with zero bytes. */
sdg_status_t sdg_device_zero(const sdg_region_t *region, const int64_t *extent,
                             int dims, int elem_bytes,
                             cudaStream_t stream) SDG_MUST_CHECK;

/* ---- scratch ------------------------------------------------------------- */

/* Buffers of each calling thread; the thread's plans reuse them from call to
 * call. */
typedef enum sdg_scratch_kind {
  SDG_SCRATCH_CALL, /* for one call */
  SDG_SCRATCH_KEPT, /* for prefetched messages */
  SDG_SCRATCH_OWN,  /* for a call that no plan makes, while plans run */
  SDG_SCRATCH_HOST, /* for one call, in managed memory */
  SDG_SCRATCH_COUNT,
} sdg_scratch_kind_t;

/* Gets the buffer, at least `bytes` long; NULL for 0 bytes. The buffer only
 * grows; growing waits for the device. The contents are undefined. Calls of
 * one thread on different streams must order themselves. */
sdg_status_t sdg_scratch_get(sdg_scratch_kind_t kind, size_t bytes,
                             void **out_data) SDG_MUST_CHECK;
/* Returns the bytes of all threads' buffers. */
size_t sdg_scratch_bytes(void);

/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_scratch_forget(void);

#endif
