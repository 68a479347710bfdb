// SPDX-License-Identifier: Apache-2.0
// Results of which each rank has a part: filter gradients, reductions,
// statistics.
//
// Sums and products are combined by one reduction over the ranks. For extremes
// the ranks gather all parts and reduce these with the vendor's
// function, as rules/reduce does for ReduceTensor.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/graph/maker.h"
#include "rules/graph/norm/norm.h"
#include "rules/graph/product/product.h"
#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"

const void *sdg_graph_no_beta(const sdg_call_t *call) {
  static const double zero = 0; // and 0 as a float
  (void)call;
  return &zero;
}

// ---- how parts are combined ------------------------------------------------

typedef struct how {
  bool gathers;
  sdg_combine_t combine; // otherwise
  double nothing;        // the part of a rank without elements
} how_t;

static how_t how_of(cudnnReduceTensorOp_t op) {
  switch (op) {
  case CUDNN_REDUCE_TENSOR_MIN:
    return (how_t){true, 0, INFINITY};
  case CUDNN_REDUCE_TENSOR_MAX:
    return (how_t){true, 0, -INFINITY};
  case CUDNN_REDUCE_TENSOR_AMAX:
    return (how_t){true, 0, 0};
  case CUDNN_REDUCE_TENSOR_MUL:
    return (how_t){false, SDG_COMBINE_PRODUCT, 1};
  default:
    return (how_t){false, SDG_COMBINE_SUM, 0};
  }
}

// The operator of the node that writes an operand; statistics are sums.
static cudnnReduceTensorOp_t op_of(const sdg_graph_pattern_t *p, int index) {
  const sdg_graph_node_t *node = &p->graph->node[p->writer[p->operand[index]]];
  return (cudnnReduceTensorOp_t)sdg_graph_integer(
      node, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD);
}

// ---- where the piece writes ------------------------------------------------

static const sdg_placement_t *level_place(const sdg_graph_maker_t *m) {
  return m->main.pattern->after == SDG_GRAPH_LEVEL_X
             ? &m->tagging->placement[m->main.spec.x]
             : &m->main.op.y_placement;
}

// The global extents of what the sum `index` is a sum of.
static sdg_status_t summed_extents(const sdg_graph_maker_t *m, int index,
                                   int64_t *out) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_graph_node_t *node = &p->graph->node[p->writer[p->operand[index]]];
  int64_t(*extent)[SDG_DIMS_MAX];
  SDG_TRY(SDG_ALLOCATE(extent, p->graph->tensor_count, "a plan"));
  sdg_graph_extents_find(m, extent);
  for (int i = 0; i < node->operand_count; i++)
    if (!sdg_graph_writes(node, node->operand[i].name))
      memcpy(out, extent[node->operand[i].tensor], sizeof *extent);
  free(extent);
  return SDG_OK;
}

// With one row of each rank the extents do not say whether the reduction keeps
// them or takes them together. To one number, it is of all ranks' rows; so are
// statistics.
static sdg_status_t ones_check(const sdg_graph_maker_t *m, int index,
                               const bool *reduced) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_placement_t *like = level_place(m);
  const sdg_operand_t *operand = &m->call->operand[index];
  bool one_number = true;
  for (int d = 0; d < operand->dims; d++)
    one_number &= operand->extent[d] == 1;
  if (one_number || p->graph->node[p->writer[p->operand[index]]].kind !=
                        CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
    return SDG_OK;
  for (int d = 0; d < like->dims; d++)
    if (like->split[d].axes && reduced[d] && like->part[d].pieces > 1 &&
        sdg_part_extent(&like->part[d]) == like->part[d].pieces)
      return sdg_fail(
          SDG_E_ONE_EACH,
          "sum of %s: %s is 1 on every rank, and so is that of the "
          "tensor that is reduced: the result may be a row of each "
          "rank, or the reduction of all rows (two rows on one rank would "
          "tell)",
          m->call->entry_name,
          m->product
              ? sdg_graph_product_name(m->main.pattern, SDG_GRAPH_LEVEL_Y, d)
              : sdg_tagging_name(m->call->family, operand->dims, d));
  return SDG_OK;
}

// How many elements each of the sum is the sum of. `all`, `out`: the global
// extents of what is summed, and of the sum.
static sdg_counts_t counts_of(const sdg_graph_maker_t *m, int index,
                              const int64_t *all, const int64_t *out) {
  const sdg_operand_t *operand = &m->call->operand[index];
  const sdg_box_t *own = &m->boxes.level[m->main.pattern->after];
  const sdg_placement_t *like = level_place(m);
  sdg_counts_t counts = {1, 1};
  for (int d = 0; d < operand->dims; d++) {
    bool split = like->split[d].axes && all[d] == sdg_placement_extent(like, d);
    int64_t here = split ? own->dim[d].hi - own->dim[d].lo : all[d];
    counts.all *= all[d] / out[d];
    counts.own *= here / operand->extent[d];
  }
  return counts;
}

static sdg_status_t reduction_open(sdg_graph_maker_t *m, int index,
                                   sdg_graph_sum_t *sum) {
  const sdg_placement_t *like = level_place(m);
  const sdg_operand_t *operand = &m->call->operand[index];
  const sdg_box_t *own = &m->boxes.level[m->main.pattern->after];
  bool reduced[SDG_DIMS_MAX] = {false};
  int64_t extent[SDG_DIMS_MAX], summed[SDG_DIMS_MAX];
  sdg_graph_operand_extents(m->call, m->tagging, index, extent);
  SDG_TRY(summed_extents(m, index, summed));
  *sum = (sdg_graph_sum_t){.operand = index,
                           .op = op_of(m->main.pattern, index),
                           .part = m->operand_slab[index],
                           .field.dims = like->dims,
                           .along = -1};
  for (int d = 0; d < like->dims; d++) {
    // What is broadcast along a split dimension is not in pieces.
    bool split =
        like->split[d].axes > 0 && summed[d] == sdg_placement_extent(like, d);
    reduced[d] = split && extent[d] == 1;
    sum->field.dim[d] =
        split && !reduced[d] ? own->dim[d] : (sdg_range_t){0, extent[d]};
    if (split && reduced[d])
      sum->along = d;
  }
  sum->box = sum->field;
  if (sum->op == CUDNN_REDUCE_TENSOR_ADD)
    m->plan->counts[index] = counts_of(m, index, summed, extent);
  sdg_merge_init(m->tagging, like, reduced, &sum->merge);
  if (!sum->merge.axes)
    return SDG_OK;
  if (sdg_merge_type(operand->type) < 0)
    return sdg_fail(SDG_E_TENSOR_TYPE, "a sum of %s", m->call->entry_name);
  if (!m->whole) {
    SDG_TRY(ones_check(m, index, reduced));
    SDG_TRY(sdg_tagging_sure(m->call, m->tagging));
  }
  return m->own_parts ? SDG_OK
                      : sdg_plan_scratch(m->plan, &sum->field,
                                         m->operand_slab[index], &sum->part);
}

static sdg_status_t gradient_open(sdg_graph_maker_t *m, int index,
                                  sdg_graph_sum_t *sum) {
  *sum = (sdg_graph_sum_t){.operand = index,
                           .is_gradient = true,
                           .box = sdg_operand_box(&m->call->operand[index])};
  if (m->tagging->sum_axes && !m->whole)
    SDG_TRY(sdg_tagging_sure(m->call, m->tagging));
  SDG_TRY(sdg_gradient_sum_open(m->plan, m->call, index, m->tagging->sum_axes,
                                sdg_graph_no_beta, &sum->gradient));
  sum->part = sum->gradient.part;
  return SDG_OK;
}

// Whole view: of a norm. The rank's part may be of some of its elements.
static sdg_status_t scale_open(sdg_graph_maker_t *m, int index,
                               sdg_graph_sum_t *sum) {
  SDG_TRY(gradient_open(m, index, sum));
  const sdg_box_t all = sum->box;
  sum->box = sdg_graph_operand_box(m->call, m->tagging, index,
                                   &m->boxes.level[SDG_GRAPH_LEVEL_W]);
  return m->idle || sdg_box_equal(&all, &sum->box)
             ? SDG_OK
             : sdg_plan_zero(m->plan, SDG_LANE_MAIN, sum->part, &all);
}

sdg_status_t sdg_graph_sums_open(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  for (int i = 0; i < p->operands; i++) {
    if (!m->call->operand[i].is_output)
      continue;
    if (p->after == SDG_GRAPH_LEVEL_W)
      SDG_TRY(gradient_open(m, i, &m->sum[m->sums++]));
    else if (p->node_levels[p->writer[p->operand[i]]] & SDG_GRAPH_SUM)
      SDG_TRY(reduction_open(m, i, &m->sum[m->sums++]));
    else if (m->whole && sdg_graph_norm_sums(m, i))
      SDG_TRY(scale_open(m, i, &m->sum[m->sums++]));
  }
  return SDG_OK;
}

bool sdg_graph_sums_any(const sdg_graph_maker_t *m) {
  for (int i = 0; i < m->sums; i++)
    if (m->sum[i].is_gradient ? m->tagging->sum_axes != 0
                              : m->sum[i].merge.axes != 0)
      return true;
  return false;
}

bool sdg_graph_sums_everyones(const sdg_graph_maker_t *m) {
  const sdg_placement_t *like = level_place(m);
  for (int i = 0; i < m->sums; i++)
    for (int d = 0; !m->sum[i].is_gradient && d < like->dims; d++)
      if (like->split[d].axes &&
          m->call->operand[m->sum[i].operand].extent[d] != 1)
        return false;
  return true;
}

// ---- combining -------------------------------------------------------------

static sdg_status_t reduction_close(sdg_graph_maker_t *m,
                                    const sdg_graph_sum_t *sum) {
  const sdg_operand_t *operand = &m->call->operand[sum->operand];
  how_t how = how_of(sum->op);
  sdg_type_t type = sdg_merge_type(operand->type);
  int ranks = sum->merge.ranks;
  sdg_subcall_tensor_t fields;
  SDG_TRY(sdg_merge_fields(m->plan, &sum->field, sum->along,
                           how.gathers ? ranks + 1 : 1, sum->part, type,
                           &fields));
  sdg_subcall_tensor_t all = sdg_merge_slot(&fields, sum->along, 0, 1),
                       own = all;
  if (how.gathers) {
    // Zeros where other ranks have their parts, so that a sum gathers.
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, fields.slab, &fields.box));
    own = sdg_merge_slot(&fields, sum->along, sum->merge.me, 1);
  }
  sdg_subcall_tensor_t part =
      sdg_subcall_slab(m->plan, sum->part, operand->type);
  SDG_TRY(m->idle ? sdg_subcall_set(m->plan, how.nothing, &own)
                  : sdg_subcall_transform(m->plan, 1, &part, 0, &own));
  m->plan->reduce_axes = sum->merge.axes;
  SDG_TRY(sdg_plan_reduce(m->plan, fields.slab, type,
                          how.gathers ? SDG_COMBINE_SUM : how.combine));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  if (how.gathers) {
    sdg_subcall_tensor_t parts = sdg_merge_slot(&fields, sum->along, 0, ranks);
    all = sdg_merge_slot(&fields, sum->along, ranks, 1);
    SDG_TRY(
        sdg_subcall_reduce_extreme(m->plan, sum->op, false, 1, &parts, &all));
  }
  sdg_subcall_tensor_t result =
      sdg_subcall_slab(m->plan, m->operand_slab[sum->operand], operand->type);
  result.box = sum->field;
  return sdg_subcall_transform(m->plan, 1, &all, 0, &result);
}

sdg_status_t sdg_graph_sums_close(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->sums; i++) {
    const sdg_graph_sum_t *sum = &m->sum[i];
    if (sum->is_gradient) {
      m->plan->reduce_axes = m->tagging->sum_axes;
      if (m->idle)
        SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &sum->gradient));
      SDG_TRY(sdg_gradient_sum_close(m->plan, m->call, &sum->gradient));
    } else if (sum->merge.axes) {
      SDG_TRY(reduction_close(m, sum));
    }
  }
  return SDG_OK;
}
