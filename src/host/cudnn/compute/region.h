/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of a tensor's indices: half-open ranges, one for each dimension. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_REGION_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_REGION_H

#include "src/graph/graph.h"
#include "src/host/cudnn/descriptor/types.h"

typedef struct {
  int rank;
  int64_t lo[CUDNN_DIM_MAX], hi[CUDNN_DIM_MAX];
} host_region_t;

static inline host_region_t host_region_all(const sdg_graph_tensor_t *tensor) {
  host_region_t all = {.rank = tensor->rank};
  for (int d = 0; d < tensor->rank; d++)
    all.hi[d] = tensor->dim[d];
  return all;
}

/* The number of elements; 0 for an empty region. */
static inline int64_t host_region_count(const host_region_t *region) {
  int64_t count = 1;
  for (int d = 0; d < region->rank; d++)
    count *= region->hi[d] > region->lo[d] ? region->hi[d] - region->lo[d] : 0;
  return count;
}

/* Enlarges *io_hull, which may be empty, so that it contains `other`. */
static inline void host_region_hull(host_region_t *io_hull,
                                    const host_region_t *other) {
  if (host_region_count(other) == 0)
    return;
  if (host_region_count(io_hull) == 0) {
    *io_hull = *other;
    return;
  }
  for (int d = 0; d < other->rank; d++) {
    if (other->lo[d] < io_hull->lo[d])
      io_hull->lo[d] = other->lo[d];
    if (other->hi[d] > io_hull->hi[d])
      io_hull->hi[d] = other->hi[d];
  }
}

/* What an elementwise op reads of `operand` for these elements of its result:
 * the same indices, and index 0 where the operand's extent is 1. */
static inline host_region_t
host_region_broadcast(const host_region_t *result,
                      const sdg_graph_tensor_t *operand) {
  host_region_t region = *result;
  for (int d = 0; d < operand->rank; d++)
    if (operand->dim[d] == 1) {
      region.lo[d] = 0;
      region.hi[d] = result->hi[d] > result->lo[d] ? 1 : 0;
    }
  return region;
}

/* Elements from one row to the next, in a dense array of the region. */
static inline void host_region_steps(const host_region_t *region,
                                     int64_t *out_steps) {
  int64_t step = 1;
  for (int d = region->rank - 1; d >= 0; d--) {
    out_steps[d] = step;
    step *= region->hi[d] - region->lo[d];
  }
}

#endif
