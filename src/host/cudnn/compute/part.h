/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed together, and the parts in which it is computed. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_PART_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_PART_H

#include "src/host/cudnn/compute/run.h"

/* Sums over tensors of the same extents, and results of these or with shorter
 * rows, of which each part has whole ones then. */
typedef struct {
  const sdg_graph_tensor_t *like;
  bool whole_rows;
  bool *result; /* by tensor */
  bool *sum;    /* by node */
} host_sweep_t;

/* Whether a result has to be computed in a sweep yet. */
bool host_sweep_lacks(const host_run_t *run, int tensor);

/* Of the results that can be computed with this one, that with the longest
 * rows. */
const sdg_graph_tensor_t *host_sweep_like(const host_run_t *run, int result);

/* Finds all that can be computed together with tensors like sweep->like. */
void host_sweep_fill(host_run_t *run, host_sweep_t *io_sweep);

static inline const host_node_kind_t *host_run_kind(const host_run_t *run,
                                                    int node) {
  return host_node_kind(run->graph->node[node].kind);
}

static inline bool host_run_is_sum(const host_run_t *run, int node) {
  return host_run_kind(run, node)->over && !run->by_rows[node];
}

/* Whether tensors have the same extents, and the same but for the last one. */
bool host_part_alike(const sdg_graph_tensor_t *a, const sdg_graph_tensor_t *b);
bool host_part_rows_alike(const sdg_graph_tensor_t *a,
                          const sdg_graph_tensor_t *b);

/* The region of a result that belongs to this part. */
host_region_t host_part_of(const sdg_graph_tensor_t *result,
                           const host_region_t *part);

static inline bool host_run_is_known(const host_run_tensor_t *tensor) {
  return tensor->source || tensor->sums;
}

/* Finds the needs of all tensors for a part, from the last node to the first.
 */
void host_part_needs(host_run_t *run, const host_sweep_t *sweep,
                     const host_region_t *part);

/* Elements of all tensors that the first part needs, and as many as a part
 * should need. */
int64_t host_part_load(host_run_t *run, const host_sweep_t *sweep);
int64_t host_part_load_limit(const host_run_t *run);

/* The extents of the sweep's parts; those at the ends may be smaller. */
void host_part_extents(host_run_t *run, const host_sweep_t *sweep,
                       int64_t *out);

#endif
