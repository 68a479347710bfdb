// SPDX-License-Identifier: Apache-2.0
// Extents and strides of the tensors of a piece beside a norm: the program's
// own, and what the norm reads or writes is in memory.
#include <string.h>

#include "rules/graph/norm/norm.h"

static int operand_of(const sdg_graph_pattern_t *p, int t) {
  int i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return i < p->operands ? i : -1;
}

int sdg_graph_norm_slot_find(const sdg_graph_maker_t *m, int t,
                             sdg_graph_level_t level, sdg_box_t *out_box) {
  int index = operand_of(m->main.pattern, t), slab = -1;
  (void)level;
  for (int i = 0; i < m->sums; i++)
    if (m->sum[i].operand == index) {
      *out_box = m->sum[i].box;
      return m->sum[i].part;
    }
  for (int i = 0; i < SDG_GRAPH_NORM_INNERS; i++)
    if (m->norm->tensor[i] == t)
      slab = m->norm->slab[i];
  if (slab < 0 && index >= 0)
    slab = m->operand_slab[index];
  if (slab >= 0)
    *out_box = m->plan->slab[slab].box;
  return slab;
}

static void shape_fill(const sdg_graph_maker_t *m, int t,
                       sdg_graph_level_t level) {
  const sdg_graph_tensor_t *tensor = &m->main.pattern->graph->tensor[t];
  sdg_graph_shape_t *shape = &m->extents->shape[t][level];
  sdg_box_t at;
  *shape = sdg_graph_shape_of(tensor);
  if (tensor->is_by_value)
    return;
  int index = sdg_graph_norm_slot_find(m, t, level, &at);
  if (index < 0)
    return;
  shape->is_virtual = false;
  memcpy(shape->stride, m->plan->slab[index].stride, sizeof shape->stride);
  for (int d = 0; d < at.dims; d++)
    shape->dim[d] = at.dim[d].hi - at.dim[d].lo;
}

sdg_status_t sdg_graph_norm_extents_fill(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  m->extents->pattern = p;
  for (int t = 0; t < p->graph->tensor_count; t++)
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
      if (p->tensor_levels[t] >> level & 1)
        shape_fill(m, t, (sdg_graph_level_t)level);
  return SDG_OK;
}
