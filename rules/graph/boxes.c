// SPDX-License-Identifier: Apache-2.0
// The geometry of a graph.
#include "rules/graph/boxes.h"

#include <string.h>

#include "rules/graph/norm/norm.h"
#include "rules/graph/product/product.h"
#include "rules/place/tagging.h"
#include "rules/window/back.h"

// ---- one dimension ---------------------------------------------------------

sdg_graph_range_t sdg_graph_range(const sdg_window_dim_t *dim, int64_t post) {
  sdg_range_t need = sdg_window_need(&dim->window, dim->y);
  sdg_graph_range_t out = {.x = need, .y = dim->y};
  if (dim->wrap)
    return out;
  bool last = dim->y.hi == dim->y_extent;
  out.x.lo = need.lo < 0 ? 0 : need.lo;
  out.x.hi = last || need.hi > dim->x_extent ? dim->x_extent : need.hi;
  out.pre = out.x.lo - need.lo;
  out.post = last ? post : need.hi - out.x.hi;
  return out;
}

sdg_graph_range_t sdg_graph_range_back(const sdg_window_dim_t *dim) {
  const sdg_window_t *w = &dim->window;
  sdg_range_t y = sdg_window_need_adjoint(w, dim->x);
  sdg_graph_range_t out = {.x = dim->x};
  y.lo = y.lo < 0 ? 0 : y.lo;
  y.hi = y.hi > dim->y_extent ? dim->y_extent : y.hi;
  if (y.lo >= y.hi)
    return out;
  // With a stride longer than the window rows lie before the first output that
  // sees any of them.
  if (dim->x.lo < y.lo * w->stride - w->pad && y.lo > 0)
    y.lo--;
  sdg_range_t seen = sdg_window_need(w, y);
  out.y = y;
  out.pre = dim->x.lo - seen.lo;
  out.post = seen.hi > dim->x.hi ? seen.hi - dim->x.hi : 0;
  return out;
}

sdg_graph_range_t sdg_graph_range_whole(const sdg_window_dim_t *dim,
                                        const sdg_graph_range_t *back) {
  sdg_range_t seen = sdg_window_need(&dim->window, back->y);
  sdg_graph_range_t out = *back;
  if (back->y.lo >= back->y.hi)
    return out;
  if (seen.lo < out.x.lo)
    out.x.lo = seen.lo < 0 ? 0 : seen.lo;
  if (seen.hi > out.x.hi)
    out.x.hi = seen.hi > dim->x_extent ? dim->x_extent : seen.hi;
  out.pre = out.x.lo - seen.lo;
  out.post = seen.hi > out.x.hi ? seen.hi - out.x.hi : 0;
  return out;
}

// Whether the rank has all of a dimension.
static bool is_all(const sdg_window_dim_t *dim) {
  return dim->x.lo == 0 && dim->x.hi == dim->x_extent && dim->y.lo == 0 &&
         dim->y.hi == dim->y_extent;
}

// Whether the program's own execution has the op's phase: its output j sees
// rows from j*s - p on, of which row 0 is x.lo; and whether it has as many
// outputs as are owned.
static bool is_in_phase(const sdg_window_dim_t *dim, int64_t post) {
  const sdg_window_t *w = &dim->window;
  int64_t room = dim->x.hi - dim->x.lo + w->pad + post - sdg_window_span(w);
  return dim->x.lo == dim->y.lo * w->stride && room >= 0 &&
         room / w->stride + 1 == dim->y.hi - dim->y.lo;
}

sdg_range_t sdg_graph_right(const sdg_window_dim_t *dim, int64_t post) {
  const sdg_window_t *w = &dim->window;
  int64_t span = sdg_window_span(w);
  sdg_range_t out = dim->y;
  if (is_all(dim) && !dim->wrap)
    return out;
  if (!is_in_phase(dim, post))
    return (sdg_range_t){0, 0};
  if (dim->wrap || dim->x.lo > 0) {
    int64_t first = sdg_ceil_div(dim->x.lo + w->pad, w->stride);
    out.lo = first > out.lo ? first : out.lo;
  }
  if (dim->wrap || dim->x.hi < dim->x_extent) {
    int64_t end = sdg_floor_div(dim->x.hi + w->pad - span, w->stride) + 1;
    out.hi = end < out.hi ? end : out.hi;
  }
  return out.lo < out.hi ? out : (sdg_range_t){0, 0};
}

sdg_range_t sdg_graph_right_back(const sdg_window_dim_t *dim, int64_t post) {
  const sdg_window_view_t own = {.x = dim->x, .y = dim->y};
  if (is_all(dim) && !dim->wrap)
    return dim->x;
  return is_in_phase(dim, post) ? sdg_window_back_right(dim, &own)
                                : (sdg_range_t){0, 0};
}

// ---- the main op -----------------------------------------------------------

void sdg_graph_operand_extents(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, int index,
                               int64_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *placement = &tagging->placement[index];
  for (int d = 0; d < operand->dims; d++)
    out[d] = placement->dims ? sdg_placement_extent(placement, d)
                             : operand->extent[d];
}

// A tensor is on a level if it is split as the level's first tensor, or has one
// element, in each dimension.
static sdg_status_t place_check(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index,
                                int first, const sdg_placement_t *like) {
  const sdg_placement_t *placement = &tagging->placement[index];
  int64_t extent[SDG_DIMS_MAX];
  sdg_graph_operand_extents(call, tagging, index, extent);
  bool sum = call->operand[index].role == SDG_ROLE_SUM;
  for (int d = 0; d < like->dims; d++) {
    bool split = like->split[d].axes > 0;
    if (extent[d] == 1 ||
        (!split && (sum || extent[d] == sdg_placement_extent(like, d))))
      continue;
    if (!placement->dims ||
        !sdg_part_equal(&placement->part[d], &like->part[d]))
      return placement->dims
                 ? sdg_tagging_differ(call, tagging, first, index)
                 : sdg_fail(SDG_E_OPERANDS_DIFFER,
                            "%s: %s is split, but a tensor beside it has no "
                            "section that splits it",
                            call->entry_name,
                            sdg_role_name(call->operand[first].role));
  }
  return SDG_OK;
}

static sdg_status_t places_check(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_graph_main_t *main) {
  const sdg_graph_pattern_t *p = main->pattern;
  for (int i = 0; i < call->operands; i++) {
    unsigned levels = p->tensor_levels[p->operand[i]];
    if ((levels >> SDG_GRAPH_LEVEL_X & 1) && i != main->spec.x)
      SDG_TRY(place_check(call, tagging, i, main->spec.x,
                          &tagging->placement[main->spec.x]));
    if ((levels >> SDG_GRAPH_LEVEL_Y & 1) && i != main->spec.y)
      SDG_TRY(
          place_check(call, tagging, i, main->spec.y, &main->op.y_placement));
  }
  return SDG_OK;
}

static int role_find(const sdg_graph_pattern_t *p, sdg_role_t role) {
  int i = 0;
  while (i < p->operands && p->role[i] != role)
    i++;
  return i;
}

static void spec_fill(const sdg_graph_pattern_t *p, sdg_window_spec_t *out) {
  *out = (sdg_window_spec_t){.own_border = !sdg_graph_mixes(p)};
  if (sdg_graph_mixes(p))
    out->y_channels = p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_W]].dim[0];
  out->x = sdg_graph_is_back(p) ? p->result : role_find(p, SDG_ROLE_X);
  out->y =
      p->after == SDG_GRAPH_LEVEL_Y ? p->result : role_find(p, SDG_ROLE_DY);
  for (int d = 0; d < p->spatial + 2; d++)
    out->window[d] = (sdg_window_t){.kernel = 1, .stride = 1, .dilation = 1};
  for (int s = 0; s < p->spatial; s++) {
    out->window[s + 2] = (sdg_window_t){.kernel = p->kernel[s],
                                        .stride = p->stride[s],
                                        .dilation = p->dilation[s],
                                        .pad = p->pre[s]};
    out->pad_more[s + 2] = p->post[s] - p->pre[s];
  }
}

// Whether windows are as large as each rank's piece in all split dimensions.
static bool windows_fill(const sdg_graph_pattern_t *p,
                         const sdg_placement_t *x) {
  bool fill = false;
  for (int s = 0; s < p->spatial; s++) {
    const sdg_part_t *part = &x->part[s + 2];
    for (int r = 0; part->pieces > 1 && r < part->pieces; r++) {
      if (p->pre[s] || p->post[s] || p->kernel[s] != sdg_part_size(part, r))
        return false;
      fill = true;
    }
  }
  return fill;
}

// A pooling's window may be meant to be the whole domain.
static sdg_status_t reach_check(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_graph_main_t *main) {
  const sdg_graph_pattern_t *p = main->pattern;
  sdg_window_choice_t choice = tagging->section->window;
  bool pools = p->kind == SDG_GRAPH_POOL || p->kind == SDG_GRAPH_POOL_BACK;
  if (!pools || choice == SDG_WINDOW_LOCAL ||
      !windows_fill(p, &tagging->placement[main->spec.x]))
    return SDG_OK;
  return choice == SDG_WINDOW_GLOBAL
             ? sdg_fail(SDG_E_NO_RULE,
                        "%s, a graph, with a window over the pieces of all "
                        "ranks",
                        call->entry_name)
             : sdg_fail(SDG_E_WINDOW,
                        "%s: each window is as large as its rank's piece. If "
                        "that is meant, write window = local in [shard %s]; a "
                        "window over the pieces of all ranks is not split in "
                        "graphs",
                        call->entry_name, tagging->section->name);
}

static bool wants_zero_rows(const sdg_graph_pattern_t *p) {
  bool statistics = false;
  for (int n = 0; n < p->graph->node_count; n++)
    statistics |=
        p->graph->node[n].kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
  return statistics && p->kind == SDG_GRAPH_FORWARD;
}

sdg_status_t sdg_graph_main_init(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_graph_main_t *out) {
  out->pattern = sdg_graph_call_execution(call)->pattern;
  spec_fill(out->pattern, &out->spec);
  out->zero_rows = wants_zero_rows(out->pattern);
  SDG_TRY(reach_check(call, tagging, out));
  SDG_TRY(sdg_window_op_init(call, tagging, &out->spec, &out->op));
  sdg_status_t status = places_check(call, tagging, out);
  if (status != SDG_OK)
    sdg_window_op_fini(&out->op);
  return status;
}

// Whether all tensors have the extents of their level, or 1: a graph of
// pointwise ops may read one that is larger than its first input and than its
// result, where these have one element.
static bool extents_fit(const sdg_call_t *call, const sdg_graph_main_t *main) {
  const sdg_placement_t *y = &main->op.y_placement;
  for (int i = 0; main->pattern->main < 0 && i < call->operands; i++)
    for (int d = 0; d < y->dims; d++)
      if (call->operand[i].extent[d] != 1 &&
          call->operand[i].extent[d] != sdg_placement_extent(y, d))
        return false;
  return true;
}

sdg_status_t sdg_graph_main_init_whole(const sdg_call_t *call,
                                       sdg_tagging_t *io_tagging,
                                       sdg_graph_main_t *out, bool *out_can) {
  out->pattern = sdg_graph_call_execution(call)->pattern;
  spec_fill(out->pattern, &out->spec);
  int x = out->spec.x;
  bool back = sdg_graph_is_back(out->pattern);
  bool forward = out->pattern->after == SDG_GRAPH_LEVEL_Y;
  const sdg_placement_t *lead =
      &io_tagging->placement[forward ? x : out->spec.y];
  *out_can = false;
  out->zero_rows = false; // pieces are in place
  // Of statistics only; what the ranks read of old results is not listed.
  for (int d = 0; d < call->operand[x].dims; d++)
    if (sdg_window_op_periodic(call, io_tagging, &out->spec, d))
      return sdg_fail(SDG_E_NO_RULE, "%s with a periodic dimension",
                      call->entry_name);
  if (out->spec.y < 0 || out->pattern->adds_old)
    return SDG_OK;
  if (lead->dims != call->operand[x].dims ||
      (lead->split[1].axes && sdg_graph_mixes(out->pattern)))
    return sdg_window_op_alone(call, io_tagging, &out->spec);
  // The data gradient is placed by dy: with the owner of each window's centre.
  if (back)
    SDG_TRY(sdg_window_op_beside(&out->spec, lead, false, io_tagging->mesh,
                                 call->operand[x].extent,
                                 &io_tagging->placement[x]));
  sdg_status_t status =
      sdg_window_op_init_whole(call, io_tagging, &out->spec, &out->op, out_can);
  if (status == SDG_OK && *out_can && !extents_fit(call, out)) {
    sdg_window_op_fini(&out->op);
    *out_can = false;
  }
  if (back && (status != SDG_OK || !*out_can))
    sdg_placement_fini(&io_tagging->placement[x]);
  return status;
}

const sdg_placement_t *sdg_graph_result_place(const sdg_graph_main_t *main,
                                              const sdg_tagging_t *tagging) {
  switch (main->pattern->after) {
  case SDG_GRAPH_LEVEL_Y:
    return &main->op.y_placement;
  case SDG_GRAPH_LEVEL_X:
    return &tagging->placement[main->spec.x];
  case SDG_GRAPH_LEVEL_W:
  case SDG_GRAPH_LEVELS:
    break;
  }
  return NULL;
}

void sdg_graph_main_fini(sdg_graph_main_t *main) {
  sdg_window_op_fini(&main->op);
}

sdg_graph_boxes_t sdg_graph_boxes_of(const sdg_graph_main_t *main,
                                     const sdg_tagging_t *tagging,
                                     const sdg_window_dim_t *dim) {
  bool back = sdg_graph_is_back(main->pattern);
  sdg_graph_boxes_t out;
  memset(&out, 0, sizeof out);
  sdg_box_t *x = &out.level[SDG_GRAPH_LEVEL_X],
            *y = &out.level[SDG_GRAPH_LEVEL_Y];
  x->dims = y->dims = out.read.dims = main->op.dims;
  for (int d = 0; d < main->op.dims; d++) {
    sdg_range_t own = back ? dim[d].x : dim[d].y;
    if (own.hi <= own.lo)
      return out;
    int64_t post = dim[d].window.pad + main->spec.pad_more[d];
    sdg_graph_range_t range =
        back ? sdg_graph_range_back(&dim[d]) : sdg_graph_range(&dim[d], post);
    if (back && is_all(&dim[d]))
      range = (sdg_graph_range_t){dim[d].x, dim[d].y, dim[d].window.pad, post};
    else if (main->pattern->whole_windows)
      range = sdg_graph_range_whole(&dim[d], &range);
    out.read.dim[d] = range.x;
    if (main->zero_rows && range.pre != range.post && d >= 2) {
      out.read.dim[d] = sdg_window_need(&dim[d].window, dim[d].y);
      range.pre = range.post = 0;
      if (!sdg_graph_has_prologue(main->pattern))
        range.x = out.read.dim[d];
    }
    x->dim[d] = range.x;
    y->dim[d] = range.y;
    if (d >= 2) {
      out.pre[d - 2] = range.pre;
      out.post[d - 2] = range.post;
    }
  }
  if (main->op.mixes) { // channels were counted as one element
    x->dim[1] = out.read.dim[1] = (sdg_range_t){
        0, sdg_placement_extent(&tagging->placement[main->spec.x], 1)};
    y->dim[1] = (sdg_range_t){0, main->spec.y_channels};
  }
  // Without the rows behind the last window.
  *x = sdg_box_intersect(x, &out.read);
  return out;
}

sdg_graph_boxes_t sdg_graph_boxes(const sdg_graph_main_t *main,
                                  const sdg_tagging_t *tagging, int rank) {
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  if (main->pattern->kind == SDG_GRAPH_PRODUCT)
    return sdg_graph_product_boxes(main->pattern, tagging, rank);
  if (sdg_graph_normalises(main->pattern))
    return sdg_graph_norm_boxes(tagging, rank);
  sdg_window_op_own(&main->op, tagging, &main->spec, rank, dim);
  return sdg_graph_boxes_of(main, tagging, dim);
}

sdg_box_t sdg_graph_operand_box(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index,
                                const sdg_box_t *box) {
  sdg_box_t out = *box;
  int64_t extent[SDG_DIMS_MAX];
  sdg_graph_operand_extents(call, tagging, index, extent);
  for (int d = 0; d < box->dims; d++)
    if (extent[d] == 1)
      out.dim[d] = (sdg_range_t){0, 1};
  return out;
}
