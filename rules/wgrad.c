// SPDX-License-Identifier: Apache-2.0
// The geometry of one gradient of a convolution's filter on split tensors.
#include "rules/convwgrad.h"

sdg_box_t sdg_wgrad_owned(const sdg_window_op_t *op) {
  sdg_box_t owned = {.dims = op->dims};
  for (int d = 0; d < op->dims; d++)
    owned.dim[d] = op->dim[d].y;
  owned.dim[1] = op->y_box.dim[1];
  return owned;
}

// Where a rank has all outputs, the op's own padding does what rows of zeros
// would.
static bool is_all(const sdg_window_dim_t *dim, sdg_range_t y) {
  return !dim->wrap && y.lo == 0 && y.hi == dim->y_extent;
}

// One dimension of a view.
typedef struct cut {
  sdg_range_t x, y, right;
  int64_t pad;
} cut_t;

static bool range_equal(sdg_range_t a, sdg_range_t b) {
  return a.lo == b.lo && a.hi == b.hi;
}

// The program's own tensors as they are, where that is in phase and not too
// much of it is in vain (*io_bare: that is why not): engines take those best.
// Otherwise the rows that need no correction.
static cut_t cut_of(const sdg_window_dim_t *dim, bool padded, bool *io_bare) {
  sdg_window_view_t view = sdg_window_view(dim), better;
  cut_t whole = {view.x, view.y, view.right, dim->window.pad};
  sdg_range_t inner = sdg_window_within(dim);
  cut_t bare = {sdg_window_need(&dim->window, inner), inner, inner, 0};
  bool all = range_equal(view.x, dim->x) && range_equal(view.y, dim->y);
  bool right = view.right.lo < view.right.hi;
  if (!right || (!all && inner.lo < inner.hi))
    return bare;
  if (padded || !sdg_window_bare(dim, &view, &better))
    return whole;
  *io_bare = true;
  return bare;
}

bool sdg_wgrad_view(const sdg_window_op_t *op, const sdg_box_t *x,
                    sdg_wgrad_view_t *out) {
  sdg_window_piece_t *piece = &out->piece;
  *out = (sdg_wgrad_view_t){.right.dims = op->dims};
  piece->x.dims = piece->y.dims = op->dims;
  for (int d = 0; d < op->dims; d++) {
    sdg_window_dim_t dim = op->dim[d];
    if (d != 1)
      dim.x = x->dim[d];
    cut_t cut = cut_of(&dim, op->whole || op->padded, &piece->bare);
    piece->x.dim[d] = cut.x;
    piece->y.dim[d] = cut.y;
    piece->pad[d] = (int)cut.pad;
    out->right.dim[d] = cut.right;
  }
  piece->x.dim[1] = op->x_box.dim[1];
  piece->y.dim[1] = out->right.dim[1] = op->y_box.dim[1];
  return !sdg_box_empty(&out->right);
}

void sdg_wgrad_settle(const sdg_call_t *call, sdg_conv_t *conv) {
  sdg_grad_arguments_t a = sdg_grad_arguments(call);
  sdg_wgrad_view_t view;
  (void)sdg_wgrad_view(&conv->op, &conv->op.x_box, &view);
  sdg_conv_view_settle(call, conv, &view.piece, a.w_desc, a.algo);
}

sdg_window_piece_t sdg_wgrad_strip(const sdg_window_op_t *op,
                                   const sdg_box_t *y) {
  sdg_window_piece_t piece = {.x.dims = op->dims, .y = *y};
  for (int d = 0; d < op->dims; d++) {
    const sdg_window_dim_t *dim = &op->dim[d];
    if (d != 1 && is_all(dim, y->dim[d])) {
      piece.x.dim[d] = (sdg_range_t){0, dim->x_extent};
      piece.pad[d] = (int)dim->window.pad;
    } else {
      piece.x.dim[d] = sdg_window_need(&dim->window, y->dim[d]);
    }
  }
  piece.x.dim[1] = op->x_box.dim[1];
  return piece;
}

int sdg_wgrad_strips(const sdg_window_op_t *op, const sdg_wgrad_view_t *view,
                     int *out_full, sdg_window_piece_t *out) {
  sdg_box_t owned = sdg_wgrad_owned(op), none = {.dims = op->dims};
  sdg_box_t rows[SDG_WGRAD_PIECES_MAX];
  int count = sdg_box_subtract(&owned, view ? &view->piece.y : &none, rows);
  *out_full = count;
  if (view)
    count += sdg_box_subtract(&view->piece.y, &view->right, rows + count);
  for (int i = 0; i < count; i++)
    out[i] = sdg_wgrad_strip(op, &rows[i]);
  return count;
}
