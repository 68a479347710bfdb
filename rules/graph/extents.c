// SPDX-License-Identifier: Apache-2.0
// Extents and strides of a piece's tensors.
#include <stdlib.h>
#include <string.h>

#include "rules/graph/maker.h"

// The slab of an operand on a level.
static int slab_of(const sdg_graph_maker_t *m, int index,
                   sdg_graph_level_t level) {
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].operand == index && m->input[i].level == level &&
        m->input[i].assembled >= 0)
      return m->input[i].assembled;
  for (int i = 0; i < m->sums; i++)
    if (m->sum[i].operand == index)
      return m->sum[i].part;
  return m->apart[index] >= 0 ? m->apart[index] : m->operand_slab[index];
}

// Whether an operand is images of several strips.
static bool is_stacked(const sdg_graph_maker_t *m, int index,
                       sdg_graph_level_t level) {
  bool stacked = m->apart[index] >= 0;
  for (int i = 0; i < m->inputs; i++)
    stacked |= m->input[i].operand == index && m->input[i].level == level &&
               m->input[i].assembled >= 0;
  return stacked && m->images > 1;
}

// The global extents of an operand, or those of its images. Strips in a stack
// have what is not assembled in common: it is one image.
static void operand_extents(const sdg_graph_maker_t *m, int index,
                            int64_t *out) {
  sdg_graph_operand_extents(m->call, m->tagging, index, out);
  if (m->images < 2)
    return;
  bool stacked = is_stacked(m, index, SDG_GRAPH_LEVEL_X) ||
                 is_stacked(m, index, SDG_GRAPH_LEVEL_Y);
  out[0] = stacked ? m->images * out[0] : 1;
}

// The box of an operand on a level, in the coordinates of its slab.
static sdg_box_t box_of(const sdg_graph_maker_t *m, int index,
                        sdg_graph_level_t level) {
  for (int i = 0; i < m->sums; i++)
    if (m->sum[i].operand == index)
      return m->sum[i].box;
  if (level == SDG_GRAPH_LEVEL_W && !m->norm)
    return sdg_operand_box(&m->call->operand[index]);
  sdg_box_t box =
      sdg_graph_operand_box(m->call, m->tagging, index, &m->boxes.level[level]);
  if (is_stacked(m, index, level))
    box.dim[0] = m->boxes.level[level].dim[0];
  return box;
}

// The operand that a tensor of the graph is; -1: it has no memory.
static int operand_of(const sdg_graph_pattern_t *p, int t) {
  int i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return i < p->operands ? i : -1;
}

int sdg_graph_slot_find(const sdg_graph_maker_t *m, int t,
                        sdg_graph_level_t level, sdg_box_t *out_box) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int operand = operand_of(p, t);
  if (operand >= 0) {
    *out_box = box_of(m, operand, level);
    return slab_of(m, operand, level);
  }
  if (m->prologue_slab < 0 || level != SDG_GRAPH_LEVEL_X ||
      t != p->tensor[SDG_GRAPH_LEVEL_X])
    return -1;
  bool rest = m->extents->part == SDG_GRAPH_REST;
  *out_box = rest ? m->boxes.read : m->boxes.level[SDG_GRAPH_LEVEL_X];
  return rest ? m->prologue_slab : m->prologue_result;
}

// Those of all that is computed of the main op's result.
static void result_extents(const sdg_graph_maker_t *m, int64_t *out) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  if (p->result >= 0) {
    operand_extents(m, p->result, out);
    return;
  }
  for (int d = 0; d < m->main.op.dims; d++)
    out[d] = sdg_placement_extent(&m->main.op.y_placement, d);
}

// Global extents of all tensors: those of operands are known, pointwise ops
// pass on the larger one of their inputs'.
void sdg_graph_extents_find(const sdg_graph_maker_t *m,
                            int64_t (*extent)[SDG_DIMS_MAX]) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_graph_t *graph = p->graph;
  for (int t = 0; t < graph->tensor_count; t++) {
    int operand = operand_of(p, t);
    memcpy(extent[t], graph->tensor[t].dim, sizeof extent[t]);
    if (operand >= 0)
      operand_extents(m, operand, extent[t]);
  }
  if (m->norm && m->whole) // the graph's tensors are the whole ones
    return;
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    int64_t most[SDG_DIMS_MAX] = {0};
    for (int i = 0; i < node->operand_count; i++)
      for (int d = 0; !sdg_graph_writes(node, node->operand[i].name) &&
                      d < graph->tensor[node->operand[i].tensor].rank;
           d++)
        if (extent[node->operand[i].tensor][d] > most[d])
          most[d] = extent[node->operand[i].tensor][d];
    for (int i = 0; i < node->operand_count; i++) {
      int t = node->operand[i].tensor;
      if (!sdg_graph_writes(node, node->operand[i].name) ||
          operand_of(p, t) >= 0)
        continue;
      if (p->node_levels[n] & SDG_GRAPH_AFTER)
        result_extents(m, extent[t]);
      else
        memcpy(extent[t], most, sizeof extent[t]);
    }
  }
}

// Strides of a tensor without memory: packed, its dimensions nest as the
// program's do; where extents of 1 hide that, as those of the first activation.
static void virtual_stride(const sdg_graph_maker_t *m,
                           const sdg_graph_tensor_t *tensor,
                           sdg_graph_shape_t *shape) {
  sdg_box_t box = {.dims = tensor->rank};
  const int64_t *like = tensor->stride;
  for (int d = 0; d < tensor->rank; d++) {
    box.dim[d] = (sdg_range_t){0, shape->dim[d]};
    if (tensor->dim[d] == 1)
      like = sdg_operand_nesting(&m->call->operand[0]);
  }
  sdg_slab_pack(&box, like, shape->stride);
}

// The stride of an extent of 1 that nests around those below it: that of n in
// [1, c, h, w] in NHWC is c h w.
static int64_t nested(int rank, const int64_t *dim, const int64_t *stride,
                      int d) {
  int64_t most = 1;
  for (int e = 0; e < rank; e++)
    if (e != d && dim[e] > 1 && stride[e] <= stride[d] &&
        stride[e] * dim[e] > most)
      most = stride[e] * dim[e];
  return most;
}

// In a part of a tensor, strides of extents of 1 are still those of the whole.
// They say nothing, but engines that want packed tensors look at them.
static void ones_nest(const sdg_graph_tensor_t *tensor,
                      sdg_graph_shape_t *shape) {
  for (int d = 0; d < tensor->rank; d++)
    if (shape->dim[d] == 1 &&
        (tensor->dim[d] > 1 ||
         tensor->stride[d] ==
             nested(tensor->rank, tensor->dim, tensor->stride, d)))
      shape->stride[d] = nested(tensor->rank, shape->dim, shape->stride, d);
}

static void shape_fill(const sdg_graph_maker_t *m, int t,
                       sdg_graph_level_t level, const int64_t *extent) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_graph_tensor_t *tensor = &p->graph->tensor[t];
  sdg_graph_shape_t *shape = &m->extents->shape[t][level];
  const sdg_box_t *box = &m->boxes.level[level];
  sdg_box_t at;
  int slab_index = sdg_graph_slot_find(m, t, level, &at);
  *shape = sdg_graph_shape_of(tensor);
  if (tensor->is_by_value)
    return;
  if (slab_index < 0) {
    bool all = level == SDG_GRAPH_LEVEL_W && !m->norm;
    for (int d = 0; d < tensor->rank && !all; d++)
      if (d != 1 || !m->main.op.mixes)
        shape->dim[d] = extent[d] == 1 ? 1 : box->dim[d].hi - box->dim[d].lo;
    virtual_stride(m, tensor, shape);
    return;
  }
  const sdg_slab_t *slab = &m->plan->slab[slab_index];
  int64_t offset = 0; // elements
  if (m->prologue_slab >= 0 &&
      (slab_index == m->prologue_slab || slab_index == m->prologue_result)) {
    shape->type = m->call->operand[m->main.spec.x].type;
    shape->is_virtual = false;
  }
  memcpy(shape->stride, slab->stride, sizeof shape->stride);
  for (int d = 0; d < at.dims; d++)
    shape->dim[d] = at.dim[d].hi - at.dim[d].lo;
  for (int d = 0; d < at.dims; d++)
    offset += (at.dim[d].lo - slab->box.dim[d].lo) * slab->stride[d];
  ones_nest(tensor, shape);
  while (offset * slab->elem_bytes % shape->alignment != 0)
    shape->alignment /= 2;
}

sdg_status_t sdg_graph_extents_fill(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int64_t(*extent)[SDG_DIMS_MAX];
  SDG_TRY(SDG_ALLOCATE(extent, p->graph->tensor_count, "a plan"));
  sdg_graph_extents_find(m, extent);
  m->extents->pattern = p;
  memcpy(m->extents->pre, m->boxes.pre, sizeof m->extents->pre);
  memcpy(m->extents->post, m->boxes.post, sizeof m->extents->post);
  for (int t = 0; t < p->graph->tensor_count; t++)
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
      if (p->tensor_levels[t] >> level & 1)
        shape_fill(m, t, (sdg_graph_level_t)level, extent[t]);
  free(extent);
  return SDG_OK;
}
