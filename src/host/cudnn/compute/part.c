// SPDX-License-Identifier: Apache-2.0
// What a part of a graph's results needs, and how large parts are.
#include "src/host/cudnn/compute/part.h"

#include <string.h>

// Elements of all tensors together, as multiples of run->part.
enum { LOAD_FACTOR = 32 };

bool host_part_rows_alike(const sdg_graph_tensor_t *a,
                          const sdg_graph_tensor_t *b) {
  return a->rank == b->rank && a->rank > 0 &&
         memcmp(a->dim, b->dim, (size_t)(a->rank - 1) * sizeof *a->dim) == 0;
}

bool host_part_alike(const sdg_graph_tensor_t *a, const sdg_graph_tensor_t *b) {
  return host_part_rows_alike(a, b) &&
         a->dim[a->rank - 1] == b->dim[a->rank - 1];
}

host_region_t host_part_of(const sdg_graph_tensor_t *result,
                           const host_region_t *part) {
  host_region_t region = *part;
  int last = region.rank - 1;
  if (region.hi[last] > result->dim[last]) // then the rows are whole ones
    region.hi[last] = result->dim[last];
  return region;
}

// Finds the needs of all tensors, from the last node to the first.
void host_part_needs(host_run_t *run, const host_sweep_t *sweep,
                     const host_region_t *part) {
  const sdg_graph_t *graph = run->graph;
  for (int t = 0; t < graph->tensor_count; t++) {
    run->tensor[t].need = (host_region_t){.rank = graph->tensor[t].rank};
    if (sweep->result[t])
      run->tensor[t].need = host_part_of(&graph->tensor[t], part);
  }
  for (int n = graph->node_count - 1; n >= 0; n--) {
    const sdg_graph_node_t *node = &graph->node[n];
    bool due = sweep->sum[n];
    for (int i = 0; i < node->operand_count && !host_run_is_sum(run, n); i++) {
      const host_run_tensor_t *t = &run->tensor[node->operand[i].tensor];
      due |= t->maker == n && !host_run_is_known(t) &&
             host_region_count(&t->need) > 0;
    }
    if (due)
      host_run_kind(run, n)->need(run, node, part);
  }
}

static bool has_kind(const sdg_graph_t *graph,
                     cudnnBackendDescriptorType_t kind) {
  for (int n = 0; n < graph->node_count; n++)
    if (graph->node[n].kind == kind)
      return true;
  return false;
}

static bool has_window(const sdg_graph_t *graph) {
  return has_kind(graph,
                  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) ||
         has_kind(
             graph,
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) ||
         has_kind(graph,
                  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
}

// The extents of a part of at most `most` elements: images are cut first, then
// rows. Convolutions need all channels.
static void part_extents(const host_run_t *run, const host_sweep_t *sweep,
                         int64_t most, int64_t *out) {
  const sdg_graph_tensor_t *of = sweep->like;
  int64_t count = 1;
  bool whole = has_window(run->graph);
  for (int d = 0; d < of->rank; d++) {
    out[d] = of->dim[d];
    count *= of->dim[d];
  }
  for (int d = 0; d < of->rank - sweep->whole_rows && count > most; d++) {
    if (whole && d == 1)
      continue;
    int64_t rest = count / out[d];
    out[d] = rest >= most ? 1 : most / rest;
    count = rest * out[d];
  }
}

int64_t host_part_load_limit(const host_run_t *run) {
  return LOAD_FACTOR * run->part;
}

// The elements of all tensors that the first part needs.
static int64_t part_load(host_run_t *run, const host_sweep_t *sweep,
                         int64_t most) {
  host_region_t part = {.rank = sweep->like->rank};
  int64_t load = 0;
  part_extents(run, sweep, most, part.hi);
  host_part_needs(run, sweep, &part);
  for (int t = 0; t < run->graph->tensor_count; t++)
    load += host_region_count(&run->tensor[t].need);
  return load;
}

// Products read all of a matrix for each part, and those in a row make large
// tensors of small ones: parts grow where this costs little memory, and shrink
// where it saves much.
static int64_t part_size(host_run_t *run, const host_sweep_t *sweep) {
  host_region_t all = host_region_all(sweep->like);
  int64_t count = host_region_count(&all), load, other;
  int64_t most = count < run->part ? count : run->part;
  if (!run->adapts ||
      !has_kind(run->graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR))
    return most;
  load = part_load(run, sweep, most);
  while (most > 1 && load > host_part_load_limit(run) &&
         (other = part_load(run, sweep, most / 2)) < load / 4 * 3) {
    most /= 2;
    load = other;
  }
  while (most < count &&
         (other = part_load(run, sweep, 2 * most)) < load / 4 * 5) {
    most *= 2;
    load = other;
  }
  return most;
}

int64_t host_part_load(host_run_t *run, const host_sweep_t *sweep) {
  return part_load(run, sweep, part_size(run, sweep));
}

void host_part_extents(host_run_t *run, const host_sweep_t *sweep,
                       int64_t *out) {
  part_extents(run, sweep, part_size(run, sweep), out);
}
