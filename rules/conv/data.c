// SPDX-License-Identifier: Apache-2.0
// The geometry of one data gradient of a convolution on split tensors.
#include <stdlib.h>
#include <string.h>

#include "rules/conv/gradient.h"
#include "rules/place/tagging.h"
#include "rules/window/back.h"
#include "rules/window/stack.h"
#include "src/geometry/ring.h"

// The extents of dx, [lo, hi), for which the convolution yields this many rows
// of dy.
static sdg_range_t extents_for(const sdg_window_t *w, int64_t y_extent) {
  int64_t least = (y_extent - 1) * w->stride + sdg_window_span(w) - 2 * w->pad;
  return (sdg_range_t){least < 1 ? 1 : least, least + w->stride};
}

// Several extents of dx yield the same extent of dy, so the program decides
// which it is.
static sdg_status_t extents_check(const sdg_conv_t *conv,
                                  const sdg_call_t *call,
                                  const sdg_tagging_t *tagging) {
  const sdg_placement_t *x = &tagging->placement[conv->x];
  const sdg_placement_t *y = &tagging->placement[conv->y];
  if (y->dims != x->dims)
    return sdg_fail(SDG_E_ARGUMENT, "%s: dy of %d dimensions, dx of %d",
                    call->entry_name, y->dims, x->dims);
  for (int d = 2; d < x->dims; d++) {
    const sdg_window_t *w = &conv->spec.window[d];
    int64_t is = sdg_placement_extent(x, d), of = sdg_placement_extent(y, d);
    sdg_range_t may = extents_for(w, of);
    if (is >= may.lo && is < may.hi)
      continue;
    char is_text[256], of_text[256], part_text[256];
    sdg_part_t part;
    SDG_TRY(sdg_window_part_adjoint(w, &y->part[d], may.lo, &part));
    sdg_part_format(&x->part[d], is_text, sizeof is_text);
    sdg_part_format(&y->part[d], of_text, sizeof of_text);
    sdg_part_format(&part, part_text, sizeof part_text);
    sdg_part_fini(&part);
    return sdg_fail(
        SDG_E_OUTPUT_EXTENT,
        "%s of dx of %s is %s = %lld over the ranks; dy, with %s = %lld, is "
        "the convolution's output for dx of %lld to %lld, for example %s",
        sdg_tagging_name(call->family, x->dims, d), call->entry_name, is_text,
        (long long)is, of_text, (long long)of, (long long)may.lo,
        (long long)may.hi - 1, part_text);
  }
  return SDG_OK;
}

// What `rank` of the job needs of dy for an image of its rows, channels
// included.
static sdg_box_t need_of(const sdg_conv_data_t *g, const sdg_tagging_t *tagging,
                         const sdg_conv_data_image_t *image, int rank) {
  const sdg_window_op_t *op = &g->conv.op;
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  sdg_window_op_own(op, tagging, &g->conv.spec, rank, dim);
  sdg_box_t x = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    x.dim[d] = dim[d].x;
  sdg_box_t need = sdg_window_back_need(op->dims, dim, &x, image->at);
  if (!sdg_box_empty(&need))
    need.dim[1] = (sdg_range_t){0, sdg_placement_extent(&op->y_placement, 1)};
  return need;
}

sdg_box_t sdg_conv_data_need(const sdg_conv_data_t *dgrad,
                             const sdg_tagging_t *tagging, int rank) {
  int64_t extent[SDG_DIMS_MAX];
  sdg_box_t need = {.dims = dgrad->conv.op.dims};
  for (int d = 0; d < need.dims; d++)
    extent[d] = sdg_placement_extent(&dgrad->conv.op.y_placement, d);
  for (int i = 0; i < dgrad->images; i++) {
    sdg_box_t of = need_of(dgrad, tagging, &dgrad->image[i], rank);
    need = sdg_ring_hull(&need, &of, extent);
  }
  return need;
}

int64_t sdg_conv_data_halo(const sdg_conv_data_t *dgrad,
                           const sdg_tagging_t *tagging) {
  int64_t count = 0;
  for (int i = 0; i < dgrad->images; i++)
    for (int r = 0; r < tagging->ranks; r++) {
      int rank = tagging->rank_list[r];
      sdg_box_t owned =
          sdg_placement_box(&dgrad->conv.op.y_placement, tagging->mesh, rank);
      sdg_box_t need = need_of(dgrad, tagging, &dgrad->image[i], rank);
      sdg_box_t has = sdg_box_intersect(&need, &owned);
      count += sdg_box_count(&need) - sdg_box_count(&has);
    }
  return count;
}

static sdg_status_t image_fill(sdg_conv_data_t *g, const sdg_tagging_t *tagging,
                               sdg_conv_data_image_t *image) {
  if (g->conv.op.whole) { // every rank has the dy that it needs
    sdg_box_t own = need_of(g, tagging, image, tagging->rank);
    return sdg_transfer_plan(&g->conv.op.y_box, &own, 1, 0, NULL,
                             &image->transfer);
  }
  size_t ranks = (size_t)tagging->ranks;
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks", tagging->ranks));
  sdg_box_t *need = owned + ranks;
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    owned[r] = sdg_placement_box(&g->conv.op.y_placement, tagging->mesh, rank);
    need[r] = need_of(g, tagging, image, rank);
    g->communicates |= !sdg_box_contains(&owned[r], &need[r]);
  }
  sdg_status_t status = sdg_transfer_plan(owned, need, tagging->ranks,
                                          tagging->me, NULL, &image->transfer);
  free(owned);
  return status;
}

// The images of the domain in one dimension; they include the domain itself
// even if no output sees it.
static sdg_range_t images_of(const sdg_window_dim_t *dim) {
  sdg_range_t images = {0, 1};
  if (dim->wrap)
    images = sdg_window_images(&dim->window, dim->x_extent, dim->y_extent);
  return (sdg_range_t){images.lo > 0 ? 0 : images.lo,
                       images.hi < 1 ? 1 : images.hi};
}

// The images of the domain in all dimensions, the domain itself first.
static sdg_status_t images_fill(sdg_conv_data_t *g,
                                const sdg_tagging_t *tagging) {
  const sdg_window_op_t *op = &g->conv.op;
  sdg_box_t all = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    all.dim[d] = images_of(&op->dim[d]);
  int64_t count = sdg_box_count(&all);
  SDG_TRY(SDG_ALLOCATE(g->image, count, "%lld images of a domain",
                       (long long)count));
  int64_t at[SDG_DIMS_MAX];
  for (int d = 0; d < op->dims; d++)
    at[d] = all.dim[d].lo;
  g->images = 1;
  for (int64_t i = 0; i < count; i++) {
    bool itself = true;
    for (int d = 0; d < op->dims; d++)
      itself &= at[d] == 0;
    if (!itself)
      memcpy(g->image[g->images++].at, at, sizeof at);
    for (int d = op->dims - 1; d >= 0 && ++at[d] == all.dim[d].hi; d--)
      at[d] = all.dim[d].lo;
  }
  for (int i = 0; i < g->images; i++)
    SDG_TRY(image_fill(g, tagging, &g->image[i]));
  return SDG_OK;
}

sdg_status_t sdg_conv_data_init(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_conv_data_t *out) {
  memset(out, 0, sizeof *out);
  SDG_TRY(sdg_conv_read(call, &out->conv));
  SDG_TRY(extents_check(&out->conv, call, tagging));
  SDG_TRY(sdg_conv_init(call, tagging, &out->conv));
  sdg_status_t status = images_fill(out, tagging);
  if (status == SDG_OK)
    status = sdg_conv_data_weigh(call, tagging, out);
  if (status != SDG_OK)
    sdg_conv_data_fini(out);
  return status;
}

sdg_status_t sdg_conv_data_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_conv_data_t *out, bool *out_can) {
  memset(out, 0, sizeof *out);
  SDG_TRY(sdg_conv_init_whole(call, tagging, &out->conv, out_can));
  if (!*out_can)
    return SDG_OK;
  sdg_status_t status = images_fill(out, tagging);
  if (status != SDG_OK)
    sdg_conv_data_fini(out);
  return status;
}

void sdg_conv_data_fini(sdg_conv_data_t *dgrad) {
  for (int i = 0; i < dgrad->images; i++)
    sdg_transfer_fini(&dgrad->image[i].transfer);
  free(dgrad->image);
  sdg_conv_fini(&dgrad->conv);
}

// ---- pieces ----------------------------------------------------------------

sdg_box_t sdg_conv_data_owned(const sdg_conv_data_t *dgrad) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_box_t owned = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    owned.dim[d] = op->dim[d].x;
  owned.dim[1] = op->x_box.dim[1];
  return owned;
}

// One dimension of what is computed in place on full tensors.
static sdg_window_cut_t whole_cut(sdg_window_dim_t dim, sdg_range_t *out_keep) {
  *out_keep = dim.x = sdg_window_back_inner(&dim);
  return dim.x.lo < dim.x.hi ? sdg_window_back_cut(&dim)
                             : (sdg_window_cut_t){.pad = 0};
}

static sdg_window_cut_t shard_cut(const sdg_window_dim_t *dim, bool padded,
                                  sdg_range_t *out_keep, bool *io_bare) {
  sdg_window_view_t view = sdg_window_view(dim);
  sdg_window_cut_t bare;
  *out_keep = sdg_window_back_right(dim, &view);
  if (!padded && sdg_window_back_bare(dim, &view, *out_keep, &bare)) {
    *io_bare = true;
    return bare;
  }
  return (sdg_window_cut_t){view.x, view.y, dim->window.pad};
}

sdg_window_piece_t sdg_conv_data_view(const sdg_conv_data_t *dgrad) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_window_piece_t piece = {
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_cut_t cut = op->whole
                               ? whole_cut(op->dim[d], &piece.keep.dim[d])
                               : shard_cut(&op->dim[d], op->padded,
                                           &piece.keep.dim[d], &piece.bare);
    piece.x.dim[d] = cut.x;
    piece.y.dim[d] = cut.y;
    piece.pad[d] = (int)cut.pad;
  }
  piece.x.dim[1] = piece.keep.dim[1] = op->x_box.dim[1];
  piece.y.dim[1] = op->y_box.dim[1];
  return piece;
}

void sdg_conv_data_settle(const sdg_call_t *call, sdg_conv_data_t *dgrad) {
  sdg_window_piece_t view = sdg_conv_data_view(dgrad);
  sdg_conv_view_settle(call, &dgrad->conv, &view, sdg_conv_w(call),
                       sdg_call_int(call, SDG_ALGO));
  view = sdg_conv_data_view(dgrad);
  sdg_conv_view_judge(call, &dgrad->conv, &view);
}

sdg_conv_way_t sdg_conv_data_first(const sdg_conv_data_t *dgrad,
                                   sdg_strategy_t strategy) {
  sdg_window_piece_t view = sdg_conv_data_view(dgrad);
  bool extends =
      strategy == SDG_STRATEGY_EXTEND ||
      (strategy == SDG_STRATEGY_AUTO && dgrad->conv.op.slow_in_place) ||
      sdg_window_op_is_cheaper_extended(&dgrad->conv.op) ||
      sdg_box_empty(&view.keep);
  return extends ? SDG_CONV_EXTENDED : SDG_CONV_IN_PLACE;
}

bool sdg_conv_data_is_literal(const sdg_conv_data_t *dgrad) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_window_piece_t view = sdg_conv_data_view(dgrad);
  for (int i = 0; i < dgrad->images; i++)
    if (dgrad->image[i].transfer.sends || dgrad->image[i].transfer.recvs)
      return false;
  return !view.bare && sdg_box_equal(&view.keep, &op->x_box) &&
         sdg_box_equal(&view.x, &op->x_box) &&
         sdg_box_equal(&view.y, &op->y_box);
}

int sdg_conv_data_strips(const sdg_conv_data_t *dgrad, bool extend,
                         sdg_box_t *out) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_box_t right = {.dims = op->dims}, owned = sdg_conv_data_owned(dgrad);
  if (!extend)
    right = sdg_conv_data_view(dgrad).keep;
  return sdg_box_subtract(&owned, &right, out);
}

// How to compute the wanted rows from rows of dy inside the domain. Rows of
// zeros beyond it would turn infinite weights into NaN. The result may contain
// further rows, which may be wrong.
static sdg_window_cut_t inside_cut(const sdg_window_dim_t *dim,
                                   sdg_range_t want) {
  sdg_window_dim_t of = *dim;
  of.x = want;
  return sdg_window_back_cut(&of);
}

// How an image's sub-call computes the wanted rows in one dimension; out->x are
// rows of the domain itself.
static sdg_window_cut_t cut_made(const sdg_window_dim_t *dim, sdg_range_t want,
                                 int64_t image) {
  // If a strip covers all of a dimension, the op's own padding replaces rows of
  // zeros.
  if (!dim->wrap && want.lo == 0 && want.hi == dim->x_extent)
    return (sdg_window_cut_t){want, {0, dim->y_extent}, dim->window.pad};
  sdg_range_t images = images_of(dim), rows = want;
  if (!sdg_window_back_rows(&dim->window, want, dim->x_extent, images, &rows)) {
    images = (sdg_range_t){image, image + 1};
    (void)sdg_window_back_rows(&dim->window, want, dim->x_extent, images,
                               &rows);
  }
  int64_t shift = image * dim->x_extent;
  sdg_window_cut_t cut = sdg_window_back_strip(
      &dim->window, (sdg_range_t){rows.lo + shift, rows.hi + shift});
  bool outside = cut.y.lo < 0 || cut.y.hi > dim->y_extent;
  if (outside && !dim->wrap)
    return inside_cut(dim, want);
  sdg_range_t in_image = {want.lo + shift, want.hi + shift};
  sdg_window_cut_t seen;
  if (outside && sdg_window_back_seen(dim, in_image, &seen))
    cut = seen;
  else
    cut.x = (sdg_range_t){rows.lo + shift, rows.hi + shift};
  cut.x.lo -= shift;
  cut.x.hi -= shift;
  return cut;
}

// The sub-call for rows that an image may not see.
static sdg_window_piece_t piece_of(const sdg_conv_data_t *dgrad,
                                   const sdg_box_t *want, int index) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_window_piece_t piece = {.x.dims = op->dims, .y.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_cut_t cut =
        cut_made(&op->dim[d], want->dim[d], dgrad->image[index].at[d]);
    piece.x.dim[d] = cut.x;
    piece.y.dim[d] = cut.y;
    piece.pad[d] = (int)cut.pad;
  }
  piece.x.dim[1] = op->x_box.dim[1];
  piece.y.dim[1] = op->y_box.dim[1];
  return piece;
}

bool sdg_conv_data_piece(const sdg_conv_data_t *dgrad, const sdg_box_t *want,
                         int index, sdg_window_piece_t *out) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_box_t rows = *want;
  rows.dim[1] = (sdg_range_t){0, 1}; // channels count as one element
  sdg_box_t need =
      sdg_window_back_need(op->dims, op->dim, &rows, dgrad->image[index].at);
  if ((index > 0 || sdg_window_op_wraps(op)) && sdg_box_empty(&need))
    return false;
  *out = piece_of(dgrad, &rows, index);
  return true;
}

sdg_window_piece_t sdg_conv_data_sample(const sdg_conv_data_t *dgrad) {
  sdg_box_t rows = dgrad->conv.op.x_box;
  sdg_window_piece_t piece;
  for (int i = 0; i < dgrad->images; i++)
    if (sdg_conv_data_piece(dgrad, &rows, i, &piece))
      return piece;
  rows.dim[1] = (sdg_range_t){0, 1};
  return piece_of(dgrad, &rows, 0); // no output sees the rows
}

sdg_box_t sdg_conv_data_made(const sdg_conv_data_t *dgrad,
                             const sdg_box_t *want, bool *out_sums) {
  sdg_window_piece_t piece;
  *out_sums = !sdg_conv_data_piece(dgrad, want, 0, &piece) ||
              !sdg_box_contains(&piece.x, want);
  return *out_sums ? *want : piece.x;
}

bool sdg_conv_data_is_apart(const sdg_conv_data_t *dgrad, const sdg_box_t *made,
                            const sdg_box_t *want) {
  const sdg_box_t *owned = &dgrad->conv.op.x_box;
  return dgrad->apart || !sdg_box_equal(made, owned) ||
         !sdg_box_equal(want, owned);
}

bool sdg_conv_data_stacks(const sdg_conv_data_t *dgrad, const sdg_box_t *want,
                          int strips, const int64_t *x, const int64_t *y,
                          sdg_window_piece_t *out_piece, int *out_lead) {
  const int64_t *like[] = {x, y};
  bool sums = dgrad->images > 1 || strips < 2;
  for (int s = 0; s < strips && !sums; s++) {
    (void)sdg_conv_data_made(dgrad, &want[s], &sums);
    sums = sums || !sdg_conv_data_piece(dgrad, &want[s], 0, &out_piece[s]);
  }
  if (!sums)
    sdg_window_stacks_find(out_piece, strips, like, 2, out_lead);
  return !sums;
}
