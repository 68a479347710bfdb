// SPDX-License-Identifier: Apache-2.0
// A norm in the whole view: the ranks share out the rows of x, which are all
// dimensions that it is not normalised over. The piece has the whole graph.
#include <stdlib.h>

#include "rules/graph/norm/norm.h"
#include "rules/graph/plan.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"

sdg_graph_boxes_t sdg_graph_norm_boxes(const sdg_tagging_t *tagging, int rank) {
  sdg_graph_boxes_t out = {
      .read = sdg_placement_box(&tagging->placement[0], tagging->mesh, rank)};
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
    out.level[level] = out.read;
  return out;
}

// Gradients of scale and bias are sums but where all pieces have their own. A
// reduction behind the norm is one.
bool sdg_graph_norm_sums(const sdg_graph_maker_t *m, int index) {
  sdg_role_t role = m->call->operand[index].role;
  bool gradient = role == SDG_ROLE_DSCALE || role == SDG_ROLE_DSHIFT;
  return m->norm && (role == SDG_ROLE_SUM ||
                     (gradient && sdg_graph_norm_part_axes(m->norm)));
}

// Where the ranks' rows are: as the section has x, but for what is normalised.
static sdg_status_t rows_place(const sdg_call_t *call,
                               const sdg_tagging_t *said, sdg_tagging_t *out) {
  const sdg_operand_t *x = &call->operand[0];
  int from[SDG_DIMS_MAX];
  sdg_graph_norm_t norm;
  sdg_graph_norm_open(call, said, &norm);
  for (int d = 0; d < x->dims; d++)
    from[d] =
        norm.cut[d] && !sdg_graph_norm_over(call, said, &norm, d) ? d : -1;
  SDG_TRY(sdg_placement_like(x->dims, x->extent, said->mesh,
                             &said->placement[0], from, &out->placement[0]));
  sdg_tagging_span(out, sdg_placement_axes(&out->placement[0]));
  out->sum_axes = out->axes;
  return SDG_OK;
}

// Whether every tensor in memory has x's extent in what is shared out, or 1.
static bool extents_fit(const sdg_call_t *call, const sdg_graph_norm_t *norm) {
  for (int i = 0; i < call->operands; i++)
    for (int d = 0; d < norm->x->dims; d++)
      if (norm->cut[d] && call->operand[i].extent[d] != 1 &&
          call->operand[i].extent[d] != sdg_placement_extent(norm->x, d))
        return false;
  return true;
}

static sdg_status_t shared(sdg_graph_maker_t *m, sdg_plan_t **out_plan) {
  sdg_graph_norm_open(m->call, m->tagging, m->norm);
  if (!m->tagging->axes)
    return sdg_in_full_plan("a split of nothing but what x is normalised over",
                            out_plan);
  if (!extents_fit(m->call, m->norm))
    return SDG_OK;
  SDG_TRY(sdg_graph_norm_result(m));
  sdg_status_t status = sdg_graph_share_make(m, out_plan);
  sdg_placement_fini(&m->main.op.y_placement);
  return status;
}

sdg_status_t sdg_graph_norm_share(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  sdg_plan_t **out_plan) {
  struct {
    sdg_graph_maker_t maker;
    sdg_graph_norm_t norm;
    sdg_tagging_t placed;
  } * all;
  *out_plan = NULL;
  if (tagging->placement[0].dims != call->operand[0].dims)
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_graph_maker_t *m = &all->maker;
  all->placed = *tagging;
  m->call = call;
  m->tagging = &all->placed;
  m->whole = true;
  m->norm = &all->norm;
  m->main.pattern = sdg_graph_call_execution(call)->pattern;
  sdg_status_t status = rows_place(call, tagging, &all->placed);
  if (status == SDG_OK) {
    status = shared(m, out_plan);
    sdg_placement_fini(&all->placed.placement[0]);
  }
  free(m->extents);
  free(all);
  return status;
}
