// SPDX-License-Identifier: Apache-2.0
// The sub-calls of a forward pooling's plan.
#include <stdlib.h>
#include <string.h>

#include "rules/args.h"
#include "rules/pool.h"
#include "rules/tagging.h"
#include "rules/tensor.h"
#include "rules/vendor.h"
#include "rules/windowplan.h"
#include "src/exec.h"

sdg_status_t sdg_pool_describe(const sdg_pool_t *pool, const sdg_call_t *call,
                               const sdg_window_piece_t *piece,
                               const int64_t *x_stride, const int64_t *y_stride,
                               sdg_pool_descriptors_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  memset(out, 0, sizeof *out);
  sdg_status_t status = SDG_OK;
  if (cudnn->cudnnCreateTensorDescriptor(&out->x) != CUDNN_STATUS_SUCCESS ||
      cudnn->cudnnCreateTensorDescriptor(&out->y) != CUDNN_STATUS_SUCCESS) {
    status = sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
    goto fail;
  }
  SDG_TRY_GOTO(
      sdg_tensor_set(out->x, call->operand[pool->x].type, &piece->x, x_stride),
      fail);
  SDG_TRY_GOTO(
      sdg_tensor_set(out->y, call->operand[pool->y].type, &piece->y, y_stride),
      fail);
  SDG_TRY_GOTO(
      sdg_pool_descriptor(&pool->parameters, piece->pad + 2, &out->pool), fail);
  return SDG_OK;
fail:
  sdg_pool_undescribe(out);
  return status;
}

void sdg_pool_undescribe(sdg_pool_descriptors_t *descriptors) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return;
  if (descriptors->x)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->x);
  if (descriptors->y)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->y);
  if (descriptors->pool)
    (void)cudnn->cudnnDestroyPoolingDescriptor(descriptors->pool);
  memset(descriptors, 0, sizeof *descriptors);
}

// One call of the real function within the plan.
typedef struct sub_call {
  sdg_window_slabs_t slabs;
  sdg_box_t x_box, y_box;             // where in the slabs
  sdg_pool_descriptors_t descriptors; // the program's, if slabs.program
} sub_call_t;

typedef struct pool_state {
  int count;
  sub_call_t sub[SDG_PIECES_MAX];
} pool_state_t;

static int pool_run(void *user, int index, const sdg_call_t *call,
                    const sdg_exec_t *exec) {
  const struct sdg_args_cudnnPoolingForward *a = call->args;
  const pool_state_t *state = user;
  const sub_call_t *sub = &state->sub[index];
  return (int)sdg_cudnn_get()->cudnnPoolingForward(
      a->handle, sub->descriptors.pool, a->alpha, sub->descriptors.x,
      sdg_exec_element(exec, sub->slabs.x, &sub->x_box), a->beta,
      sub->descriptors.y, sdg_exec_element(exec, sub->slabs.y, &sub->y_box));
}

static void pool_state_destroy(void *user) {
  pool_state_t *state = user;
  if (!state)
    return;
  for (int i = 0; i < state->count; i++)
    if (!state->sub[i].slabs.program)
      sdg_pool_undescribe(&state->sub[i].descriptors);
  free(state);
}

// What the callbacks of the plan's maker share.
typedef struct client {
  const sdg_call_t *call;
  const sdg_pool_t *pool;
} client_t;

static sdg_status_t client_open(void *user, sdg_plan_t *plan) {
  (void)user;
  plan->state = calloc(1, sizeof(pool_state_t));
  if (!plan->state)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  plan->state_destroy = pool_state_destroy;
  plan->run = pool_run;
  return SDG_OK;
}

// Nobody can be asked whether the vendor's library takes a piece; it has the
// strides of the program's tensors, or none but its own.
static sdg_status_t client_add(void *user, sdg_plan_t *plan,
                               const sdg_window_piece_t *piece,
                               const sdg_window_slabs_t *slabs,
                               int *out_refusal) {
  const client_t *client = user;
  const struct sdg_args_cudnnPoolingForward *a = client->call->args;
  pool_state_t *state = plan->state;
  sub_call_t *sub = &state->sub[state->count];
  *sub = (sub_call_t){
      .slabs = *slabs,
      .x_box = piece->x,
      .y_box = piece->y,
      .descriptors = {a->xDesc, a->yDesc, a->poolingDesc},
  };
  *out_refusal = 0;
  if (!slabs->program)
    SDG_TRY(sdg_pool_describe(client->pool, client->call, piece,
                              plan->slab[slabs->x].stride,
                              plan->slab[slabs->y].stride, &sub->descriptors));
  state->count++;
  return SDG_OK;
}

static sdg_status_t client_close(void *user, sdg_plan_t *plan) {
  (void)user;
  (void)plan;
  return SDG_OK;
}

static sdg_window_client_t client_make(client_t *client) {
  const struct sdg_args_cudnnPoolingForward *a = client->call->args;
  return (sdg_window_client_t){
      .x = client->pool->x,
      .y = client->pool->y,
      .z = -1,
      .reads_old = sdg_rule_scalar(client->call, a->beta) != 0,
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
      sdg_pool_global_can(&pool, tagging)
          ? sdg_pool_global_plan(call, tagging, &pool, out_plan)
          : sdg_window_plan(call, tagging, &pool.op, &window, out_plan);
  sdg_pool_fini(&pool);
  return status;
}

// What each rank of the job reads: its need of x, of which it pools its own
// piece where results of pieces are gathered, and where old values count those
// of its own outputs.
static sdg_status_t share_fill(sdg_share_t *share, const sdg_pool_t *pool,
                               const sdg_tagging_t *tagging, bool pieces,
                               bool reads_old) {
  sdg_box_t *need, *old = NULL;
  share->around = sdg_window_op_wraps(&pool->op);
  SDG_TRY(sdg_share_reads(share, pool->x, &need));
  if (reads_old)
    SDG_TRY(sdg_share_reads(share, pool->y, &old));
  for (int r = 0; r < share->ranks; r++) {
    need[r] = pieces ? sdg_placement_box(&tagging->placement[pool->x],
                                         tagging->mesh, r)
                     : sdg_window_op_need(&pool->op, tagging, &pool->spec, r);
    if (old)
      old[r] = sdg_placement_box(&pool->op.y_placement, tagging->mesh, r);
  }
  return SDG_OK;
}

static sdg_status_t share_make(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, sdg_pool_t *pool,
                               sdg_plan_t **out_plan) {
  client_t client = {call, pool};
  sdg_window_client_t window = client_make(&client);
  sdg_share_t *share = sdg_share_create(sdg_mesh_ranks(tagging->mesh));
  sdg_status_t status = SDG_OK;
  if (!share)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  SDG_TRY_GOTO(sdg_share_output(share, pool->y, &pool->op.y_placement), fail);
  bool pieces = sdg_pool_global_can(pool, tagging);
  SDG_TRY_GOTO(share_fill(share, pool, tagging, pieces, window.reads_old),
               fail);
  status = pieces ? sdg_pool_global_plan(call, tagging, pool, out_plan)
                  : sdg_window_plan_whole(call, &pool->op, &window,
                                          tagging->section->strategy, out_plan);
  if (status != SDG_OK)
    goto fail;
  (*out_plan)->share = share;
  return SDG_OK;
fail:
  sdg_share_destroy(share);
  return status;
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
