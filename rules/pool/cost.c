// SPDX-License-Identifier: Apache-2.0
// Counts what repair and extend do for a pooling gradient.
#include "rules/pool/backward.h"
#include "rules/window/cost.h"

typedef struct tensors {
  const sdg_operand_t *x, *y;
  const sdg_pool_backward_t *back; // as this rank sees it
} tensors_t;

static sdg_status_t backward_weigh(const void *user, const sdg_window_op_t *op,
                                   bool extend, sdg_window_work_t *out,
                                   bool *out_can) {
  const tensors_t *of = user;
  sdg_box_t want[2 * SDG_DIMS_MAX];
  sdg_window_piece_t piece;
  sdg_pool_backward_t back = *of->back;
  back.pool.op = *op;
  *out = (sdg_window_work_t){.calls = !extend};
  sdg_window_piece_t view = sdg_pool_backward_view(&back);
  *out_can = extend || !sdg_box_empty(&view.keep);
  if (!*out_can)
    return SDG_OK;
  int strips = sdg_pool_backward_strips(&back, extend, want);
  for (int s = 0; s < strips; s++) {
    for (int i = 0; i < back.images; i++) {
      if (!sdg_pool_backward_piece(&back, &want[s], i, &piece))
        continue;
      int64_t x_bytes = sdg_box_count(&piece.x) * of->x->elem_bytes;
      int64_t y_bytes = sdg_box_count(&piece.y) * of->y->elem_bytes;
      out->calls++;
      out->copies += back.reads ? 3 : 1; // dy; y and x, to find the maxima
      out->bytes += back.reads ? x_bytes + 2 * y_bytes : y_bytes;
    }
    out->copies++; // the rows of dx
    out->bytes += sdg_box_count(&want[s]) * of->x->elem_bytes;
  }
  return SDG_OK;
}

sdg_status_t sdg_pool_backward_weigh(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     sdg_pool_backward_t *back) {
  sdg_pool_t *pool = &back->pool;
  const tensors_t of = {&call->operand[pool->x], &call->operand[pool->y], back};
  return sdg_window_op_weigh(tagging, &pool->spec, backward_weigh, &of,
                             &pool->op);
}
