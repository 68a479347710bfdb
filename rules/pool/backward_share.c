// SPDX-License-Identifier: Apache-2.0
// A pooling gradient in the whole view: what each rank reads and computes.
#include "rules/pool/backward.h"
#include "src/plan/share.h"

// Fills in what each rank of the job reads. Means read neither x nor y. If the
// ranks gather results of pieces, a rank reads only its own piece of x.
static sdg_status_t share_fill(sdg_share_t *share,
                               const sdg_pool_backward_t *back,
                               const sdg_tagging_t *tagging, bool pieces,
                               bool old) {
  const sdg_pool_t *pool = &back->pool;
  const sdg_placement_t *placement = &tagging->placement[pool->x];
  sdg_box_t *x, *y, *dy;
  share->around = sdg_window_op_wraps(&pool->op);
  SDG_TRY(sdg_share_reads(share, pool->x, &x));
  SDG_TRY(sdg_share_reads(share, pool->y, &y));
  SDG_TRY(sdg_share_reads(share, pool->dy, &dy));
  if (old)
    SDG_TRY(sdg_share_reads_own(share, pool->dx, placement, tagging->mesh));
  for (int r = 0; r < share->ranks; r++) {
    x[r] = pieces && back->reads
               ? sdg_placement_box(placement, tagging->mesh, r)
               : sdg_pool_backward_need_x(back, tagging, r);
    dy[r] = sdg_pool_backward_need_y(back, tagging, r);
    y[r] = back->reads ? dy[r] : (sdg_box_t){.dims = pool->op.dims};
  }
  return SDG_OK;
}

// Makes this rank's plan, which is empty if it owns no rows of dx.
static sdg_status_t whole_make(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               const sdg_pool_backward_t *back,
                               sdg_plan_t **out_plan) {
  sdg_box_t own = sdg_tagging_own(tagging, &tagging->placement[back->pool.x]);
  if (!sdg_box_empty(&own))
    return sdg_pool_backward_make(call, tagging, back, out_plan);
  return sdg_plan_create("window", out_plan);
}

sdg_status_t sdg_pool_backward_share(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     sdg_plan_t **out_plan) {
  sdg_pool_backward_t back;
  bool can;
  *out_plan = NULL;
  SDG_TRY(sdg_pool_backward_init_whole(call, tagging, &back, &can));
  if (!can)
    return SDG_OK;
  const sdg_pool_t *pool = &back.pool;
  bool pieces = sdg_pool_global_can(pool, tagging);
  sdg_share_t *share;
  sdg_status_t status;
  SDG_TRY_GOTO(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &share), done);
  SDG_TRY_GOTO(sdg_share_output(share, pool->dx, &tagging->placement[pool->x]),
               fail);
  SDG_TRY_GOTO(share_fill(share, &back, tagging, pieces,
                          sdg_pool_backward_reads_old(call)),
               fail);
  status = pieces ? sdg_pool_global_plan(call, tagging, pool, out_plan)
                  : whole_make(call, tagging, &back, out_plan);
fail:
  status = sdg_plan_finish_share(share, status, out_plan);
done:
  sdg_pool_backward_fini(&back);
  return status;
}
