// SPDX-License-Identifier: Apache-2.0
// Which tensors of a norm are in pieces, and which dimensions it normalises.
#include "rules/graph/norm/norm.h"

#include <string.h>

#include "rules/place/tagging.h"

// ---- extents of all ranks --------------------------------------------------

static const sdg_graph_pattern_t *pattern_of(const sdg_call_t *call) {
  return sdg_graph_call_execution(call)->pattern;
}

static int operand_of(const sdg_graph_pattern_t *p, int t) {
  int i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return i < p->operands ? i : -1;
}

static int64_t extent_of(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         int index, int d) {
  const sdg_placement_t *placement = &tagging->placement[index];
  return placement->dims ? sdg_placement_extent(placement, d)
                         : call->operand[index].extent[d];
}

// The global extent of a tensor, which may be computed of others.
static int64_t tensor_extent(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int t, int d) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  int index = operand_of(p, t);
  int64_t most = 1;
  if (index >= 0)
    return extent_of(call, tagging, index, d);
  if (p->graph->tensor[t].is_by_value || p->writer[t] < 0)
    return 1;
  const sdg_graph_node_t *node = &p->graph->node[p->writer[t]];
  for (int i = 0; i < node->operand_count; i++) {
    const sdg_graph_operand_t *operand = &node->operand[i];
    if (sdg_graph_writes(node, operand->name))
      continue;
    int64_t extent = tensor_extent(call, tagging, operand->tensor, d);
    most = extent > most ? extent : most;
  }
  return most;
}

// Whether each rank has one element of x along d.
static bool one_each(const sdg_placement_t *x, int d) {
  return x->part[d].pieces > 1 &&
         sdg_part_extent(&x->part[d]) == x->part[d].pieces;
}

// ---- what is normalised ----------------------------------------------------

static bool is_rows(cudnnBackendNormMode_t mode) {
  return mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM ||
         mode == CUDNN_ADA_LAYER_NORM;
}

// What elements along dimension d share; layer norms share nothing along a
// dimension that is cut.
static void dim_read(sdg_graph_norm_t *norm, int d) {
  bool batch = norm->kind.mode == CUDNN_BATCH_NORM;
  bool rows = is_rows(norm->kind.mode);
  norm->cut[d] = norm->x->split[d].axes > 0 && norm->x->part[d].pieces > 1;
  if (!norm->cut[d])
    return;
  norm->shared[d] = !rows && (batch ? d != 1 : d > 1);
  norm->scaled[d] =
      rows ? norm->kind.mode == CUDNN_ADA_LAYER_NORM && d == 0 : d == 1;
}

static bool has_parts(const sdg_graph_norm_t *norm) {
  return norm->kind.backward || norm->kind.computes;
}

void sdg_graph_norm_open(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         sdg_graph_norm_t *out) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  const sdg_graph_node_t *node = &p->graph->node[p->main];
  *out = (sdg_graph_norm_t){.node = node,
                            .kind = sdg_graph_norm_kind(node),
                            .x = &tagging->placement[0]};
  for (int d = 0; d < out->x->dims; d++) {
    dim_read(out, d);
    out->merges |= out->shared[d] && has_parts(out);
  }
}

// Layer norms: by the extents of the statistics and of the scale, in which what
// is normalised over is 1 and x's.
bool sdg_graph_norm_over(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         const sdg_graph_norm_t *norm, int d) {
  int64_t x = sdg_placement_extent(norm->x, d);
  int by = sdg_graph_norm_tensor(norm->node, SDG_ROLE_SCALE, false);
  int of = sdg_graph_norm_tensor(norm->node, SDG_ROLE_SAVED_INVERSE, false);
  if (!is_rows(norm->kind.mode))
    return norm->shared[d] && has_parts(norm);
  int64_t scales = by < 0 ? 1 : tensor_extent(call, tagging, by, d);
  int64_t statistics = of < 0 ? x : tensor_extent(call, tagging, of, d);
  bool over = by < 0 && of < 0 ? d > 0 : statistics != x;
  return over || (!norm->scaled[d] && scales != 1);
}

static sdg_status_t row_check(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              const sdg_graph_norm_t *norm, int d) {
  const char *name = sdg_tagging_name(call->family, norm->x->dims, d);
  if (one_each(norm->x, d))
    return d == 0 ? SDG_OK
                  : sdg_fail(SDG_E_ONE_EACH,
                             "x of %s: %s is 1 on every rank, as in statistics "
                             "and scale: nothing tells whether x is normalised "
                             "over it (two rows on one rank would tell)",
                             call->entry_name, name);
  return sdg_graph_norm_over(call, tagging, norm, d)
             ? sdg_fail(SDG_E_SPLIT_DIMENSION,
                        "%s: %s is split, and x is normalised over it",
                        call->entry_name, name)
             : SDG_OK;
}

// ---- whether all tensors are in pieces as x is -----------------------------

// What a tensor may be along a dimension that is cut.
typedef enum form {
  CUT,   // as x
  WHOLE, // one element, the same on all ranks
  EITHER,
} form_t;

static form_t form_of(const sdg_call_t *call, const sdg_graph_norm_t *norm,
                      int index, int d) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  sdg_role_t role;
  if (!sdg_graph_norm_role(norm->node, p->operand[index], &role))
    return p->tensor_levels[p->operand[index]] == 1u << SDG_GRAPH_LEVEL_W &&
                   !norm->scaled[d]
               ? WHOLE
               : EITHER;
  switch (role) {
  case SDG_ROLE_MEAN:
  case SDG_ROLE_VARIANCE:
  case SDG_ROLE_SAVED_MEAN:
  case SDG_ROLE_SAVED_INVERSE:
    return norm->shared[d] ? WHOLE : CUT;
  case SDG_ROLE_SCALE:
  case SDG_ROLE_SHIFT:
  case SDG_ROLE_DSCALE:
  case SDG_ROLE_DSHIFT:
    return norm->scaled[d] ? CUT : WHOLE;
  default:
    return CUT;
  }
}

// A reduction is checked where it is made (rules/graph/sums.c).
static bool fits(const sdg_call_t *call, const sdg_tagging_t *tagging,
                 const sdg_graph_norm_t *norm, int index, int d) {
  const sdg_placement_t *placement = &tagging->placement[index];
  bool activation = sdg_role_is_activation(call->operand[index].role);
  if (placement->dims != norm->x->dims)
    return false;
  bool one =
      !placement->split[d].axes && sdg_placement_extent(placement, d) == 1;
  bool cut = placement->split[d].axes &&
             sdg_part_equal(&placement->part[d], &norm->x->part[d]);
  // A scale of one element on each rank looks like one of all ranks.
  bool looks = one && !activation && one_each(norm->x, d);
  switch (form_of(call, norm, index, d)) {
  case CUT:
    return cut || looks;
  case WHOLE:
    return one;
  case EITHER:
    return cut || one;
  }
  return false;
}

static sdg_status_t operands_check(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   const sdg_graph_norm_t *norm) {
  for (int i = 1; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    for (int d = 0; d < norm->x->dims; d++) {
      bool good = norm->cut[d] ? fits(call, tagging, norm, i, d)
                               : placement->dims != norm->x->dims ||
                                     placement->part[d].pieces < 2;
      if (call->operand[i].role != SDG_ROLE_SUM && !good)
        return sdg_tagging_differ(call, tagging, 0, i);
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_graph_norm_init(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_graph_norm_t *out) {
  sdg_graph_norm_open(call, tagging, out);
  for (int d = 0; d < out->x->dims; d++)
    if (out->cut[d] && is_rows(out->kind.mode))
      SDG_TRY(row_check(call, tagging, out, d));
  return operands_check(call, tagging, out);
}

// ---- what ranks have in common ---------------------------------------------

static sdg_axes_t axes_along(const sdg_graph_norm_t *norm, const bool *dims) {
  sdg_axes_t axes = 0;
  for (int d = 0; d < norm->x->dims; d++)
    if (norm->cut[d] && dims[d])
      axes |= sdg_split_all_axes(&norm->x->split[d]);
  return axes;
}

sdg_axes_t sdg_graph_norm_part_axes(const sdg_graph_norm_t *norm) {
  bool parts[SDG_DIMS_MAX];
  for (int d = 0; d < norm->x->dims; d++)
    parts[d] = !norm->scaled[d];
  return axes_along(norm, parts);
}

sdg_common_t sdg_graph_norm_common(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int index) {
  const sdg_placement_t *placement = &tagging->placement[index];
  const sdg_placement_t *x = &tagging->placement[0];
  sdg_common_t common = {.axes =
                             tagging->axes & ~sdg_placement_axes(placement)};
  memcpy(common.extent, call->operand[index].extent, sizeof common.extent);
  memcpy(common.whole, call->operand[index].extent, sizeof common.whole);
  for (int d = 0; d < placement->dims; d++)
    common.whole[d] = sdg_placement_extent(placement, d);
  // What has one element where each rank has one of x may be each rank's own.
  sdg_graph_norm_t norm;
  bool own[SDG_DIMS_MAX] = {false};
  if (sdg_role_is_activation(call->operand[index].role) ||
      sdg_graph_norm_init(call, tagging, &norm) != SDG_OK)
    return common;
  for (int d = 0; d < x->dims; d++)
    own[d] = one_each(x, d) && form_of(call, &norm, index, d) != WHOLE;
  common.axes &= ~axes_along(&norm, own);
  return common;
}
