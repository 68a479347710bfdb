// SPDX-License-Identifier: Apache-2.0
// The sub-calls of a forward convolution's plan.
#include <stdlib.h>
#include <string.h>

#include "rules/conv/answers.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/cost.h"
#include "rules/window/plan.h"
#include "src/exchange/exec.h"

// One call of the real function within the plan.
typedef struct sub_call {
  sdg_window_slabs_t slabs;
  sdg_box_t x_box, y_box;             // boxes inside the slabs
  sdg_conv_descriptors_t descriptors; // the program's, if slabs.program
  int algo;
  size_t workspace_bytes;
} sub_call_t;

typedef struct conv_state {
  int count;
  sub_call_t sub[SDG_PIECES_MAX];
  int workspace_slab; // -1: the program's workspace is large enough
} conv_state_t;

static int conv_run(void *user, int index, const sdg_call_t *call,
                    const sdg_exec_t *exec) {
  const conv_state_t *state = user;
  const sub_call_t *sub = &state->sub[index];
  sdg_rebind_t own;
  sdg_rebind_init(call, &own);
  sdg_rebind_tensor(&own, SDG_ROLE_X, sub->descriptors.x,
                    sdg_exec_element(exec, sub->slabs.x, &sub->x_box));
  sdg_rebind_tensor(&own, SDG_ROLE_Y, sub->descriptors.y,
                    sdg_exec_element(exec, sub->slabs.y, &sub->y_box));
  sdg_rebind_tensor(&own, SDG_ROLE_Z, sub->descriptors.z,
                    sub->slabs.z < 0
                        ? sdg_call_data(call, SDG_ROLE_Z)
                        : sdg_exec_element(exec, sub->slabs.z, &sub->y_box));
  sdg_rebind_pointer(&own, SDG_OP, sub->descriptors.conv);
  sdg_rebind_int(&own, SDG_ALGO, sub->algo);
  if (sub->workspace_bytes > sdg_call_size(call, SDG_WORKSPACE_BYTES)) {
    sdg_rebind_pointer(&own, SDG_WORKSPACE,
                       sdg_exec_address(exec, state->workspace_slab));
    sdg_rebind_size(&own, SDG_WORKSPACE_BYTES, sub->workspace_bytes);
  }
  return sdg_rebind_invoke(&own);
}

static void conv_state_destroy(void *user) {
  conv_state_t *state = user;
  if (!state)
    return;
  for (int i = 0; i < state->count; i++)
    if (!state->sub[i].slabs.program)
      sdg_conv_undescribe(&state->sub[i].descriptors);
  free(state);
}

// State that the callbacks of the plan's maker share.
typedef struct client {
  const sdg_call_t *call;
  const sdg_conv_t *conv;
} client_t;

static sdg_status_t client_open(void *user, sdg_plan_t *plan) {
  (void)user;
  conv_state_t *state;
  SDG_TRY(SDG_ALLOCATE(state, 1, "a plan"));
  state->workspace_slab = -1;
  plan->state = state;
  plan->state_destroy = conv_state_destroy;
  plan->run = conv_run;
  return SDG_OK;
}

static sdg_status_t client_add(void *user, sdg_plan_t *plan,
                               const sdg_window_piece_t *piece,
                               const sdg_window_slabs_t *slabs,
                               int *out_refusal) {
  const client_t *client = user;
  const sdg_call_t *call = client->call;
  conv_state_t *state = plan->state;
  sub_call_t *sub = &state->sub[state->count];
  *sub = (sub_call_t){
      .slabs = *slabs,
      .x_box = piece->x,
      .y_box = piece->y,
      .descriptors = {sdg_call_descriptor(call, SDG_ROLE_X),
                      sdg_call_descriptor(call, SDG_ROLE_Y),
                      sdg_call_descriptor(call, SDG_ROLE_Z),
                      sdg_call_pointer(call, SDG_OP)},
  };
  if (!slabs->program)
    SDG_TRY(sdg_conv_describe(
        client->conv, call, piece, plan->slab[slabs->x].stride,
        plan->slab[slabs->y].stride,
        slabs->z < 0 ? NULL : plan->slab[slabs->z].stride, &sub->descriptors));
  state->count++;
  *out_refusal = (int)sdg_conv_choose(call, &sub->descriptors, sdg_conv_w(call),
                                      sdg_call_int(call, SDG_ALGO), &sub->algo,
                                      &sub->workspace_bytes);
  return SDG_OK;
}

// Scratch for sub-calls that need more workspace than the program provides.
static sdg_status_t client_close(void *user, sdg_plan_t *plan) {
  const client_t *client = user;
  conv_state_t *state = plan->state;
  size_t largest = 0;
  for (int i = 0; i < state->count; i++)
    if (state->sub[i].workspace_bytes > largest)
      largest = state->sub[i].workspace_bytes;
  if (largest <= sdg_call_size(client->call, SDG_WORKSPACE_BYTES))
    return SDG_OK;
  return sdg_plan_workspace(plan, largest, &state->workspace_slab);
}

static sdg_window_client_t client_make(client_t *client, bool keeps_x) {
  return (sdg_window_client_t){
      .keeps_x = keeps_x,
      .x = client->conv->x,
      .y = client->conv->y,
      .z = client->conv->z,
      .reads_old =
          sdg_call_scalar(client->call, sdg_conv_old(client->call)) != 0,
      .open = client_open,
      .add = client_add,
      .close = client_close,
      .user = client,
  };
}

sdg_status_t sdg_conv_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  SDG_TRY(sdg_conv_init(call, tagging, &conv));
  client_t client = {call, &conv};
  sdg_window_client_t window = client_make(&client, tagging->section->keeps_x);
  sdg_window_piece_t view;
  (void)sdg_window_op_view(&conv.op, &view);
  int algo = sdg_call_int(call, SDG_ALGO);
  window.refuses_own = sdg_conv_refused_own(call);
  sdg_conv_view_settle(call, &conv, &view, sdg_conv_w(call), algo);
  (void)sdg_window_op_view(&conv.op, &view);
  sdg_conv_view_judge(call, &conv, &view);
  int refusal = sdg_conv_refusal(call, &conv, tagging, algo);
  sdg_status_t status =
      sdg_conv_looks_around(&conv) ? sdg_tagging_sure(call, tagging) : SDG_OK;
  if (status == SDG_OK)
    status = sdg_window_op_weigh_forward(call, tagging, &conv.spec, &conv.op);
  if (status == SDG_OK)
    status = refusal
                 ? sdg_plan_create_refused(refusal, out_plan)
                 : sdg_window_plan(call, tagging, &conv.op, &window, out_plan);
  sdg_conv_fini(&conv);
  return status;
}

// What each rank of the job reads: its need of x and, if old values count,
// those of its own outputs.
static sdg_status_t share_fill(sdg_share_t *share, const sdg_conv_t *conv,
                               const sdg_tagging_t *tagging,
                               const sdg_window_client_t *window) {
  sdg_box_t *need, *none;
  share->around = sdg_window_op_wraps(&conv->op);
  SDG_TRY(sdg_share_reads(share, conv->x, &need));
  for (int r = 0; r < share->ranks; r++)
    need[r] = sdg_window_op_need(&conv->op, tagging, &conv->spec, r);
  if (window->reads_old)
    return sdg_share_reads_own(share, conv->z >= 0 ? conv->z : conv->y,
                               &conv->op.y_placement, tagging->mesh);
  if (conv->z < 0)
    return SDG_OK;
  // An input, but not read here.
  SDG_TRY(sdg_share_reads(share, conv->z, &none));
  for (int r = 0; r < share->ranks; r++)
    none[r].dims = conv->op.dims;
  return SDG_OK;
}

static sdg_status_t share_make(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, sdg_conv_t *conv,
                               sdg_plan_t **out_plan) {
  client_t client = {call, conv};
  sdg_window_client_t window = client_make(&client, false);
  sdg_share_t *share;
  sdg_status_t status;
  sdg_window_piece_t view;
  if (sdg_window_op_view(&conv->op, &view))
    sdg_conv_view_judge(call, conv, &view);
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &share));
  SDG_TRY_GOTO(sdg_share_output(share, conv->y, &conv->op.y_placement), fail);
  SDG_TRY_GOTO(share_fill(share, conv, tagging, &window), fail);
  SDG_TRY_GOTO(sdg_window_plan_whole(call, &conv->op, &window,
                                     tagging->section->strategy, out_plan),
               fail);
fail:
  return sdg_plan_finish_share(share, status, out_plan);
}

static bool extents_equal(const sdg_operand_t *a, const sdg_operand_t *b) {
  return a->dims == b->dims && a->elem_bytes > 0 &&
         memcmp(a->extent, b->extent, (size_t)a->dims * sizeof a->extent[0]) ==
             0;
}

sdg_status_t sdg_conv_share(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  bool can;
  *out_plan = NULL;
  // Every rank makes the program's call, and gets the result of a single
  // device.
  if (sdg_conv_refused_own(call))
    return SDG_OK;
  SDG_TRY(sdg_conv_init_whole(call, tagging, &conv, &can));
  if (!can)
    return SDG_OK;
  sdg_status_t status = SDG_OK;
  if (conv.z < 0 ||
      extents_equal(&call->operand[conv.z], &call->operand[conv.y]))
    status = share_make(call, tagging, &conv, out_plan);
  else if (sdg_window_op_wraps(&conv.op))
    status = sdg_fail(SDG_E_OPERANDS_DIFFER, "z and y of %s", call->entry_name);
  sdg_conv_fini(&conv);
  return status;
}
