// SPDX-License-Identifier: Apache-2.0
// The geometry of data gradients by scatter-add, and the choice of that way if
// it sends less.
#include "rules/conv/adjoint.h"

#include <math.h>

#include "rules/window/back.h"

static sdg_range_t range_of(int64_t lo, int64_t hi) {
  return lo < hi ? (sdg_range_t){lo, hi} : (sdg_range_t){0, 0};
}

static int64_t common(sdg_range_t a, int64_t lo, int64_t hi) {
  return sdg_max64(0, sdg_min64(a.hi, hi) - sdg_max64(a.lo, lo));
}

// The range from the first to the last of the rows that own outputs see.
static sdg_range_t seen_of(const sdg_window_dim_t *dim, sdg_range_t rows) {
  sdg_window_cut_t cut;
  sdg_range_t seen;
  return sdg_window_back_of(&dim->window, dim->y, rows, &seen, &cut)
             ? seen
             : (sdg_range_t){0, 0};
}

// All rows that own outputs see, in a periodic dimension also across its end.
// With gaps between windows (stride > span), the domain's first and last rows
// may not be among them.
static sdg_range_t touched(const sdg_window_dim_t *dim) {
  sdg_range_t rows = sdg_window_need(&dim->window, dim->y);
  return dim->wrap ? rows : seen_of(dim, sdg_range_cut(rows, dim->x_extent));
}

static sdg_range_t touched_own(const sdg_window_dim_t *dim) {
  sdg_range_t rows = touched(dim);
  return seen_of(dim, range_of(sdg_max64(rows.lo, dim->x.lo),
                               sdg_min64(rows.hi, dim->x.hi)));
}

static sdg_range_t touched_beside(const sdg_window_dim_t *dim, bool below) {
  sdg_range_t rows = touched(dim);
  return seen_of(dim, below ? range_of(rows.lo, sdg_min64(rows.hi, dim->x.lo))
                            : range_of(sdg_max64(rows.lo, dim->x.hi), rows.hi));
}

// Empty if one of its ranges is empty.
static sdg_box_t box_settle(const sdg_conv_data_t *g, sdg_box_t box) {
  for (int d = 0; d < box.dims; d++)
    if (sdg_range_empty(box.dim[d]))
      return (sdg_box_t){.dims = box.dims};
  box.dim[1] = g->conv.op.x_box.dim[1];
  return box;
}

// Proceeds dimension by dimension, like sdg_box_subtract().
static sdg_box_t side_of(const sdg_conv_data_t *g, const sdg_window_dim_t *dim,
                         int side) {
  int at = side / 2;
  sdg_box_t box = {.dims = g->conv.op.dims};
  for (int d = 0; d < box.dims; d++)
    box.dim[d] = d < at    ? touched_own(&dim[d])
                 : d == at ? touched_beside(&dim[d], side % 2 == 0)
                           : touched(&dim[d]);
  return box_settle(g, box);
}

sdg_box_t sdg_conv_adjoint_side(const sdg_conv_data_t *dgrad,
                                const sdg_tagging_t *tagging, int rank,
                                int side) {
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  sdg_window_op_own(&dgrad->conv.op, tagging, &dgrad->conv.spec, rank, dim);
  return side_of(dgrad, dim, side);
}

// Own rows that no other rank's dy touches.
static sdg_range_t inner_of(const sdg_window_dim_t *dim) {
  const sdg_window_view_t own = {.x = dim->x, .y = dim->y};
  return sdg_range_empty(dim->x) || sdg_range_empty(dim->y)
             ? (sdg_range_t){0, 0}
             : seen_of(dim, sdg_window_back_right(dim, &own));
}

sdg_box_t sdg_conv_adjoint_inner(const sdg_conv_data_t *dgrad) {
  sdg_box_t box = {.dims = dgrad->conv.op.dims};
  for (int d = 0; d < box.dims; d++)
    box.dim[d] = inner_of(&dgrad->conv.op.dim[d]);
  return box_settle(dgrad, box);
}

// Rows of one dimension that one sub-call computes.
typedef struct segment {
  sdg_range_t want, taps;
  sdg_window_cut_t cut;
} segment_t;

// One row, through the taps by which own outputs see it; false if no output
// sees it. k=3, s=1, p=1, y [5,10), row 4: output 5 through tap 0.
static bool row_segment(const sdg_window_dim_t *dim, int64_t row,
                        segment_t *out) {
  const sdg_window_t *w = &dim->window;
  sdg_range_t taps = {0, 0};
  for (int64_t tap = 0; tap < w->kernel; tap++) {
    int64_t from = row + w->pad - tap * w->dilation;
    int64_t output = sdg_floor_div(from, w->stride);
    if (output * w->stride != from || output < dim->y.lo || output >= dim->y.hi)
      continue;
    taps = sdg_range_empty(taps) ? (sdg_range_t){tap, tap + 1}
                                 : (sdg_range_t){taps.lo, tap + 1};
  }
  sdg_window_t part = *w;
  part.kernel = taps.hi - taps.lo;
  part.pad -= taps.lo * w->dilation;
  sdg_range_t seen;
  *out = (segment_t){.want = {row, row + 1}, .taps = taps};
  return !sdg_range_empty(taps) &&
         sdg_window_back_of(&part, dim->y, out->want, &seen, &out->cut);
}

// Lists the inner rows as one part and each other row as its own part; -1: more
// parts than `out` has room for.
static int segments(const sdg_window_dim_t *dim,
                    segment_t out[SDG_CONV_ADJOINT_PARTS]) {
  sdg_range_t inner = inner_of(dim), rows = touched(dim), seen;
  int count = 0;
  if (!sdg_range_empty(inner)) {
    out[0] = (segment_t){.want = inner, .taps = {0, dim->window.kernel}};
    count = sdg_window_back_of(&dim->window, dim->y, inner, &seen, &out[0].cut);
  }
  for (int64_t row = rows.lo; row < rows.hi; row++) {
    segment_t one;
    if (row >= inner.lo && row < inner.hi) {
      row = inner.hi - 1;
      continue;
    }
    if (!row_segment(dim, row, &one))
      continue;
    if (count == SDG_CONV_ADJOINT_PARTS)
      return -1;
    out[count++] = one;
  }
  return count;
}

static int parts_of(const sdg_conv_data_t *g, const sdg_window_dim_t *dim,
                    sdg_conv_adjoint_part_t *out) {
  const sdg_window_op_t *op = &g->conv.op;
  segment_t segment[SDG_DIMS_MAX][SDG_CONV_ADJOINT_PARTS];
  int count[SDG_DIMS_MAX], at[SDG_DIMS_MAX] = {0}, all = 1;
  for (int d = 0; d < op->dims; d++) {
    count[d] = segments(&dim[d], segment[d]);
    if (count[d] < 0 || (all *= count[d]) > SDG_CONV_ADJOINT_PARTS)
      return -1;
  }
  for (int i = 0; out && i < all; i++) {
    sdg_conv_adjoint_part_t *part = &out[i];
    *part = (sdg_conv_adjoint_part_t){.piece.x.dims = op->dims,
                                      .piece.y.dims = op->dims,
                                      .piece.keep.dims = op->dims,
                                      .all = true};
    for (int d = 0; d < op->dims; d++) {
      const segment_t *of = &segment[d][at[d]];
      part->piece.keep.dim[d] = of->want;
      part->piece.x.dim[d] = of->cut.x;
      part->piece.y.dim[d] = of->cut.y;
      part->piece.pad[d] = (int)of->cut.pad;
      part->taps[d] = of->taps;
      part->all &= of->taps.hi - of->taps.lo == dim[d].window.kernel;
    }
    part->piece.x.dim[1] = part->piece.keep.dim[1] = op->x_box.dim[1];
    part->piece.y.dim[1] = op->y_box.dim[1];
    for (int d = op->dims - 1; d >= 0 && ++at[d] == count[d]; d--)
      at[d] = 0;
  }
  return all;
}

int sdg_conv_adjoint_parts(const sdg_conv_data_t *dgrad,
                           sdg_conv_adjoint_part_t *out) {
  return parts_of(dgrad, dgrad->conv.op.dim, out);
}

bool sdg_conv_adjoint_in_place(const sdg_conv_data_t *dgrad,
                               sdg_window_piece_t *out) {
  const sdg_window_op_t *op = &dgrad->conv.op;
  sdg_window_piece_t piece = {
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_cut_t cut;
    if (!sdg_window_back_exact(&op->dim[d], &cut))
      return false;
    piece.x.dim[d] = cut.x;
    piece.y.dim[d] = cut.y;
    piece.pad[d] = (int)cut.pad;
  }
  piece.x.dim[1] = op->x_box.dim[1];
  piece.y.dim[1] = op->y_box.dim[1];
  piece.keep = sdg_conv_adjoint_inner(dgrad);
  *out = piece;
  return true;
}

// ---- the choice ------------------------------------------------------------

// Number of rows of [0, extent), and of their images, that are in both `owned`
// and `rows`.
static int64_t images_in(const sdg_window_dim_t *dim, sdg_range_t rows) {
  int64_t n = dim->x_extent, count = 0;
  if (!dim->wrap)
    return common(rows, dim->x.lo, dim->x.hi);
  for (int64_t m = sdg_floor_div(rows.lo, n); m * n < rows.hi; m++)
    count += common(rows, dim->x.lo + m * n, dim->x.hi + m * n);
  return count;
}

// Number of elements of dx that a rank sends; -1: they need too many parts.
static int64_t sent(const sdg_conv_data_t *g, const sdg_tagging_t *tagging,
                    int rank) {
  const sdg_window_op_t *op = &g->conv.op;
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  int64_t count = 0;
  sdg_window_op_own(op, tagging, &g->conv.spec, rank, dim);
  if (parts_of(g, dim, NULL) < 0)
    return -1;
  for (int side = 0; side < 2 * op->dims; side++) {
    sdg_box_t box = side_of(g, dim, side);
    if (sdg_box_empty(&box))
      continue;
    int64_t own = 1;
    for (int d = 0; d < op->dims; d++)
      own *= d == 1 ? box.dim[1].hi - box.dim[1].lo
                    : images_in(&dim[d], box.dim[d]);
    count += sdg_box_count(&box) - own;
  }
  return count;
}

// Sums over ranks must not be rounded to a narrower type than a single device
// accumulates in.
static bool adds_exactly(const sdg_operand_t *operand) {
  return operand->type == CUDNN_DATA_FLOAT ||
         operand->type == CUDNN_DATA_DOUBLE;
}

bool sdg_conv_adjoint_chosen(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_conv_data_t *dgrad,
                             const char **out_why) {
  const sdg_section_t *section = tagging->section;
  const sdg_conv_t *conv = &dgrad->conv;
  if (section->strategy != SDG_STRATEGY_AUTO ||
      !adds_exactly(&call->operand[conv->x]))
    return false;
  // Rows that are infinities on several ranks may add up to NaN.
  if (isinf(sdg_call_scalar(call, SDG_ALPHA)))
    return false;
  // Whole view: nothing is sent to ranks that already have it.
  if (conv->op.whole && !(tagging->pieces >> conv->y & 1))
    return false;
  int64_t halo = sdg_conv_data_halo(dgrad, tagging), back = 0;
  for (int r = 0; r < tagging->ranks; r++) {
    int64_t one = sent(dgrad, tagging, tagging->rank_list[r]);
    if (one < 0)
      return false;
    back += one;
  }
  if (halo == 0 || back == 0)
    return false;
  *out_why = section->adjoint
                 ? "asked for by 'strategy ='"
                 : "auto: the rows of dx that this rank's dy contributes to "
                   "other ranks are fewer bytes than a halo of dy";
  return section->adjoint || back < halo;
}
