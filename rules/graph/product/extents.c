// SPDX-License-Identifier: Apache-2.0
// Extents and strides of the tensors of a piece with a product. In the shard
// view they are the program's own; in the whole view parts of them.
#include <string.h>

#include "rules/graph/product/product.h"

static int operand_of(const sdg_graph_pattern_t *p, int t) {
  int i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return i < p->operands ? i : -1;
}

// Whether the tensor is the product's result, which this part of the graph has
// in memory as sums.
static bool has_terms(const sdg_graph_maker_t *m, int t,
                      sdg_graph_level_t level) {
  return m->product->terms >= 0 && level == SDG_GRAPH_LEVEL_Y &&
         t == m->main.pattern->tensor[SDG_GRAPH_LEVEL_Y];
}

int sdg_graph_product_slot_find(const sdg_graph_maker_t *m, int t,
                                sdg_graph_level_t level, sdg_box_t *out_box) {
  int slab = m->product->terms;
  int index = operand_of(m->main.pattern, t);
  if (!has_terms(m, t, level)) {
    for (int i = 0; i < m->sums; i++)
      if (m->sum[i].operand == index) {
        *out_box = m->sum[i].box;
        return m->sum[i].part;
      }
    if (index < 0)
      return -1;
    slab = m->operand_slab[index];
  }
  *out_box = m->plan->slab[slab].box;
  if (m->whole)
    *out_box = sdg_graph_operand_box(m->call, m->tagging, index,
                                     &m->boxes.level[level]);
  return slab;
}

static void virtual_fill(const sdg_graph_maker_t *m,
                         const sdg_graph_tensor_t *tensor,
                         sdg_graph_level_t level, sdg_graph_shape_t *shape) {
  sdg_box_t box = m->boxes.level[level];
  for (int d = 0; d < tensor->rank; d++) {
    if (tensor->dim[d] == 1)
      box.dim[d] = (sdg_range_t){0, 1};
    shape->dim[d] = box.dim[d].hi - box.dim[d].lo;
  }
  sdg_slab_pack(&box, tensor->stride, shape->stride);
}

static void shape_fill(const sdg_graph_maker_t *m, int t,
                       sdg_graph_level_t level) {
  const sdg_graph_tensor_t *tensor = &m->main.pattern->graph->tensor[t];
  sdg_graph_shape_t *shape = &m->extents->shape[t][level];
  sdg_box_t at;
  int64_t offset = 0; // elements
  *shape = sdg_graph_shape_of(tensor);
  if (tensor->is_by_value)
    return;
  int index = sdg_graph_product_slot_find(m, t, level, &at);
  if (index < 0) {
    if (m->whole)
      virtual_fill(m, tensor, level, shape);
    return;
  }
  const sdg_slab_t *slab = &m->plan->slab[index];
  if (has_terms(m, t, level)) {
    shape->type = m->product->type;
    shape->is_virtual = false;
    shape->alignment = slab->operand < 0 ? 16 : tensor->alignment;
  }
  memcpy(shape->stride, slab->stride, sizeof shape->stride);
  for (int d = 0; d < at.dims; d++) {
    shape->dim[d] = at.dim[d].hi - at.dim[d].lo;
    offset += (at.dim[d].lo - slab->box.dim[d].lo) * slab->stride[d];
  }
  while (offset * slab->elem_bytes % shape->alignment != 0)
    shape->alignment /= 2;
}

// ---- pointwise ops alone ---------------------------------------------------

// Engines of pointwise ops want four dimensions N C H W with C innermost. The
// matrices' dimension that is innermost becomes C, the other one H (W, if a
// dimension of the batch is H). Of [b, m, n]: N b, C n, H m, W 1.
static void image_order(const sdg_graph_maker_t *m, int rank, int *out_from) {
  const sdg_slab_t *terms = &m->plan->slab[m->product->terms];
  int rows = rank - 2, columns = rank - 1;
  bool by_rows = sdg_box_length(&terms->box, rows) == 1 ||
                 (sdg_box_length(&terms->box, columns) > 1 &&
                  terms->stride[columns] <= terms->stride[rows]);
  out_from[0] = rank > 2 ? 0 : -1;
  out_from[1] = by_rows ? columns : rows;
  out_from[2] = by_rows ? rows : columns;
  out_from[3] = -1;
  if (rank == 4) {
    out_from[3] = out_from[2];
    out_from[2] = 1;
  }
}

static void image_make(sdg_graph_shape_t *shape, const int *from) {
  sdg_graph_shape_t as = *shape;
  int64_t all = 1;
  for (int i = 0; i < 4; i++)
    all *= from[i] < 0 ? 1 : shape->dim[from[i]];
  for (int i = 0; i < 4; i++) {
    int d = from[i] >= 0 ? from[i] : from[2];
    as.dim[i] = from[i] < 0 ? 1 : shape->dim[d];
    as.stride[i] = i == 0 && from[0] < 0 ? all : shape->stride[d];
  }
  *shape = as;
}

static void images_make(const sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int from[4], rank = p->spatial + 2;
  m->extents->rank = 0;
  if (m->extents->part != SDG_GRAPH_EPILOGUE || rank > 4)
    return;
  image_order(m, rank, from);
  m->extents->rank = 4;
  for (int t = 0; t < p->graph->tensor_count; t++) {
    sdg_graph_shape_t *shape = &m->extents->shape[t][SDG_GRAPH_LEVEL_Y];
    if (!p->graph->tensor[t].is_by_value)
      image_make(shape, from);
    for (int d = 0; p->graph->tensor[t].is_by_value && d < 4; d++)
      shape->dim[d] = shape->stride[d] = 1;
  }
}

sdg_status_t sdg_graph_product_extents_fill(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  m->extents->pattern = p;
  for (int t = 0; t < p->graph->tensor_count; t++)
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
      if (p->tensor_levels[t] >> level & 1)
        shape_fill(m, t, (sdg_graph_level_t)level);
  images_make(m);
  return SDG_OK;
}
