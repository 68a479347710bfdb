// SPDX-License-Identifier: Apache-2.0
// The sub-calls of a forward pooling's plan.
#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"
#include "rules/pool/rule.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/cost.h"
#include "rules/window/plan.h"

// State that the callbacks of the plan's maker share.
typedef struct client {
  const sdg_call_t *call;
  const sdg_pool_t *pool;
} client_t;

static cudnnStatus_t piece_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnPoolingForward(
      run->handle, run->op, sdg_call_scalar_at(run->call, SDG_ALPHA),
      run->descriptor[0], run->data[0], sdg_call_scalar_at(run->call, SDG_BETA),
      run->descriptor[1], run->data[1]);
}

static sdg_status_t client_open(void *user, sdg_plan_t *plan) {
  return sdg_subcalls_open(plan, ((const client_t *)user)->call);
}

// Stores the sub-call of a piece. The vendor has no function that tells whether
// it accepts the piece, so *out_refusal is always 0.
static sdg_status_t client_add(void *user, sdg_plan_t *plan,
                               const sdg_window_piece_t *piece,
                               const sdg_window_slabs_t *slabs,
                               int *out_refusal) {
  const client_t *client = user;
  const sdg_pool_t *pool = client->pool;
  const sdg_operand_t *of = client->call->operand;
  cudnnPoolingDescriptor_t descriptor;
  *out_refusal = 0;
  SDG_TRY(sdg_pool_descriptor(&pool->parameters, piece->pad + 2, &descriptor));
  sdg_subcall_t sub = {
      .fn = piece_run,
      .tensors = 2,
      .tensor = {{slabs->x, piece->x, of[pool->x].type, NULL},
                 {slabs->y, piece->y, of[pool->y].type, NULL}},
      .op = descriptor,
      .op_destroy = sdg_pool_descriptor_destroy,
  };
  int index;
  return sdg_subcall_keep(plan, &sub, &index);
}

static sdg_status_t client_close(void *user, sdg_plan_t *plan) {
  (void)user;
  (void)plan;
  return SDG_OK;
}

static sdg_window_client_t client_make(client_t *client) {
  return (sdg_window_client_t){
      .x = client->pool->x,
      .y = client->pool->y,
      .z = -1,
      .reads_old = sdg_call_scalar(client->call, SDG_BETA) != 0,
      .open = client_open,
      .add = client_add,
      .close = client_close,
      .user = client,
  };
}

sdg_status_t sdg_pool_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  sdg_pool_t pool;
  SDG_TRY(sdg_tagging_sure(call, tagging));
  SDG_TRY(sdg_pool_init(call, tagging, &pool));
  client_t client = {call, &pool};
  sdg_window_client_t window = client_make(&client);
  sdg_status_t status =
      sdg_window_op_weigh_forward(call, tagging, &pool.spec, &pool.op);
  if (status == SDG_OK)
    status = sdg_pool_global_can(&pool, tagging)
                 ? sdg_pool_global_plan(call, tagging, &pool, out_plan)
                 : sdg_window_plan(call, tagging, &pool.op, &window, out_plan);
  sdg_pool_fini(&pool);
  return status;
}

// Fills in what each rank of the job reads: its need of x, or, if the ranks
// gather results of pieces, its own piece of x; and the old values of its own
// outputs if beta is not 0.
static sdg_status_t share_fill(sdg_share_t *share, const sdg_pool_t *pool,
                               const sdg_tagging_t *tagging, bool pieces,
                               bool reads_old) {
  sdg_box_t *need;
  share->around = sdg_window_op_wraps(&pool->op);
  if (reads_old)
    SDG_TRY(sdg_share_reads_own(share, pool->y, &pool->op.y_placement,
                                tagging->mesh));
  if (pieces)
    return sdg_share_reads_own(share, pool->x, &tagging->placement[pool->x],
                               tagging->mesh);
  SDG_TRY(sdg_share_reads(share, pool->x, &need));
  for (int r = 0; r < share->ranks; r++)
    need[r] = sdg_window_op_need(&pool->op, tagging, &pool->spec, r);
  return SDG_OK;
}

static sdg_status_t share_make(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, sdg_pool_t *pool,
                               sdg_plan_t **out_plan) {
  client_t client = {call, pool};
  sdg_window_client_t window = client_make(&client);
  sdg_share_t *share;
  sdg_status_t status;
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &share));
  SDG_TRY_GOTO(sdg_share_output(share, pool->y, &pool->op.y_placement), fail);
  bool pieces = sdg_pool_global_can(pool, tagging);
  SDG_TRY_GOTO(share_fill(share, pool, tagging, pieces, window.reads_old),
               fail);
  status = pieces ? sdg_pool_global_plan(call, tagging, pool, out_plan)
                  : sdg_window_plan_whole(call, &pool->op, &window,
                                          tagging->section->strategy, out_plan);
fail:
  return sdg_plan_finish_share(share, status, out_plan);
}

sdg_status_t sdg_pool_share(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) {
  sdg_pool_t pool;
  bool can;
  *out_plan = NULL;
  SDG_TRY(sdg_pool_init_whole(call, tagging, &pool, &can));
  if (!can)
    return SDG_OK;
  sdg_status_t status = share_make(call, tagging, &pool, out_plan);
  sdg_pool_fini(&pool);
  return status;
}
