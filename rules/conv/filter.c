// SPDX-License-Identifier: Apache-2.0
// The geometry of one filter gradient of a convolution on split tensors.
#include "rules/conv/filter.h"

#include <stdlib.h>
#include <string.h>

#include "rules/window/stack.h"

// If a rank has all outputs of a dimension, the op's own padding is right.
static bool is_all(const sdg_window_dim_t *dim, sdg_range_t y) {
  return !dim->wrap && y.lo == 0 && y.hi == dim->y_extent;
}

static bool range_equal(sdg_range_t a, sdg_range_t b) {
  return a.lo == b.lo && a.hi == b.hi;
}

bool sdg_conv_filter_view(const sdg_window_op_t *op, const sdg_box_t *x,
                          sdg_window_piece_t *out) {
  *out = (sdg_window_piece_t){.x.dims = op->dims, .y.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_dim_t dim = op->dim[d];
    if (d != 1)
      dim.x = x->dim[d];
    out->y.dim[d] = dim.y;
    if (is_all(&dim, dim.y) &&
        range_equal(dim.x, (sdg_range_t){0, dim.x_extent})) {
      out->x.dim[d] = dim.x;
      out->pad[d] = (int)dim.window.pad;
      continue;
    }
    // At an inner border, padding would replace rows that are not zero.
    out->bare = true;
    out->y.dim[d] = sdg_window_within(&dim);
    out->x.dim[d] = sdg_window_need(&dim.window, out->y.dim[d]);
  }
  out->x.dim[1] = op->x_box.dim[1];
  out->y.dim[1] = op->y_box.dim[1];
  return !sdg_box_empty(&out->y);
}

void sdg_conv_filter_settle(const sdg_call_t *call, sdg_conv_t *conv) {
  sdg_window_piece_t view;
  (void)sdg_conv_filter_view(&conv->op, &conv->op.x_box, &view);
  sdg_conv_view_settle(call, conv, &view, sdg_conv_w(call),
                       sdg_call_int(call, SDG_ALGO));
  sdg_conv_view_judge(call, conv, &view);
}

sdg_status_t sdg_conv_filter_first(const sdg_call_t *call,
                                   const sdg_conv_t *conv,
                                   sdg_strategy_t strategy,
                                   sdg_window_piece_t *out_view,
                                   sdg_conv_way_t *out_way) {
  const sdg_window_op_t *op = &conv->op;
  bool automatic = strategy == SDG_STRATEGY_AUTO;
  bool extends = !sdg_conv_filter_view(op, &op->x_box, out_view) ||
                 strategy == SDG_STRATEGY_EXTEND ||
                 sdg_window_op_is_cheaper_extended(op) ||
                 (automatic && op->slow_in_place);
  *out_way = extends ? SDG_CONV_EXTENDED : SDG_CONV_IN_PLACE;
  // The settled view says already that engines reject it.
  return automatic && op->padded && !extends
             ? sdg_conv_filter_next(call, conv, strategy, out_way)
             : SDG_OK;
}

// ---- strips ----------------------------------------------------------------

// One dimension of a sub-call.
typedef struct side {
  sdg_range_t x, y, taps;
  int64_t pad;
} side_t;

// The sub-calls' sides in one dimension; `side` has room for them.
typedef struct sides {
  side_t *side;
  int count;
} sides_t;

static int runs_max(const sdg_window_dim_t *dim) {
  return 2 * (int)dim->window.kernel + 1;
}

static sdg_range_t all_taps(const sdg_window_dim_t *dim) {
  return (sdg_range_t){0, dim->window.kernel};
}

// The outputs `y` that see inputs `x`.
static void runs_add(sides_t *sides, const sdg_window_dim_t *dim, sdg_range_t y,
                     sdg_range_t x, sdg_window_run_t *room) {
  if (y.lo >= y.hi || x.lo >= x.hi)
    return;
  int count = sdg_window_runs(&dim->window, y, x, room);
  for (int i = 0; i < count; i++)
    sides->side[sides->count++] =
        (side_t){sdg_window_run_inputs(&dim->window, &room[i]), room[i].y,
                 room[i].taps, 0};
}

// The rows that outputs may see: in a periodic dimension also beyond its ends.
static sdg_range_t domain_of(const sdg_window_dim_t *dim) {
  return dim->wrap ? sdg_window_need(&dim->window, dim->y)
                   : (sdg_range_t){0, dim->x_extent};
}

// All rows that owned outputs see.
static void all_add(sides_t *sides, const sdg_window_dim_t *dim,
                    sdg_window_run_t *room) {
  if (is_all(dim, dim->y))
    sides->side[sides->count++] =
        (side_t){{0, dim->x_extent}, dim->y, all_taps(dim), dim->window.pad};
  else
    runs_add(sides, dim, dim->y, domain_of(dim), room);
}

// Everything except what the cut computes, which is everything that its outputs
// see.
static void rest_add(sides_t *sides, const sdg_window_dim_t *dim,
                     const side_t *cut, sdg_window_run_t *room) {
  sdg_range_t domain = domain_of(dim);
  runs_add(sides, dim, (sdg_range_t){dim->y.lo, cut->y.lo}, domain, room);
  runs_add(sides, dim, (sdg_range_t){cut->y.hi, dim->y.hi}, domain, room);
}

static bool is_full(const sdg_conv_filter_strip_t *strip,
                    const sdg_window_op_t *op) {
  bool full = true;
  for (int d = 2; d < op->dims; d++)
    full &= range_equal(strip->taps[d], all_taps(&op->dim[d]));
  return full;
}

static sdg_conv_filter_strip_t strip_of(const sdg_window_op_t *op,
                                        const sides_t *sides, const int *at) {
  sdg_conv_filter_strip_t strip = {.piece.x.dims = op->dims,
                                   .piece.y.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    const side_t *side = &sides[d].side[at[d]];
    strip.piece.x.dim[d] = side->x;
    strip.piece.y.dim[d] = side->y;
    strip.piece.pad[d] = (int)side->pad;
    strip.taps[d] = side->taps;
  }
  // Channels were counted as one element so far.
  strip.piece.x.dim[1] = op->x_box.dim[1];
  strip.piece.y.dim[1] = op->y_box.dim[1];
  strip.all = is_full(&strip, op);
  return strip;
}

// All combinations of one side per dimension.
static sdg_status_t strips_add(const sdg_window_op_t *op, const sides_t *sides,
                               sdg_conv_filter_strip_t **io_strips,
                               int *io_count) {
  int at[SDG_DIMS_MAX] = {0};
  int64_t count = 1;
  for (int d = 0; d < op->dims; d++)
    count *= sides[d].count;
  if (count == 0)
    return SDG_OK;
  sdg_conv_filter_strip_t *more =
      realloc(*io_strips, ((size_t)*io_count + (size_t)count) * sizeof *more);
  if (!more)
    return sdg_fail(SDG_E_NO_MEMORY, "%lld strips", (long long)count);
  *io_strips = more;
  for (int64_t i = 0; i < count; i++) {
    more[(*io_count)++] = strip_of(op, sides, at);
    for (int d = op->dims - 1; d >= 0 && ++at[d] == sides[d].count; d--)
      at[d] = 0;
  }
  return SDG_OK;
}

// Room for the sides of one dimension.
typedef struct room {
  side_t cut, *rest, *all;
  sdg_window_run_t *run;
} room_t;

static sdg_status_t room_make(const sdg_window_dim_t *dim, room_t *out) {
  size_t max = 4 * (size_t)runs_max(dim);
  out->rest = calloc(max, sizeof *out->rest);
  out->all = calloc(max, sizeof *out->all);
  out->run = calloc(max, sizeof *out->run);
  return out->rest && out->all && out->run
             ? SDG_OK
             : sdg_fail(SDG_E_NO_MEMORY, "strips of a gradient");
}

static void room_free(room_t *room) {
  free(room->rest);
  free(room->all);
  free(room->run);
}

// What the view leaves out in dimension `d` and covers in the dimensions before
// it; -1: everything.
static sdg_status_t rest_strips(const sdg_window_op_t *op, room_t *room, int d,
                                sdg_conv_filter_strip_t **io_strips,
                                int *io_count) {
  sides_t sides[SDG_DIMS_MAX];
  for (int i = 0; i < op->dims; i++)
    sides[i] = i < d    ? (sides_t){&room[i].cut, 1}
               : i == d ? (sides_t){room[i].rest, 0}
                        : (sides_t){room[i].all, 0};
  if (d >= 0)
    rest_add(&sides[d], &op->dim[d], &room[d].cut, room[d].run);
  for (int i = d + 1; i < op->dims; i++)
    all_add(&sides[i], &op->dim[i], room[i].run);
  return strips_add(op, sides, io_strips, io_count);
}

// Moves strips of all taps to the front, and returns their number.
static int full_first(sdg_conv_filter_strip_t *strips, int count) {
  int full = 0;
  for (int i = 0; i < count; i++) {
    if (!strips[i].all)
      continue;
    sdg_conv_filter_strip_t strip = strips[full];
    strips[full++] = strips[i];
    strips[i] = strip;
  }
  return full;
}

static sdg_status_t stacks_find(sdg_conv_filter_strip_t *strip, int strips,
                                const int64_t *const like[2]) {
  int full = full_first(strip, strips), *lead;
  sdg_window_piece_t *piece;
  SDG_TRY(SDG_ALLOCATE(piece, full + 1, "strips of a gradient"));
  sdg_status_t status = SDG_ALLOCATE(lead, full + 1, "strips of a gradient");
  for (int i = 0; i < full; i++)
    piece[i] = strip[i].piece;
  if (status == SDG_OK)
    sdg_window_stacks_find(piece, full, like, 2, lead);
  for (int i = 0; i < strips && status == SDG_OK; i++) {
    strip[i].lead = i < full ? lead[i] : i;
    strip[i].size = i < full ? sdg_window_stack_size(lead, full, i) : 1;
  }
  free(lead);
  free(piece);
  return status;
}

sdg_status_t sdg_conv_filter_strips(const sdg_window_op_t *op,
                                    const sdg_window_piece_t *view,
                                    const int64_t *const like[2],
                                    sdg_conv_filter_strip_t **out_strips,
                                    int *out_count) {
  room_t room[SDG_DIMS_MAX];
  sdg_conv_filter_strip_t *strips = NULL;
  int count = 0;
  sdg_status_t status = SDG_OK;
  memset(room, 0, sizeof room);
  for (int d = 0; d < op->dims; d++) {
    SDG_TRY_GOTO(room_make(&op->dim[d], &room[d]), done);
    if (view)
      room[d].cut = (side_t){view->x.dim[d], view->y.dim[d],
                             all_taps(&op->dim[d]), view->pad[d]};
  }
  if (!view)
    SDG_TRY_GOTO(rest_strips(op, room, -1, &strips, &count), done);
  for (int d = 0; view && d < op->dims; d++)
    if (d != 1)
      SDG_TRY_GOTO(rest_strips(op, room, d, &strips, &count), done);
  SDG_TRY_GOTO(stacks_find(strips, count, like), done);
  *out_strips = strips;
  *out_count = count;
  strips = NULL;
done:
  for (int d = 0; d < op->dims; d++)
    room_free(&room[d]);
  free(strips);
  return status;
}
