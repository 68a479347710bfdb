// SPDX-License-Identifier: Apache-2.0
// A norm whose statistics are of all ranks: what stands in front of it, and
// behind it, are graphs of their own.
#include <string.h>

#include "rules/graph/norm/norm.h"
#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"

// Whether the graph has ops in front of the norm, and behind it.
static bool has_front(const sdg_graph_pattern_t *p) {
  for (int n = 0; n < p->graph->node_count; n++)
    if (p->node_levels[n] >> SDG_GRAPH_LEVEL_X & 1)
      return true;
  return false;
}

static bool has_rear(const sdg_graph_pattern_t *p) {
  for (int n = 0; n < p->graph->node_count; n++)
    if (n != p->main && (p->node_levels[n] & SDG_GRAPH_AFTER))
      return true;
  return false;
}

static int operand_of(const sdg_graph_pattern_t *p, int t) {
  int i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return i < p->operands ? i : -1;
}

// What has no memory of the program's gets scratch, with x's order.
static sdg_status_t inner_open(sdg_graph_maker_t *m,
                               sdg_graph_norm_inner_t which, sdg_role_t role) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int t = sdg_graph_norm_tensor(m->norm->node, role, true);
  int index = t < 0 ? -1 : operand_of(p, t);
  m->norm->tensor[which] = t;
  m->norm->slab[which] = index < 0 ? -1 : m->operand_slab[index];
  return t < 0 || index >= 0
             ? SDG_OK
             : sdg_plan_scratch_of(
                   m->plan, &m->boxes.level[SDG_GRAPH_LEVEL_X],
                   (int)sdg_graph_type_bytes(p->graph->tensor[t].type),
                   m->operand_slab[0], &m->norm->slab[which]);
}

static sdg_status_t inners_open(sdg_graph_maker_t *m) {
  bool back = m->norm->kind.backward;
  SDG_TRY(inner_open(m, SDG_GRAPH_NORM_OF_X, SDG_ROLE_X));
  SDG_TRY(inner_open(m, SDG_GRAPH_NORM_OF_DY, SDG_ROLE_DY));
  return inner_open(m, SDG_GRAPH_NORM_RESULT, back ? SDG_ROLE_DX : SDG_ROLE_Y);
}

static sdg_status_t pieces_open(sdg_graph_maker_t *m, int *out_front,
                                int *out_rear, int *out_refusal) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  SDG_TRY(SDG_ALLOCATE(m->extents, 1, "a plan"));
  if (has_front(p))
    SDG_TRY(sdg_graph_part_open(m, SDG_GRAPH_PROLOGUE, out_front, out_refusal));
  if (!*out_refusal && has_rear(p))
    SDG_TRY(sdg_graph_part_open(m, SDG_GRAPH_EPILOGUE, out_rear, out_refusal));
  return SDG_OK;
}

sdg_status_t sdg_graph_norm_merge(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int front = -1, rear = -1, refusal = 0;
  SDG_TRY(sdg_graph_norm_steps_check(m));
  SDG_TRY(sdg_tagging_sure(m->call, m->tagging));
  SDG_TRY(sdg_plan_create("merge", &m->plan));
  m->plan->why = "statistics cover all ranks: each rank's are merged with the "
                 "others', and then each rank computes its own part";
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_graph_norm_slabs(m));
  SDG_TRY(sdg_graph_sums_open(m));
  SDG_TRY(inners_open(m));
  SDG_TRY(pieces_open(m, &front, &rear, &refusal));
  SDG_TRY(sdg_graph_refusals_compare(m->call, refusal));
  if (has_front(p))
    SDG_TRY(sdg_plan_call(m->plan, front));
  SDG_TRY(sdg_graph_norm_steps(m));
  if (has_rear(p))
    SDG_TRY(sdg_plan_call(m->plan, rear));
  return sdg_graph_sums_close(m);
}
