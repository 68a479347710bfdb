// SPDX-License-Identifier: Apache-2.0
// The geometry of a forward convolution on split tensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/conv.h"
#include "rules/tagging.h"

static int operand_find(const sdg_call_t *call, sdg_role_t role) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].role == role)
      return i;
  return -1;
}

// What the vendor's library checks on one device, on the global extents.
static sdg_status_t arguments_check(const sdg_conv_t *conv,
                                    const sdg_call_t *call) {
  const sdg_conv_parameters_t *p = &conv->parameters;
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *w = &call->operand[conv->w];
  if (x->dims != p->spatial + 2 || w->dims != x->dims)
    return sdg_fail(SDG_E_ARGUMENT,
                    "%s: a convolution of %d spatial dimensions, x of %d "
                    "dimensions, w of %d",
                    call->entry_name, p->spatial, x->dims, w->dims);
  if (p->groups < 1 || x->extent[1] != w->extent[1] * p->groups ||
      w->extent[0] % p->groups != 0)
    return sdg_fail(SDG_E_ARGUMENT,
                    "%s: %lld channels of x, filter [%lld,%lld,...], %d groups",
                    call->entry_name, (long long)x->extent[1],
                    (long long)w->extent[0], (long long)w->extent[1],
                    p->groups);
  for (int i = 0; i < p->spatial; i++)
    if (p->stride[i] < 1 || p->dilation[i] < 1 || p->pad[i] < 0)
      return sdg_fail(SDG_E_ARGUMENT, "%s: stride %d, dilation %d, padding %d",
                      call->entry_name, p->stride[i], p->dilation[i],
                      p->pad[i]);
  return SDG_OK;
}

// Global geometry of every dimension; owned ranges are filled per rank.
static sdg_status_t dims_fill(sdg_conv_t *conv, const sdg_call_t *call,
                              const sdg_tagging_t *tagging) {
  const sdg_conv_parameters_t *p = &conv->parameters;
  const sdg_placement_t *x = &tagging->placement[conv->x];
  const sdg_operand_t *w = &call->operand[conv->w];
  conv->dims = x->dims;
  if (x->split[1].axes)
    return sdg_fail(SDG_E_SPLIT_DIMENSION, "C of %s", call->entry_name);
  for (int d = 0; d < conv->dims; d++) {
    sdg_window_dim_t *dim = &conv->dim[d];
    dim->window = (sdg_window_t){1, 1, 1, 0};
    dim->x_extent = dim->y_extent = d == 1 ? 1 : sdg_placement_extent(x, d);
    if (d < 2)
      continue;
    dim->window = (sdg_window_t){w->extent[d], p->stride[d - 2],
                                 p->dilation[d - 2], p->pad[d - 2]};
    dim->y_extent = sdg_window_outputs(&dim->window, dim->x_extent);
    sdg_dim_t name = sdg_dim_at(call->family, d, conv->dims);
    dim->wrap = name != SDG_DIM_COUNT && (tagging->section->wrap >> name & 1);
    if (dim->y_extent < 1)
      return sdg_fail(SDG_E_ARGUMENT,
                      "%s: a window of %lld on an input of %lld with padding "
                      "%lld has no output",
                      call->entry_name,
                      (long long)sdg_window_span(&dim->window),
                      (long long)dim->x_extent, (long long)dim->window.pad);
  }
  return SDG_OK;
}

// Parts of y by the owner of each window's centre.
static sdg_status_t outputs_place(sdg_conv_t *conv, const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  sdg_placement_t *out) {
  const sdg_placement_t *x = &tagging->placement[conv->x];
  int64_t extent[SDG_DIMS_MAX];
  for (int d = 0; d < conv->dims; d++)
    extent[d] = conv->dim[d].y_extent;
  extent[1] = call->operand[conv->w].extent[0];
  SDG_TRY(sdg_placement_init(conv->dims, extent, out));
  for (int d = 0; d < conv->dims; d++) {
    if (x->split[d].axes == 0)
      continue;
    sdg_part_t part;
    sdg_status_t status =
        sdg_window_part(&conv->dim[d].window, &x->part[d], extent[d], &part);
    if (status == SDG_OK) {
      status = sdg_placement_split(out, tagging->mesh, d, &x->split[d], &part);
      sdg_part_fini(&part);
    }
    if (status != SDG_OK) {
      sdg_placement_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

// The program's own output sizes are honoured where they add up.
static sdg_status_t outputs_compare(const sdg_conv_t *conv,
                                    const sdg_call_t *call,
                                    const sdg_placement_t *given,
                                    const sdg_placement_t *ours) {
  const char *names[SDG_DIMS_MAX];
  sdg_tagging_names(call->family, conv->dims, names);
  if (given->dims != conv->dims)
    return sdg_fail(SDG_E_ARGUMENT, "%s: y of %d dimensions, x of %d",
                    call->entry_name, given->dims, conv->dims);
  for (int d = 0; d < conv->dims; d++) {
    int64_t is = sdg_placement_extent(given, d);
    int64_t should = sdg_placement_extent(ours, d);
    if (is == should)
      continue;
    char given_text[256], ours_text[256];
    sdg_part_format(&given->part[d], given_text, sizeof given_text);
    sdg_part_format(&ours->part[d], ours_text, sizeof ours_text);
    return sdg_fail(SDG_E_OUTPUT_EXTENT,
                    "%s of y of %s is %s = %lld over the ranks; the whole "
                    "input gives %lld, for example as %s",
                    names[d], call->entry_name, given_text, (long long)is,
                    (long long)should, ours_text);
  }
  return SDG_OK;
}

static sdg_status_t empty_check(const sdg_conv_t *conv, const sdg_call_t *call,
                                const sdg_tagging_t *tagging) {
  for (int d = 0; d < conv->dims; d++) {
    const sdg_part_t *part = &conv->y_placement.part[d];
    for (int piece = 0; piece < part->pieces; piece++) {
      if (sdg_part_size(part, piece) > 0)
        continue;
      int owner = 0;
      while (sdg_split_piece(&conv->y_placement.split[d], tagging->mesh,
                             tagging->rank_list[owner]) != piece)
        owner++;
      const char *names[SDG_DIMS_MAX];
      char text[256];
      sdg_tagging_names(call->family, conv->dims, names);
      sdg_part_format(part, text, sizeof text);
      return sdg_fail(SDG_E_EMPTY_SHARD, "rank %d: %s of y of %s is %s",
                      tagging->rank_list[owner], names[d], call->entry_name,
                      text);
    }
  }
  return SDG_OK;
}

// Owned ranges of one rank; the channel placeholder owns its one element.
static void dims_own(const sdg_conv_t *conv, const sdg_tagging_t *tagging,
                     int rank, sdg_window_dim_t *out) {
  sdg_box_t x =
      sdg_placement_box(&tagging->placement[conv->x], tagging->mesh, rank);
  sdg_box_t y = sdg_placement_box(&conv->y_placement, tagging->mesh, rank);
  for (int d = 0; d < conv->dims; d++) {
    out[d] = conv->dim[d];
    out[d].x = x.dim[d];
    out[d].y = y.dim[d];
  }
  out[1].x = out[1].y = (sdg_range_t){0, 1};
}

// Whether a rank computes any outputs on its own buffers.
static bool any_right(const sdg_conv_t *conv, const sdg_window_dim_t *dim) {
  for (int d = 0; d < conv->dims; d++) {
    sdg_window_view_t view = sdg_window_view(&dim[d]);
    if (view.right.hi <= view.right.lo)
      return false;
  }
  return true;
}

static sdg_status_t transfer_fill(sdg_conv_t *conv, const sdg_call_t *call,
                                  const sdg_tagging_t *tagging) {
  size_t ranks = (size_t)tagging->ranks;
  sdg_box_t *owned = calloc(2 * ranks, sizeof *owned);
  if (!owned)
    return sdg_fail(SDG_E_NO_MEMORY, "boxes of %d ranks", tagging->ranks);
  sdg_box_t *need = owned + ranks;
  int64_t period[SDG_DIMS_MAX] = {0};
  for (int d = 0; d < conv->dims; d++)
    if (conv->dim[d].wrap)
      period[d] = conv->dim[d].x_extent;
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    sdg_window_dim_t dim[SDG_DIMS_MAX];
    dims_own(conv, tagging, rank, dim);
    owned[r] =
        sdg_placement_box(&tagging->placement[conv->x], tagging->mesh, rank);
    sdg_box_t y = sdg_placement_box(&conv->y_placement, tagging->mesh, rank);
    y.dim[1] = (sdg_range_t){0, 1};
    need[r] = sdg_window_need_box(conv->dims, dim, &y);
    if (!sdg_box_empty(&need[r]))
      need[r].dim[1] = (sdg_range_t){0, call->operand[conv->x].extent[1]};
    conv->communicates |= !sdg_box_contains(&owned[r], &need[r]);
  }
  sdg_status_t status = sdg_transfer_plan(owned, need, tagging->ranks,
                                          tagging->me, period, &conv->transfer);
  free(owned);
  return status;
}

sdg_status_t sdg_conv_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_conv_t *out) {
  memset(out, 0, sizeof *out);
  out->x = operand_find(call, SDG_ROLE_X);
  out->w = operand_find(call, SDG_ROLE_W);
  out->y = operand_find(call, SDG_ROLE_Y);
  out->z = operand_find(call, SDG_ROLE_Z);
  out->bias = operand_find(call, SDG_ROLE_BIAS);
  if (out->x < 0 || out->w < 0 || !call->op_descriptor)
    return sdg_fail(SDG_E_ARGUMENT, "%s: a descriptor is NULL",
                    call->entry_name);
  SDG_TRY(sdg_conv_parameters(call->op_descriptor, &out->parameters));
  SDG_TRY(arguments_check(out, call));
  SDG_TRY(dims_fill(out, call, tagging));
  SDG_TRY(outputs_place(out, call, tagging, &out->y_placement));
  sdg_status_t status = SDG_OK;
  if (out->y >= 0) {
    const sdg_placement_t *given = &tagging->placement[out->y];
    SDG_TRY_GOTO(outputs_compare(out, call, given, &out->y_placement), fail);
    sdg_placement_fini(&out->y_placement);
    SDG_TRY_GOTO(sdg_placement_copy(given, &out->y_placement), fail);
  }
  if (out->z >= 0 &&
      !sdg_placement_equal(&tagging->placement[out->z], &out->y_placement)) {
    status = sdg_fail(SDG_E_OPERANDS_DIFFER, "z and y of %s", call->entry_name);
    goto fail;
  }
  SDG_TRY_GOTO(empty_check(out, call, tagging), fail);
  SDG_TRY_GOTO(transfer_fill(out, call, tagging), fail);
  dims_own(out, tagging, tagging->rank, out->dim);
  out->x_box = sdg_placement_box(&tagging->placement[out->x], tagging->mesh,
                                 tagging->rank);
  out->y_box =
      sdg_placement_box(&out->y_placement, tagging->mesh, tagging->rank);
  return SDG_OK;
fail:
  sdg_conv_fini(out);
  return status;
}

void sdg_conv_fini(sdg_conv_t *conv) {
  sdg_placement_fini(&conv->y_placement);
  sdg_transfer_fini(&conv->transfer);
}

bool sdg_conv_extends(const sdg_conv_t *conv, sdg_strategy_t strategy) {
  return strategy == SDG_STRATEGY_EXTEND || !any_right(conv, conv->dim);
}

int sdg_conv_pieces(const sdg_conv_t *conv, bool extend, bool *out_view,
                    sdg_conv_piece_t *out) {
  sdg_window_view_t view[SDG_DIMS_MAX];
  memset(view, 0, sizeof view);
  int count = 0;
  *out_view = !extend;
  if (!extend) {
    sdg_conv_piece_t *whole = &out[count++];
    *whole = (sdg_conv_piece_t){.x.dims = conv->dims, .y.dims = conv->dims};
    for (int d = 0; d < conv->dims; d++) {
      view[d] = sdg_window_view(&conv->dim[d]);
      whole->x.dim[d] = view[d].x;
      whole->y.dim[d] = view[d].y;
      if (d >= 2)
        whole->pad[d - 2] = (int)conv->dim[d].window.pad;
    }
  }
  sdg_window_strip_t strip[2 * SDG_DIMS_MAX];
  int strips = sdg_window_strips(conv->dims, conv->dim, view, strip);
  for (int i = 0; i < strips; i++) {
    sdg_conv_piece_t *piece = &out[count++];
    *piece = (sdg_conv_piece_t){.x = strip[i].x, .y = strip[i].y};
    // Where a strip takes in all of a dimension, the op's own padding does
    // what rows of zeros would.
    for (int d = 2; d < conv->dims; d++) {
      const sdg_window_dim_t *dim = &conv->dim[d];
      if (dim->wrap || piece->y.dim[d].lo != 0 ||
          piece->y.dim[d].hi != dim->y_extent)
        continue;
      piece->x.dim[d] = (sdg_range_t){0, dim->x_extent};
      piece->pad[d - 2] = (int)dim->window.pad;
    }
  }
  for (int i = 0; i < count; i++) {
    out[i].x.dim[1] = conv->x_box.dim[1];
    out[i].y.dim[1] = conv->y_box.dim[1];
  }
  return count;
}
