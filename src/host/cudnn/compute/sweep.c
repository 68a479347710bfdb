// SPDX-License-Identifier: Apache-2.0
// What is computed together: results and sums whose parts need the same of the
// tensors before them.
#include <string.h>

#include "src/host/cudnn/compute/part.h"

// Whether a tensor can be computed now: no sum that it needs is missing.
static bool is_ready(const host_run_t *run, int tensor) {
  const host_run_tensor_t *t = &run->tensor[tensor];
  if (host_run_is_known(t) || t->maker < 0)
    return true;
  const sdg_graph_node_t *node = &run->graph->node[t->maker];
  if (host_run_is_sum(run, t->maker))
    return false;
  for (int i = 0; i < node->operand_count; i++)
    if (!sdg_graph_writes(node, node->operand[i].name) &&
        !is_ready(run, node->operand[i].tensor))
      return false;
  return true;
}

static bool sum_is_ready(const host_run_t *run, int n) {
  const sdg_graph_node_t *node = &run->graph->node[n];
  for (int i = 0; i < node->operand_count; i++)
    if (!sdg_graph_writes(node, node->operand[i].name) &&
        !is_ready(run, node->operand[i].tensor))
      return false;
  return true;
}

bool host_sweep_lacks(const host_run_t *run, int tensor) {
  const host_run_tensor_t *t = &run->tensor[tensor];
  return run->data[tensor] && t->maker >= 0 && !host_run_is_known(t) &&
         !host_run_is_sum(run, t->maker);
}

// Whether a result's parts go with those of the sweep.
static bool goes_with(const host_run_t *run, const host_sweep_t *sweep,
                      const sdg_graph_tensor_t *result) {
  int last = result->rank - 1;
  return host_part_alike(result, sweep->like) ||
         (host_part_rows_alike(result, sweep->like) &&
          result->dim[last] < sweep->like->dim[last] &&
          sweep->like->dim[last] <= run->part);
}

// A result that needs much else than the others is left to a sweep of its own:
// rows and columns of one large matrix, for instance.
static bool is_cheap(host_run_t *run, host_sweep_t *sweep, int result) {
  int64_t before = host_part_load(run, sweep), after;
  bool whole = sweep->whole_rows;
  sweep->whole_rows |= !host_part_alike(host_run_of(run, result), sweep->like);
  sweep->result[result] = true;
  after = host_part_load(run, sweep);
  sweep->result[result] = false;
  sweep->whole_rows = whole;
  return after <= host_part_load_limit(run) || after / 2 <= before;
}

void host_sweep_fill(host_run_t *run, host_sweep_t *sweep) {
  const sdg_graph_t *graph = run->graph;
  bool any = false;
  sweep->whole_rows = false;
  memset(sweep->result, 0, (size_t)graph->tensor_count);
  for (int n = 0; n < graph->node_count; n++) {
    sweep->sum[n] =
        host_run_is_sum(run, n) && !run->done[n] && sum_is_ready(run, n) &&
        host_part_alike(
            host_run_of(run, host_run_kind(run, n)->over(&graph->node[n])),
            sweep->like);
    any |= sweep->sum[n];
  }
  for (int t = 0; t < graph->tensor_count; t++) {
    const sdg_graph_tensor_t *result = host_run_of(run, t);
    if (!host_sweep_lacks(run, t) || !is_ready(run, t) ||
        !goes_with(run, sweep, result) || (any && !is_cheap(run, sweep, t)))
      continue;
    sweep->result[t] = any = true;
    sweep->whole_rows |= !host_part_alike(result, sweep->like);
  }
}

const sdg_graph_tensor_t *host_sweep_like(const host_run_t *run, int result) {
  const sdg_graph_tensor_t *widest = host_run_of(run, result);
  int last = widest->rank - 1;
  for (int t = 0; t < run->graph->tensor_count; t++) {
    const sdg_graph_tensor_t *other = host_run_of(run, t);
    if (host_sweep_lacks(run, t) && is_ready(run, t) &&
        host_part_rows_alike(widest, other) &&
        other->dim[last] > widest->dim[last] && other->dim[last] <= run->part)
      widest = other;
  }
  return widest;
}
