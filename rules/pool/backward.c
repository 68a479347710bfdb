// SPDX-License-Identifier: Apache-2.0
// The geometry of a pooling gradient on split tensors.
#include "rules/pool/backward.h"

#include <stdlib.h>
#include <string.h>

#include "rules/window/back.h"
#include "src/geometry/ring.h"

// The outputs whose windows touch the rows; may be empty.
static sdg_range_t windows_on(const sdg_window_dim_t *dim, sdg_range_t rows) {
  return sdg_range_cut(sdg_window_need_adjoint(&dim->window, rows),
                       dim->y_extent);
}

static sdg_range_t moved(sdg_range_t range, int64_t by) {
  return (sdg_range_t){range.lo + by, range.hi + by};
}

sdg_box_t sdg_pool_backward_need_as(const sdg_pool_backward_t *back,
                                    const sdg_tagging_t *tagging,
                                    const int64_t *image, int rank) {
  const sdg_window_op_t *op = &back->pool.op;
  sdg_box_t x =
      sdg_placement_box(&tagging->placement[back->pool.x], tagging->mesh, rank);
  sdg_box_t need = {.dims = op->dims};
  for (int d = 0; d < op->dims && !sdg_box_empty(&x); d++) {
    int64_t shift = image[d] * op->dim[d].x_extent;
    need.dim[d] = windows_on(&op->dim[d], moved(x.dim[d], shift));
    if (sdg_range_empty(need.dim[d]))
      return (sdg_box_t){.dims = op->dims};
  }
  return need;
}

sdg_box_t sdg_pool_backward_need_y(const sdg_pool_backward_t *back,
                                   const sdg_tagging_t *tagging, int rank) {
  const sdg_window_op_t *op = &back->pool.op;
  int64_t extent[SDG_DIMS_MAX];
  sdg_box_t need = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    extent[d] = op->dim[d].y_extent;
  for (int i = 0; i < back->images; i++) {
    sdg_box_t as =
        sdg_pool_backward_need_as(back, tagging, back->image[i].at, rank);
    need = sdg_ring_hull(&need, &as, extent);
  }
  return need;
}

// The range of all rows that are seen by the windows that touch `rows`. In a
// periodic dimension it covers all images of `rows`.
static sdg_range_t seen_around(const sdg_window_dim_t *dim, sdg_range_t rows) {
  sdg_range_t images = {0, 1}, seen = {0, 0};
  if (dim->wrap)
    images = sdg_window_images(&dim->window, dim->x_extent, dim->y_extent);
  for (int64_t m = images.lo; m < images.hi; m++) {
    int64_t shift = m * dim->x_extent;
    sdg_range_t windows = windows_on(dim, moved(rows, shift));
    if (sdg_range_empty(windows))
      continue;
    sdg_range_t need = moved(sdg_window_need(&dim->window, windows), -shift);
    seen = sdg_range_empty(seen) ? need
                                 : (sdg_range_t){sdg_min64(seen.lo, need.lo),
                                                 sdg_max64(seen.hi, need.hi)};
  }
  return dim->wrap ? seen : sdg_range_cut(seen, dim->x_extent);
}

sdg_box_t sdg_pool_backward_need_x(const sdg_pool_backward_t *back,
                                   const sdg_tagging_t *tagging, int rank) {
  const sdg_window_op_t *op = &back->pool.op;
  sdg_box_t x =
      sdg_placement_box(&tagging->placement[back->pool.x], tagging->mesh, rank);
  sdg_box_t need = {.dims = op->dims};
  if (!back->reads || sdg_box_empty(&x))
    return need;
  for (int d = 0; d < op->dims; d++) {
    need.dim[d] = seen_around(&op->dim[d], x.dim[d]);
    if (sdg_range_empty(need.dim[d]))
      return (sdg_box_t){.dims = op->dims};
  }
  return need;
}

// All combinations of the images of each dimension, the domain itself first.
static sdg_status_t images_list(sdg_pool_backward_t *back) {
  const sdg_window_op_t *op = &back->pool.op;
  sdg_range_t images[SDG_DIMS_MAX];
  int count = 1;
  for (int d = 0; d < op->dims; d++) {
    const sdg_window_dim_t *dim = &op->dim[d];
    images[d] = (sdg_range_t){0, 1};
    if (dim->wrap)
      images[d] = sdg_window_images(&dim->window, dim->x_extent, dim->y_extent);
    count *= (int)(images[d].hi - images[d].lo);
  }
  SDG_TRY(SDG_ALLOCATE(back->image, count, "images of a periodic domain"));
  back->images = 1;
  for (int i = 0; i < count; i++) {
    int64_t at[SDG_DIMS_MAX] = {0};
    bool itself = true;
    for (int d = 0, rest = i; d < op->dims; d++) {
      int here = (int)(images[d].hi - images[d].lo);
      at[d] = images[d].lo + rest % here;
      rest /= here;
      itself &= at[d] == 0;
    }
    if (!itself)
      memcpy(back->image[back->images++].at, at, sizeof at);
  }
  return SDG_OK;
}

// If several ranks have the same elements of y, the one with the first rows of
// x sends them.
static bool is_giver(const sdg_pool_backward_t *back,
                     const sdg_tagging_t *tagging, int rank) {
  sdg_box_t x =
      sdg_placement_box(&tagging->placement[back->pool.x], tagging->mesh, rank);
  for (int d = 0; d < x.dims; d++)
    if (back->pool.spec.everyones[d] && x.dim[d].lo > 0)
      return false;
  return true;
}

// Plans the messages of y and dy for one image, or, if image is NULL, of x.
static sdg_status_t transfer_make(sdg_pool_backward_t *back,
                                  const sdg_tagging_t *tagging,
                                  const sdg_placement_t *owner,
                                  const sdg_pool_image_t *image,
                                  sdg_transfer_t *out) {
  const sdg_window_op_t *op = &back->pool.op;
  size_t ranks = (size_t)tagging->ranks;
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks", tagging->ranks));
  sdg_box_t *need = owned + ranks;
  int64_t period[SDG_DIMS_MAX] = {0};
  for (int d = 0; d < op->dims && !image; d++)
    if (op->dim[d].wrap)
      period[d] = op->dim[d].x_extent;
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    owned[r] = sdg_placement_box(owner, tagging->mesh, rank);
    if (image && !is_giver(back, tagging, rank))
      owned[r] = (sdg_box_t){.dims = op->dims};
    need[r] = image ? sdg_pool_backward_need_as(back, tagging, image->at, rank)
                    : sdg_pool_backward_need_x(back, tagging, rank);
    back->communicates |=
        tagging->ranks > 1 && !sdg_box_contains(&owned[r], &need[r]);
  }
  sdg_status_t status =
      sdg_transfer_plan(owned, need, tagging->ranks, tagging->me, period, out);
  free(owned);
  return status;
}

// Whole view: all inputs are available when the call runs.
static sdg_status_t local_fill(sdg_pool_backward_t *back,
                               const sdg_tagging_t *tagging) {
  const sdg_window_op_t *op = &back->pool.op;
  sdg_box_t x = sdg_pool_backward_need_x(back, tagging, tagging->rank);
  SDG_TRY(sdg_window_op_local(op, &op->x_box, &x, &back->transfer));
  for (int i = 0; i < back->images; i++) {
    sdg_pool_image_t *image = &back->image[i];
    sdg_box_t y =
        sdg_pool_backward_need_as(back, tagging, image->at, tagging->rank);
    SDG_TRY(sdg_transfer_plan(&op->y_box, &y, 1, 0, NULL, &image->transfer));
  }
  return SDG_OK;
}

sdg_status_t sdg_pool_backward_fill(sdg_pool_backward_t *back,
                                    const sdg_tagging_t *tagging) {
  const sdg_pool_t *pool = &back->pool;
  SDG_TRY(images_list(back));
  if (pool->op.whole)
    return local_fill(back, tagging);
  SDG_TRY(transfer_make(back, tagging, &tagging->placement[pool->x], NULL,
                        &back->transfer));
  for (int i = 0; i < back->images; i++)
    SDG_TRY(transfer_make(back, tagging, &pool->op.y_placement, &back->image[i],
                          &back->image[i].transfer));
  return SDG_OK;
}

static bool reads_values(const sdg_pool_t *pool) {
  return pool->parameters.mode == CUDNN_POOLING_MAX ||
         pool->parameters.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

static sdg_status_t pairs_check(const sdg_pool_t *pool, const sdg_call_t *call,
                                const sdg_tagging_t *tagging) {
  const sdg_placement_t *placement = tagging->placement;
  if (!sdg_placement_equal(&placement[pool->x], &placement[pool->dx]))
    return sdg_fail(SDG_E_OPERANDS_DIFFER, "x and dx of %s", call->entry_name);
  if (!sdg_placement_equal(&placement[pool->y], &placement[pool->dy]))
    return sdg_fail(SDG_E_OPERANDS_DIFFER, "y and dy of %s", call->entry_name);
  return SDG_OK;
}

sdg_status_t sdg_pool_backward_init(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_pool_backward_t *out) {
  memset(out, 0, sizeof *out);
  SDG_TRY(sdg_pool_init(call, tagging, &out->pool));
  out->reads = reads_values(&out->pool);
  sdg_status_t status = pairs_check(&out->pool, call, tagging);
  if (status == SDG_OK)
    status = sdg_pool_backward_fill(out, tagging);
  if (status == SDG_OK)
    status = sdg_pool_backward_weigh(call, tagging, out);
  if (status != SDG_OK)
    sdg_pool_backward_fini(out);
  return status;
}

sdg_status_t sdg_pool_backward_init_whole(const sdg_call_t *call,
                                          const sdg_tagging_t *tagging,
                                          sdg_pool_backward_t *out,
                                          bool *out_can) {
  memset(out, 0, sizeof *out);
  SDG_TRY(sdg_pool_init_whole(call, tagging, &out->pool, out_can));
  if (!*out_can)
    return SDG_OK;
  out->reads = reads_values(&out->pool);
  const sdg_operand_t *of = call->operand;
  const sdg_pool_t *p = &out->pool;
  const int pair[2][2] = {{p->x, p->dx}, {p->y, p->dy}};
  for (int i = 0; i < 2; i++) {
    const sdg_operand_t *a = &of[pair[i][0]], *b = &of[pair[i][1]];
    *out_can &= a->dims == b->dims && a->elem_bytes == b->elem_bytes &&
                memcmp(a->extent, b->extent,
                       (size_t)a->dims * sizeof a->extent[0]) == 0;
  }
  sdg_status_t status = SDG_OK;
  if (*out_can) {
    status = sdg_pool_backward_fill(out, tagging);
  } else if (sdg_window_op_wraps(&p->op)) {
    status = sdg_fail(SDG_E_OPERANDS_DIFFER, "x, dx, y and dy of %s",
                      call->entry_name);
  }
  if (status != SDG_OK || !*out_can)
    sdg_pool_backward_fini(out);
  return status;
}

void sdg_pool_backward_fini(sdg_pool_backward_t *back) {
  sdg_pool_fini(&back->pool);
  sdg_transfer_fini(&back->transfer);
  for (int i = 0; i < back->images; i++)
    sdg_transfer_fini(&back->image[i].transfer);
  free(back->image);
  back->image = NULL;
  back->images = 0;
}

// The cut in a periodic dimension: no padding, and windows also outside the
// domain, at positions where the op would have them.
static sdg_window_cut_t around(const sdg_window_dim_t *dim, sdg_range_t rows) {
  const sdg_window_t *w = &dim->window;
  sdg_range_t need = sdg_window_need(w, dim->y);
  int64_t first =
      sdg_floor_div(sdg_min64(need.lo, rows.lo) + w->pad, w->stride);
  sdg_window_t bare = *w;
  bare.pad = 0;
  sdg_window_cut_t cut = {
      .x = {first * w->stride - w->pad, sdg_max64(need.hi, rows.hi)}};
  cut.y = (sdg_range_t){first,
                        first + sdg_window_outputs(&bare, cut.x.hi - cut.x.lo)};
  return cut;
}

// One dimension of the call that computes these rows of dx.
static sdg_window_cut_t cut_on(sdg_window_dim_t dim, sdg_range_t rows) {
  dim.y = windows_on(&dim, rows);
  // If the rows lie between two windows, the next window computes them: their
  // gradient is 0.
  if (sdg_range_empty(dim.y)) {
    int64_t next = sdg_window_need_adjoint(&dim.window, rows).lo;
    next = sdg_max64(0, sdg_min64(next, dim.y_extent - 1));
    dim.y = (sdg_range_t){next, next + 1};
  }
  return dim.wrap ? around(&dim, rows) : sdg_window_cut_around(&dim, rows);
}

// The owned rows that no window touches which extends across an end of the
// domain; in a dimension that is not periodic, all owned rows.
static sdg_range_t inner_rows(const sdg_window_dim_t *dim) {
  sdg_window_dim_t all = *dim;
  if (!dim->wrap)
    return dim->x;
  all.y = (sdg_range_t){0, dim->y_extent};
  sdg_window_view_t view = {.x = dim->x, .y = sdg_window_inner(&all)};
  return sdg_range_empty(view.y) ? (sdg_range_t){0, 0}
                                 : sdg_window_back_right(dim, &view);
}

static sdg_window_piece_t whole_view(const sdg_window_op_t *op) {
  sdg_window_piece_t piece = {
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_dim_t dim = op->dim[d];
    piece.keep.dim[d] = inner_rows(&dim);
    if (sdg_range_empty(piece.keep.dim[d]))
      return (sdg_window_piece_t){.keep.dims = op->dims};
    dim.wrap = false; // for these rows it makes no difference
    sdg_window_cut_t cut = cut_on(dim, piece.keep.dim[d]);
    piece.x.dim[d] = cut.x;
    piece.y.dim[d] = cut.y;
    piece.pad[d] = (int)cut.pad;
  }
  return piece;
}

sdg_window_piece_t sdg_pool_backward_view(const sdg_pool_backward_t *back) {
  const sdg_window_op_t *op = &back->pool.op;
  if (op->whole)
    return whole_view(op);
  sdg_window_piece_t piece = {
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_view_t view = sdg_window_view(&op->dim[d]);
    piece.x.dim[d] = view.x;
    piece.y.dim[d] = view.y;
    piece.pad[d] = (int)op->dim[d].window.pad;
    // A window contributes if forward computed it right.
    view.y = view.right;
    if (!sdg_range_empty(view.y))
      piece.keep.dim[d] = sdg_window_back_right(&op->dim[d], &view);
  }
  return piece;
}

int sdg_pool_backward_strips(const sdg_pool_backward_t *back, bool extend,
                             sdg_box_t *out) {
  const sdg_window_op_t *op = &back->pool.op;
  sdg_box_t keep = {.dims = op->dims}, owned = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    owned.dim[d] = op->dim[d].x;
  if (!extend)
    keep = sdg_pool_backward_view(back).keep;
  return sdg_box_subtract(&owned, &keep, out);
}

bool sdg_pool_backward_piece(const sdg_pool_backward_t *back,
                             const sdg_box_t *want, int index,
                             sdg_window_piece_t *out) {
  const sdg_window_op_t *op = &back->pool.op;
  *out = (sdg_window_piece_t){
      .x.dims = op->dims, .y.dims = op->dims, .keep = *want};
  for (int d = 0; d < op->dims; d++) {
    const sdg_window_dim_t *dim = &op->dim[d];
    int64_t shift = back->image[index].at[d] * dim->x_extent;
    sdg_range_t rows = moved(want->dim[d], shift);
    if (index > 0 && sdg_range_empty(windows_on(dim, rows)))
      return false;
    sdg_window_cut_t cut = cut_on(*dim, rows);
    out->x.dim[d] = moved(cut.x, -shift);
    out->y.dim[d] = cut.y;
    out->pad[d] = (int)cut.pad;
  }
  return true;
}
