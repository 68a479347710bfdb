// SPDX-License-Identifier: Apache-2.0
// The geometry of one call of a windowed op on split tensors.
#include "rules/window/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/kit/fetch.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/window/chain.h"

bool sdg_window_op_periodic(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_window_spec_t *spec, int d) {
  sdg_dim_t name = sdg_dim_at(call->family, d, call->operand[spec->x].dims);
  // Without padding no window extends beyond the domain.
  bool pads =
      spec->window[d].pad > 0 || spec->window[d].pad + spec->pad_more[d] > 0;
  return d >= 2 && name != SDG_DIM_COUNT && pads &&
         (tagging->section->wrap >> name & 1);
}

sdg_status_t sdg_window_op_whole_channels(const sdg_call_t *call,
                                          const sdg_tagging_t *tagging,
                                          const sdg_window_spec_t *spec) {
  return spec->y_channels > 0 && tagging->placement[spec->x].split[1].axes
             ? sdg_fail(SDG_E_SPLIT_DIMENSION, "C of %s", call->entry_name)
             : SDG_OK;
}

// Global geometry of every dimension; owned ranges are filled per rank.
sdg_status_t sdg_window_op_dims(sdg_window_op_t *op, const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec) {
  const sdg_placement_t *x = &tagging->placement[spec->x];
  op->dims = x->dims;
  op->mixes = spec->y_channels > 0;
  op->own_border = spec->own_border;
  SDG_TRY(sdg_window_op_whole_channels(call, tagging, spec));
  for (int d = 0; d < op->dims; d++) {
    sdg_window_dim_t *dim = &op->dim[d];
    bool mixed = d == 1 && spec->y_channels > 0;
    dim->window = spec->window[d];
    dim->x_extent = mixed ? 1 : sdg_placement_extent(x, d);
    dim->y_extent =
        sdg_window_outputs(&dim->window, dim->x_extent + spec->pad_more[d]);
    dim->wrap = sdg_window_op_periodic(call, tagging, spec, d);
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

sdg_status_t sdg_window_op_beside(const sdg_window_spec_t *spec,
                                  const sdg_placement_t *of, bool of_x,
                                  const sdg_mesh_t *mesh, const int64_t *extent,
                                  sdg_placement_t *out) {
  sdg_status_t status;
  SDG_TRY(sdg_placement_init(of->dims, extent, out));
  for (int d = 0; d < of->dims; d++) {
    sdg_part_t part;
    if (of->split[d].axes == 0 || spec->everyones[d])
      continue;
    SDG_TRY_GOTO((of_x ? sdg_window_part : sdg_window_part_adjoint)(
                     &spec->window[d], &of->part[d], extent[d], &part),
                 fail);
    SDG_TRY_GOTO(sdg_placement_take(out, mesh, d, &of->split[d], &part), fail);
  }
  return SDG_OK;
fail:
  sdg_placement_fini(out);
  return status;
}

sdg_status_t sdg_window_op_place(const sdg_window_op_t *op,
                                 const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec,
                                 sdg_placement_t *out) {
  int64_t extent[SDG_DIMS_MAX];
  for (int d = 0; d < op->dims; d++)
    extent[d] = op->dim[d].y_extent;
  if (spec->y_channels > 0)
    extent[1] = spec->y_channels;
  return sdg_window_op_beside(spec, &tagging->placement[spec->x], true,
                              tagging->mesh, extent, out);
}

// Finds parts of x from which a program that computes its sizes piece by piece
// gets outputs that add up, and the command that creates them.
static void advice_write(const sdg_window_t *window, const sdg_part_t *x,
                         const char *name, int64_t should, char *out,
                         size_t out_bytes) {
  sdg_part_t part;
  int64_t extent, unit;
  char sizes[256] = "";
  snprintf(out, out_bytes,
           "; no parts of x give these outputs (ask cuDNN for sizes)");
  if (!sdg_chain_unit(name, sdg_part_extent(x), should, window, x->pieces,
                      &extent, &unit) ||
      sdg_part_divide(extent, x->pieces, SDG_PART_EVEN, unit, &part) != SDG_OK)
    return;
  sdg_part_format(&part, sizes, sizeof sizes);
  sdg_part_fini(&part);
  bool first = extent == sdg_part_extent(x);
  snprintf(out, out_bytes,
           ", which follow from %s %s%s (sundog split --dim %s --parts "
           "even/%lld -n %d)%s",
           first ? "x" : name, sizes,
           first ? "" : ", from which earlier calls made x", name,
           (long long)unit, x->pieces,
           window->stride > 1 ? "; strides of later calls multiply the unit; "
                                "`sundog inspect` knows all of them"
                              : "");
}

// Checks that the program's sizes of y add up to the output of the whole x.
static sdg_status_t
outputs_compare(const sdg_window_op_t *op, const sdg_call_t *call,
                const sdg_placement_t *x, const sdg_window_spec_t *spec,
                const sdg_placement_t *given, const sdg_placement_t *ours) {
  const char *names[SDG_DIMS_MAX];
  const char *role = sdg_role_name(call->operand[spec->y].role);
  sdg_tagging_names(call->family, op->dims, names);
  if (given->dims != op->dims)
    return sdg_fail(SDG_E_ARGUMENT, "%s: %s of %d dimensions, x of %d",
                    call->entry_name, role, given->dims, op->dims);
  for (int d = 0; d < op->dims; d++) {
    int64_t is = sdg_placement_extent(given, d);
    int64_t should = sdg_placement_extent(ours, d);
    if (is == should) {
      if (d >= 2 && x->split[d].axes > 0 && op->dim[d].window.stride > 1)
        sdg_chain_note(names[d], sdg_placement_extent(x, d), should,
                       &op->dim[d].window);
      continue;
    }
    char given_text[256], ours_text[256], advice[512] = "";
    sdg_part_format(&given->part[d], given_text, sizeof given_text);
    sdg_part_format(&ours->part[d], ours_text, sizeof ours_text);
    if (d >= 2 && x->split[d].axes > 0)
      advice_write(&op->dim[d].window, &x->part[d], names[d], should, advice,
                   sizeof advice);
    return sdg_fail(SDG_E_OUTPUT_EXTENT,
                    "%s of %s of %s is %s = %lld over the ranks; the whole "
                    "input gives %lld, for example as %s%s",
                    names[d], role, call->entry_name, given_text, (long long)is,
                    (long long)should, ours_text, advice);
  }
  return SDG_OK;
}

static sdg_status_t empty_check(const sdg_window_op_t *op,
                                const sdg_call_t *call,
                                const sdg_tagging_t *tagging) {
  for (int d = 0; d < op->dims; d++) {
    const sdg_part_t *part = &op->y_placement.part[d];
    for (int piece = 0; piece < part->pieces; piece++) {
      if (sdg_part_size(part, piece) > 0)
        continue;
      int owner = 0;
      while (sdg_split_piece(&op->y_placement.split[d], tagging->mesh,
                             tagging->rank_list[owner]) != piece)
        owner++;
      char text[256];
      sdg_part_format(part, text, sizeof text);
      return sdg_fail(SDG_E_EMPTY_SHARD, "rank %d: %s of y of %s is %s",
                      tagging->rank_list[owner],
                      sdg_tagging_name(call->family, op->dims, d),
                      call->entry_name, text);
    }
  }
  return SDG_OK;
}

// Where channels are counted as one element, every rank owns this element.
void sdg_window_op_own(const sdg_window_op_t *op, const sdg_tagging_t *tagging,
                       const sdg_window_spec_t *spec, int rank,
                       sdg_window_dim_t *out) {
  sdg_box_t x =
      sdg_placement_box(&tagging->placement[spec->x], tagging->mesh, rank);
  sdg_box_t y = sdg_placement_box(&op->y_placement, tagging->mesh, rank);
  for (int d = 0; d < op->dims; d++) {
    out[d] = op->dim[d];
    out[d].x = x.dim[d];
    out[d].y = y.dim[d];
  }
  if (spec->y_channels > 0)
    out[1].x = out[1].y = (sdg_range_t){0, 1};
}

sdg_box_t sdg_window_op_need(const sdg_window_op_t *op,
                             const sdg_tagging_t *tagging,
                             const sdg_window_spec_t *spec, int rank) {
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  sdg_window_op_own(op, tagging, spec, rank, dim);
  sdg_box_t y = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    y.dim[d] = dim[d].y;
  sdg_box_t need = sdg_window_need_box(op->dims, dim, &y);
  if (spec->y_channels > 0 && !sdg_box_empty(&need))
    need.dim[1] =
        (sdg_range_t){0, sdg_placement_extent(&tagging->placement[spec->x], 1)};
  return need;
}

sdg_box_t sdg_window_op_domain(const sdg_window_op_t *op, const sdg_box_t *x) {
  sdg_box_t domain = *x;
  for (int d = 0; d < op->dims; d++)
    if (d != 1 && !op->dim[d].wrap)
      domain.dim[d] = (sdg_range_t){0, op->dim[d].x_extent};
  return domain;
}

bool sdg_window_op_wraps(const sdg_window_op_t *op) {
  bool wraps = false;
  for (int d = 0; d < op->dims; d++)
    wraps |= op->dim[d].wrap;
  return wraps;
}

static sdg_status_t transfer_fill(sdg_window_op_t *op,
                                  const sdg_tagging_t *tagging,
                                  const sdg_window_spec_t *spec) {
  const sdg_placement_t *from =
      op->remote ? op->remote->from : &tagging->placement[spec->x];
  size_t ranks = (size_t)tagging->ranks;
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks", tagging->ranks));
  sdg_box_t *need = owned + ranks;
  int64_t period[SDG_DIMS_MAX] = {0};
  for (int d = 0; d < op->dims; d++)
    if (op->dim[d].wrap)
      period[d] = op->dim[d].x_extent;
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    owned[r] = sdg_placement_box(from, tagging->mesh, rank);
    need[r] = sdg_window_op_need(op, tagging, spec, rank);
    // A single rank may need rows beyond the domain, but only its own.
    op->communicates |=
        tagging->ranks > 1 && !sdg_box_contains(&owned[r], &need[r]);
  }
  sdg_status_t status =
      op->remote
          ? sdg_fetch_transfer(tagging, from, need, period, &op->transfer)
          : sdg_transfer_plan(owned, need, tagging->ranks, tagging->me, period,
                              &op->transfer);
  free(owned);
  return status;
}

// Places y as the program has cut it, if its sizes add up. Without a y, in a
// query, the owners of the windows' centres own the outputs.
static sdg_status_t outputs_own(sdg_window_op_t *op, const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec) {
  SDG_TRY(sdg_window_op_place(op, tagging, spec, &op->y_placement));
  if (spec->y < 0)
    return SDG_OK;
  const sdg_placement_t *given = &tagging->placement[spec->y];
  SDG_TRY(outputs_compare(op, call, &tagging->placement[spec->x], spec, given,
                          &op->y_placement));
  sdg_placement_fini(&op->y_placement);
  return sdg_placement_copy(given, &op->y_placement);
}

sdg_status_t sdg_window_op_init(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec,
                                sdg_window_op_t *out) {
  memset(out, 0, sizeof *out);
  SDG_TRY(sdg_window_op_dims(out, call, tagging, spec));
  if (tagging->remote && tagging->remote->operand == spec->x)
    out->remote = tagging->remote;
  sdg_status_t status;
  SDG_TRY_GOTO(outputs_own(out, call, tagging, spec), fail);
  SDG_TRY_GOTO(empty_check(out, call, tagging), fail);
  SDG_TRY_GOTO(transfer_fill(out, tagging, spec), fail);
  sdg_window_op_own(out, tagging, spec, tagging->rank, out->dim);
  out->x_box = sdg_tagging_own(tagging, &tagging->placement[spec->x]);
  out->y_box = sdg_tagging_own(tagging, &out->y_placement);
  return SDG_OK;
fail:
  sdg_window_op_fini(out);
  return status;
}

void sdg_window_op_fini(sdg_window_op_t *op) {
  sdg_placement_fini(&op->y_placement);
  sdg_transfer_fini(&op->transfer);
}

bool sdg_window_op_is_literal(const sdg_window_op_t *op) {
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  bool in_place;
  return !op->remote && op->transfer.sends == 0 && op->transfer.recvs == 0 &&
         sdg_window_op_pieces(op, false, &in_place, piece) == 1 &&
         !piece[0].bare && sdg_box_equal(&piece[0].x, &op->x_box) &&
         sdg_box_equal(&piece[0].y, &op->y_box);
}

bool sdg_window_op_view(const sdg_window_op_t *op, sdg_window_piece_t *out) {
  if (op->whole)
    return sdg_window_op_cut(op, out);
  *out = (sdg_window_piece_t){
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_view_t view = sdg_window_view(&op->dim[d]), bare;
    out->pad[d] = (int)op->dim[d].window.pad;
    if (op->mixes && !op->padded &&
        sdg_window_bare(&op->dim[d], &view, &bare)) {
      view = bare;
      out->pad[d] = 0;
      out->bare = true;
    }
    out->x.dim[d] = view.x;
    out->y.dim[d] = view.y;
    out->keep.dim[d] = view.right;
  }
  return !sdg_box_empty(&out->keep);
}

bool sdg_window_op_extends(const sdg_window_op_t *op, sdg_strategy_t strategy) {
  sdg_window_piece_t piece;
  return op->remote || strategy == SDG_STRATEGY_EXTEND ||
         (strategy == SDG_STRATEGY_AUTO && op->slow_in_place) ||
         sdg_window_op_is_cheaper_extended(op) ||
         !sdg_window_op_view(op, &piece);
}

bool sdg_window_op_is_apart(const sdg_window_op_t *op,
                            const sdg_window_piece_t *piece) {
  return !sdg_box_equal(&piece->y, &op->y_box) ||
         !sdg_box_equal(&piece->keep, &op->y_box);
}

// Lets a strip use the op's own padding in place of rows of zeros: where it
// covers a whole dimension, or where the op treats its border in its own way.
static void border_set(const sdg_window_op_t *op, sdg_window_piece_t *piece) {
  for (int d = 2; d < op->dims; d++) {
    sdg_window_dim_t dim = op->dim[d];
    if (dim.wrap)
      continue;
    if (piece->y.dim[d].lo == 0 && piece->y.dim[d].hi == dim.y_extent) {
      piece->x.dim[d] = (sdg_range_t){0, dim.x_extent};
      piece->pad[d] = (int)dim.window.pad;
    } else if (op->own_border) {
      dim.y = piece->y.dim[d];
      sdg_window_cut_t cut = sdg_window_cut(&dim);
      piece->x.dim[d] = cut.x;
      piece->y.dim[d] = cut.y;
      piece->pad[d] = (int)cut.pad;
    }
  }
}

int sdg_window_op_pieces(const sdg_window_op_t *op, bool extend,
                         bool *out_in_place, sdg_window_piece_t *out) {
  sdg_window_view_t view[SDG_DIMS_MAX];
  memset(view, 0, sizeof view);
  int count = 0;
  *out_in_place = !extend;
  if (!extend) {
    (void)sdg_window_op_view(op, &out[count]);
    for (int d = 0; d < op->dims; d++)
      view[d].right = out[count].keep.dim[d];
    count++;
  }
  sdg_window_strip_t strip[2 * SDG_DIMS_MAX];
  int strips = sdg_window_strips(op->dims, op->dim, view, strip);
  for (int i = 0; i < strips; i++) {
    sdg_window_piece_t *piece = &out[count++];
    *piece = (sdg_window_piece_t){
        .x = strip[i].x, .y = strip[i].y, .keep = strip[i].y};
    border_set(op, piece);
  }
  // Channels were counted as one element so far.
  for (int i = 0; op->mixes && i < count; i++) {
    out[i].x.dim[1] = op->x_box.dim[1];
    out[i].y.dim[1] = out[i].keep.dim[1] = op->y_box.dim[1];
  }
  return count;
}

sdg_window_piece_t sdg_window_op_everything(const sdg_window_op_t *op) {
  sdg_window_piece_t piece = {.x.dims = op->dims, .y.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    const sdg_window_dim_t *dim = &op->dim[d];
    bool all = dim->y.lo == 0 && dim->y.hi == dim->y_extent && !dim->wrap;
    piece.y.dim[d] = dim->y;
    piece.x.dim[d] = all ? (sdg_range_t){0, dim->x_extent}
                         : sdg_window_need(&dim->window, dim->y);
    piece.pad[d] = all ? (int)dim->window.pad : 0;
  }
  if (op->mixes) { // the real channels
    piece.x.dim[1] = op->x_box.dim[1];
    piece.y.dim[1] = op->y_box.dim[1];
  }
  return piece;
}

sdg_status_t sdg_window_op_answer(const sdg_call_t *call,
                                  const sdg_window_op_t *op, int fewest) {
  static const sdg_pointer_argument_t result[] = {SDG_OUT_N, SDG_OUT_C,
                                                  SDG_OUT_H, SDG_OUT_W};
  bool four = !sdg_call_has(call, SDG_ARGUMENT_EXTENTS);
  int asked = four ? 4 : sdg_call_int(call, SDG_EXTENTS);
  int *out[SDG_DIMS_MAX];
  bool good = asked <= op->dims && (four ? op->dims == 4 : asked >= fewest);
  for (int d = 0; d < asked && good; d++) {
    int *all = sdg_call_pointer(call, SDG_OUT_EXTENTS);
    out[d] = four ? sdg_call_pointer(call, result[d]) : all ? all + d : NULL;
    good = out[d] != NULL;
  }
  if (!good)
    return sdg_fail(SDG_E_ARGUMENT,
                    "%s: %d dimensions asked of %d, or a NULL result",
                    call->entry_name, asked, op->dims);
  for (int d = 0; d < asked; d++)
    *out[d] = (int)(op->y_box.dim[d].hi - op->y_box.dim[d].lo);
  return SDG_OK;
}
