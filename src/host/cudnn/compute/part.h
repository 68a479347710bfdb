/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed together, and the parts in which it is computed. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_PART_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_PART_H

#include "src/host/cudnn/compute/run.h"

/* Results and sums over tensors of the same extents. */
typedef struct {
  const sdg_graph_tensor_t *like;
  bool *result; /* by tensor */
  bool *sum;    /* by node */
} host_sweep_t;

static inline const host_node_kind_t *host_run_kind(const host_run_t *run,
                                                    int node) {
  return host_node_kind(run->graph->node[node].kind);
}

static inline bool host_run_is_sum(const host_run_t *run, int node) {
  return host_run_kind(run, node)->over;
}

static inline bool host_run_is_known(const host_run_tensor_t *tensor) {
  return tensor->source || tensor->sums;
}

/* Finds the needs of all tensors for a part, from the last node to the first.
 */
void host_part_needs(host_run_t *run, const host_sweep_t *sweep,
                     const host_region_t *part);

/* The extents of the sweep's parts; those at the ends may be smaller. */
void host_part_extents(host_run_t *run, const host_sweep_t *sweep,
                       int64_t *out);

#endif
