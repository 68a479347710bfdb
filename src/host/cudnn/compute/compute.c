// SPDX-License-Identifier: Apache-2.0
// Computes an operation graph: finds what each result needs, region by region.
#include "src/host/cudnn/compute/compute.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/compute/composite/composite.h"
#include "src/host/cudnn/compute/part.h"

enum { PART_ELEMENTS = 1 << 18 };

const host_node_kind_t *host_node_kind(cudnnBackendDescriptorType_t kind) {
  static const host_node_kind_t *const kinds[] = {&host_node_pointwise,
                                                  &host_node_conv_forward,
                                                  &host_node_conv_data,
                                                  &host_node_conv_filter,
                                                  &host_node_reduction,
                                                  &host_node_statistics,
                                                  &host_node_matmul,
                                                  &host_node_resample_forward,
                                                  &host_node_resample_backward,
                                                  &host_node_batchnorm,
                                                  &host_node_reshape,
                                                  &host_node_concat};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i]->kind == kind)
      return kinds[i];
  return NULL;
}

// ---- tensors in memory -----------------------------------------------------

static int64_t reach_of(const sdg_graph_tensor_t *tensor) {
  int64_t last = 0;
  for (int d = 0; d < tensor->rank; d++) {
    if (tensor->dim[d] == 0)
      return 0;
    last += (tensor->dim[d] - 1) * tensor->stride[d];
  }
  return (last + 1) * (int64_t)sdg_graph_type_bytes(tensor->type);
}

static bool overlap(const host_run_t *run, int a, int b) {
  const char *from = run->data[a], *to = run->data[b];
  return from < to + reach_of(host_run_of(run, b)) &&
         to < from + reach_of(host_run_of(run, a));
}

// An input that results overwrite is copied before anything is written.
static bool sources_set(host_run_t *run) {
  for (int t = 0; t < run->graph->tensor_count; t++) {
    host_run_tensor_t *input = &run->tensor[t];
    if (!run->data[t] || input->maker >= 0)
      continue;
    input->source = run->data[t];
    for (int w = 0; w < run->graph->tensor_count && !input->copy; w++) {
      if (!run->data[w] || run->tensor[w].maker < 0 || !overlap(run, t, w))
        continue;
      size_t bytes = (size_t)reach_of(host_run_of(run, t));
      input->copy = malloc(bytes);
      if (!input->copy)
        return false;
      memcpy(input->copy, run->data[t], bytes);
      input->source = input->copy;
    }
  }
  return true;
}

static bool is_read(const sdg_graph_t *graph, int tensor) {
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->node[n].operand_count; i++)
      if (graph->node[n].operand[i].tensor == tensor &&
          !sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name))
        return true;
  return false;
}

// Nodes that read a reduction of rows need as many rows as they compute. All
// else is reduced before its readers are computed.
static bool is_by_rows(const sdg_graph_t *graph, const sdg_graph_node_t *node) {
  if (node->kind != CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
    return false;
  int x = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  int y = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  return host_part_rows_alike(&graph->tensor[x], &graph->tensor[y]) &&
         is_read(graph, y);
}

static bool run_open(host_run_t *run) {
  const sdg_graph_t *graph = run->graph;
  run->tensor = calloc((size_t)graph->tensor_count + 1, sizeof *run->tensor);
  run->done = calloc((size_t)graph->node_count + 1, sizeof *run->done);
  run->by_rows = calloc((size_t)graph->node_count + 1, sizeof *run->by_rows);
  if (!run->tensor || !run->done || !run->by_rows)
    return false;
  for (int n = 0; n < graph->node_count; n++)
    run->by_rows[n] = is_by_rows(graph, &graph->node[n]);
  for (int t = 0; t < graph->tensor_count; t++)
    run->tensor[t].maker = -1;
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->node[n].operand_count; i++)
      if (sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name))
        run->tensor[graph->node[n].operand[i].tensor].maker = n;
  return sources_set(run);
}

static void run_close(host_run_t *run) {
  for (int t = 0; run->tensor && t < run->graph->tensor_count; t++) {
    free(run->tensor[t].copy);
    free(run->tensor[t].value);
    free(run->tensor[t].sums);
  }
  free(run->tensor);
  free(run->done);
  free(run->by_rows);
  free(run->floats);
}

// ---- one part --------------------------------------------------------------

static bool room_get(host_run_tensor_t *tensor) {
  int64_t count = host_region_count(&tensor->need);
  if (count <= tensor->room)
    return true;
  free(tensor->value);
  tensor->value = malloc((size_t)count * sizeof *tensor->value);
  tensor->room = tensor->value ? count : 0;
  return tensor->value;
}

// The part of a known sum that is needed.
static void sums_take(host_run_t *run, int tensor) {
  host_run_tensor_t *t = &run->tensor[tensor];
  const sdg_graph_tensor_t *of = host_run_of(run, tensor);
  host_region_t all = host_region_all(of);
  int64_t step, to = 0;
  for (host_rows_of_t rows = host_rows_begin(&t->need); rows.more;
       host_rows_next(&rows), to += rows.width)
    memcpy(t->value + to, t->sums + host_rows_offset(&rows, of, &all, &step),
           (size_t)rows.width * sizeof(double));
}

static bool part_compute(host_run_t *run, const host_sweep_t *sweep,
                         const host_region_t *part) {
  const sdg_graph_t *graph = run->graph;
  host_part_needs(run, sweep, part);
  for (int t = 0; t < graph->tensor_count; t++) {
    if (host_region_count(&run->tensor[t].need) == 0)
      continue;
    if (!room_get(&run->tensor[t]))
      return false;
    if (run->tensor[t].sums)
      sums_take(run, t);
    else if (run->tensor[t].source)
      host_run_read(&graph->tensor[t], run->tensor[t].source,
                    &run->tensor[t].need, run->tensor[t].value);
  }
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    bool due = false;
    for (int i = 0; i < node->operand_count; i++) {
      const host_run_tensor_t *t = &run->tensor[node->operand[i].tensor];
      due |= t->maker == n && !host_run_is_known(t) &&
             host_region_count(&t->need) > 0;
    }
    if (due && !host_run_is_sum(run, n) &&
        !host_run_kind(run, n)->compute(run, node))
      return false;
    if (sweep->sum[n] && !host_run_kind(run, n)->add(run, node, part))
      return false;
  }
  for (int t = 0; t < graph->tensor_count; t++)
    if (sweep->result[t]) {
      host_region_t region = host_part_of(&graph->tensor[t], part);
      host_run_store(run, t, &region);
    }
  return true;
}

// ---- all parts -------------------------------------------------------------

static bool parts_compute(host_run_t *run, const host_sweep_t *sweep) {
  const sdg_graph_tensor_t *of = sweep->like;
  host_region_t part = {.rank = of->rank};
  int64_t extent[CUDNN_DIM_MAX];
  for (int d = 0; d < of->rank; d++)
    if (of->dim[d] == 0)
      return true;
  host_part_extents(run, sweep, extent);
  for (;;) {
    for (int d = 0; d < of->rank; d++)
      part.hi[d] = part.lo[d] + extent[d] < of->dim[d] ? part.lo[d] + extent[d]
                                                       : of->dim[d];
    if (!part_compute(run, sweep, &part))
      return false;
    int d = of->rank - 1;
    while (d >= 0 && (part.lo[d] += extent[d]) >= of->dim[d])
      part.lo[d--] = 0;
    if (d < 0)
      return true;
  }
}

static bool sweep_run(host_run_t *run, host_sweep_t *sweep) {
  const sdg_graph_t *graph = run->graph;
  host_sweep_fill(run, sweep);
  for (int n = 0; n < graph->node_count; n++)
    if (sweep->sum[n] && !host_run_kind(run, n)->begin(run, &graph->node[n]))
      return false;
  if (!parts_compute(run, sweep))
    return false;
  for (int n = 0; n < graph->node_count; n++)
    if (sweep->sum[n]) {
      if (!host_run_kind(run, n)->end(run, &graph->node[n]))
        return false;
      run->done[n] = true;
    }
  for (int t = 0; t < graph->tensor_count; t++)
    if (sweep->result[t])
      run->tensor[t].source = run->data[t];
  return true;
}

static bool everything_compute(host_run_t *run, host_sweep_t *sweep) {
  const sdg_graph_t *graph = run->graph;
  for (int n = 0; n < graph->node_count; n++) {
    bool done;
    if (!host_conv_in_memory(run, &graph->node[n], &done))
      return false;
  }
  // Nodes are in order, so a sum's inputs need earlier sums only.
  for (int n = 0; n < graph->node_count; n++) {
    if (!host_run_is_sum(run, n) || run->done[n])
      continue;
    sweep->like =
        host_run_of(run, host_run_kind(run, n)->over(&graph->node[n]));
    if (!sweep_run(run, sweep))
      return false;
  }
  for (int t = 0; t < graph->tensor_count; t++)
    while (host_sweep_lacks(run, t)) {
      sweep->like = host_sweep_like(run, t);
      if (!sweep_run(run, sweep))
        return false;
    }
  return true;
}

static bool nodes_compute(host_run_t *run) {
  const sdg_graph_t *graph = run->graph;
  host_sweep_t sweep = {
      .result = calloc((size_t)graph->tensor_count + 1, sizeof(bool)),
      .sum = calloc((size_t)graph->node_count + 1, sizeof(bool))};
  bool good = sweep.result && sweep.sum && run_open(run) &&
              everything_compute(run, &sweep);
  run_close(run);
  free(sweep.result);
  free(sweep.sum);
  return good;
}

// Operations of several nodes are replaced by these first.
static bool compute(host_run_t *run) {
  sdg_graph_t *expanded;
  void **data;
  if (!host_has_composites(run->graph))
    return nodes_compute(run);
  if (!host_expand(run->graph, run->data, &expanded, &data))
    return false;
  run->graph = expanded;
  run->data = data;
  bool good = nodes_compute(run);
  free(data);
  sdg_graph_release(expanded);
  return good;
}

bool host_graph_compute(const sdg_graph_t *graph, void *const *data) {
  host_run_t run = {
      .graph = graph, .data = data, .part = PART_ELEMENTS, .adapts = true};
  return compute(&run);
}

bool host_run_parts(const sdg_graph_t *graph, void *const *data,
                    int64_t elements) {
  host_run_t run = {.graph = graph, .data = data, .part = elements};
  return compute(&run);
}
