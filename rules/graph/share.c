// SPDX-License-Identifier: Apache-2.0
// Plans of graphs in the whole view: pieces in place.
#include <stdlib.h>

#include "rules/graph/maker.h"
#include "rules/graph/norm/norm.h"
#include "rules/graph/plan.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"

static void box_hull(const sdg_box_t *more, sdg_box_t *io_box) {
  if (sdg_box_empty(more))
    return;
  if (sdg_box_empty(io_box))
    *io_box = *more;
  for (int d = 0; d < more->dims; d++) {
    if (more->dim[d].lo < io_box->dim[d].lo)
      io_box->dim[d].lo = more->dim[d].lo;
    if (more->dim[d].hi > io_box->dim[d].hi)
      io_box->dim[d].hi = more->dim[d].hi;
  }
}

// What each rank of the job reads of an input: its boxes on all levels.
static sdg_status_t reads_fill(const sdg_graph_maker_t *m, sdg_share_t *share,
                               int index) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  unsigned levels = p->tensor_levels[p->operand[index]];
  sdg_box_t *box;
  if ((levels >> SDG_GRAPH_LEVEL_W & 1) && !m->product && !m->norm)
    return SDG_OK; // all of it
  SDG_TRY(sdg_share_reads(share, index, &box));
  for (int r = 0; r < share->ranks; r++) {
    sdg_graph_boxes_t boxes = sdg_graph_boxes(&m->main, m->tagging, r);
    box[r].dims = m->main.op.dims;
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++) {
      if (!(levels >> level & 1) || sdg_box_empty(&boxes.level[level]))
        continue;
      sdg_box_t need = sdg_graph_operand_box(m->call, m->tagging, index,
                                             &boxes.level[level]);
      box_hull(&need, &box[r]);
    }
  }
  return SDG_OK;
}

// Adds a result, which may have one element where the others have more: that
// dimension is not split.
static sdg_status_t result_share(const sdg_graph_maker_t *m, sdg_share_t *share,
                                 int index, const sdg_placement_t *place) {
  const sdg_operand_t *operand = &m->call->operand[index];
  int from[SDG_DIMS_MAX];
  sdg_placement_t own;
  for (int d = 0; d < operand->dims; d++)
    from[d] = operand->extent[d] == sdg_placement_extent(place, d) ? d : -1;
  SDG_TRY(sdg_placement_like(operand->dims, operand->extent, m->tagging->mesh,
                             place, from, &own));
  sdg_status_t status = sdg_share_output(share, index, &own);
  sdg_placement_fini(&own);
  return status;
}

static sdg_status_t share_fill(const sdg_graph_maker_t *m, sdg_share_t *share) {
  const sdg_placement_t *place = sdg_graph_result_place(&m->main, m->tagging);
  const sdg_graph_pattern_t *p = m->main.pattern;
  for (int i = 0; i < p->operands; i++) {
    bool output = m->call->operand[i].is_output;
    bool sum = m->norm ? sdg_graph_norm_sums(m, i)
                       : p->tensor_levels[p->operand[i]] & SDG_GRAPH_SUM;
    if (output && place && !sum)
      SDG_TRY(result_share(m, share, i, place));
    else if (output)
      SDG_TRY(sdg_gradient_sum_share(share, m->call, i,
                                     sdg_graph_no_beta(m->call)));
    else
      SDG_TRY(reads_fill(m, share, i));
  }
  return SDG_OK;
}

// Whether a result is combined of all ranks' parts.
static bool is_combined(const sdg_graph_maker_t *m, int index) {
  for (int i = 0; i < m->sums; i++)
    if (m->sum[i].operand == index)
      return m->sum[i].is_gradient || m->sum[i].merge.axes == m->tagging->axes;
  return false;
}

// Whether a rank that computes nothing has to have part of a result.
static bool idle_lacks(const sdg_graph_maker_t *m, const sdg_share_t *share) {
  for (int r = 0; r < share->ranks; r++) {
    sdg_graph_boxes_t boxes = sdg_graph_boxes(&m->main, m->tagging, r);
    bool idle = sdg_box_empty(&boxes.level[SDG_GRAPH_LEVEL_X]) &&
                sdg_box_empty(&boxes.level[SDG_GRAPH_LEVEL_Y]);
    for (int i = 0; idle && i < share->outputs; i++) {
      sdg_box_t own =
          sdg_placement_box(&share->output[i].placement, m->tagging->mesh, r);
      if (!sdg_box_empty(&own) && !is_combined(m, share->output[i].operand))
        return true;
    }
  }
  return false;
}

// *out_why: why every rank carries out all of it: one has no engine, or results
// are reduced and split, or a rank would lack some.
static sdg_status_t whole_make(sdg_graph_maker_t *m, const sdg_share_t *share,
                               const char **out_why) {
  int mine = 0, refusal, rank;
  m->idle = sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_X]) &&
            sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_Y]);
  SDG_TRY(sdg_plan_create("window", &m->plan));
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_graph_inputs_open(m));
  SDG_TRY(sdg_graph_sums_open(m));
  // On all ranks:
  if (!sdg_graph_sums_everyones(m))
    *out_why = "a sum that keeps a dimension that is split";
  else if (idle_lacks(m, share))
    *out_why = "a rank that computes nothing, and would lack a result";
  if (*out_why)
    return SDG_OK;
  if (!m->idle)
    SDG_TRY(sdg_graph_piece_open(m, &mine));
  SDG_TRY(sdg_graph_refusals_gather(m->call, mine, &refusal, &rank));
  if (refusal) {
    *out_why = "a rank's piece that cuDNN has no engine for";
    return SDG_OK;
  }
  if (!m->idle)
    SDG_TRY(sdg_graph_piece_compute(m));
  return sdg_graph_sums_close(m);
}

sdg_status_t sdg_graph_share_make(sdg_graph_maker_t *m, sdg_plan_t **out_plan) {
  sdg_share_t *share;
  const char *why = NULL;
  m->boxes = sdg_graph_boxes(&m->main, m->tagging, m->tagging->rank);
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(m->tagging->mesh), &share));
  sdg_status_t status = share_fill(m, share);
  if (status == SDG_OK)
    status = whole_make(m, share, &why);
  // Every rank carries out all of it.
  if (status == SDG_OK && why) {
    sdg_plan_destroy(m->plan);
    sdg_share_destroy(share);
    return sdg_in_full_plan(why, out_plan);
  }
  status = sdg_plan_finish(m->plan, status, out_plan);
  return sdg_plan_finish_share(share, status, out_plan);
}

sdg_status_t sdg_graph_share(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) {
  struct {
    sdg_graph_maker_t maker;
    sdg_tagging_t placed; // with the placement of a data gradient
  } * all;
  bool can;
  *out_plan = NULL;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_graph_maker_t *m = &all->maker;
  all->placed = *tagging;
  m->call = call;
  m->tagging = &all->placed;
  m->whole = true;
  sdg_status_t status =
      sdg_graph_main_init_whole(call, &all->placed, &m->main, &can);
  if (status == SDG_OK && can) {
    status = sdg_graph_share_make(m, out_plan);
    sdg_graph_main_fini(&m->main);
    if (sdg_graph_is_back(m->main.pattern))
      sdg_placement_fini(&all->placed.placement[m->main.spec.x]);
  }
  free(m->extents);
  free(all);
  return status;
}
