// SPDX-License-Identifier: Apache-2.0
// The sub-calls of a forward convolution's plan.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/conv/rule.h"
#include "rules/place/tagging.h"
#include "rules/vendor/args.h"
#include "rules/vendor/vendor.h"
#include "rules/window/plan.h"
#include "src/exchange/exec.h"

// One call of the real function within the plan.
typedef struct sub_call {
  sdg_window_slabs_t slabs;
  sdg_box_t x_box, y_box;             // boxes inside the slabs
  sdg_conv_descriptors_t descriptors; // the program's, if slabs.program
  cudnnConvolutionFwdAlgo_t algo;
  size_t workspace_bytes;
} sub_call_t;

typedef struct conv_state {
  int count;
  sub_call_t sub[SDG_PIECES_MAX];
  int workspace_slab; // -1: the program's workspace is large enough
} conv_state_t;

// The arguments that both entries share.
typedef struct arguments {
  const void *w;
  cudnnTensorDescriptor_t x_desc, y_desc, z_desc;
  cudnnFilterDescriptor_t w_desc;
  cudnnConvolutionDescriptor_t conv_desc;
  cudnnConvolutionFwdAlgo_t algo;
  void *workspace;
  size_t workspace_bytes;
  const void *scale;     // alpha, or alpha1
  const void *old_scale; // beta, or alpha2 of z
} arguments_t;

static arguments_t arguments_get(const sdg_call_t *call) {
  if (call->entry == SDG_ENTRY_cudnnConvolutionForward) {
    const struct sdg_args_cudnnConvolutionForward *a = call->args;
    return (arguments_t){
        .w = a->w,
        .x_desc = a->xDesc,
        .y_desc = a->yDesc,
        .w_desc = a->wDesc,
        .conv_desc = a->convDesc,
        .algo = a->algo,
        .workspace = a->workSpace,
        .workspace_bytes = a->workSpaceSizeInBytes,
        .scale = a->alpha,
        .old_scale = a->beta,
    };
  }
  const struct sdg_args_cudnnConvolutionBiasActivationForward *a = call->args;
  return (arguments_t){
      .w = a->w,
      .x_desc = a->xDesc,
      .y_desc = a->yDesc,
      .z_desc = a->zDesc,
      .w_desc = a->wDesc,
      .conv_desc = a->convDesc,
      .algo = a->algo,
      .workspace = a->workSpace,
      .workspace_bytes = a->workSpaceSizeInBytes,
      .scale = a->alpha1,
      .old_scale = a->alpha2,
  };
}

static bool scale_is_zero(const sdg_call_t *call, const void *scale) {
  if (!scale)
    return true;
  const sdg_operand_t *x = &call->operand[0];
  return x->type == CUDNN_DATA_DOUBLE ? *(const double *)scale == 0
                                      : *(const float *)scale == 0;
}

int sdg_conv_key(const sdg_call_t *call, uint64_t *out) {
  arguments_t a = arguments_get(call);
  out[0] = (uint64_t)a.algo;
  out[1] = a.workspace_bytes;
  out[2] = scale_is_zero(call, a.old_scale);
  return 3;
}

int sdg_conv_scalars(const sdg_call_t *call, double *out) {
  arguments_t a = arguments_get(call);
  out[0] = sdg_call_scalar(call, a.scale);
  out[1] = sdg_call_scalar(call, a.old_scale);
  return 2;
}

void sdg_conv_describe_activation(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  const struct sdg_args_cudnnConvolutionBiasActivationForward *a = call->args;
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coefficient;
  if (a->activationDesc &&
      sdg_cudnn_get()->cudnnGetActivationDescriptor(
          a->activationDesc, &mode, &nan, &coefficient) == CUDNN_STATUS_SUCCESS)
    snprintf(out, out_bytes, " activation %d nan %d coefficient %.17g",
             (int)mode, (int)nan, coefficient);
}

static int conv_run(void *user, int index, const sdg_call_t *call,
                    const sdg_exec_t *exec) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  const conv_state_t *state = user;
  const sub_call_t *sub = &state->sub[index];
  const sdg_conv_descriptors_t *own = &sub->descriptors;
  arguments_t a = arguments_get(call);
  void *x = sdg_exec_element(exec, sub->slabs.x, &sub->x_box);
  void *y = sdg_exec_element(exec, sub->slabs.y, &sub->y_box);
  void *workspace = a.workspace;
  size_t workspace_bytes = a.workspace_bytes;
  if (sub->workspace_bytes > workspace_bytes) {
    workspace = sdg_exec_address(exec, state->workspace_slab);
    workspace_bytes = sub->workspace_bytes;
  }
  if (call->entry == SDG_ENTRY_cudnnConvolutionForward) {
    const struct sdg_args_cudnnConvolutionForward *args = call->args;
    return (int)cudnn->cudnnConvolutionForward(
        args->handle, args->alpha, own->x, x, a.w_desc, a.w, own->conv,
        sub->algo, workspace, workspace_bytes, args->beta, own->y, y);
  }
  const struct sdg_args_cudnnConvolutionBiasActivationForward *args =
      call->args;
  const void *z = sub->slabs.z < 0
                      ? args->z
                      : sdg_exec_element(exec, sub->slabs.z, &sub->y_box);
  return (int)cudnn->cudnnConvolutionBiasActivationForward(
      args->handle, args->alpha1, own->x, x, a.w_desc, a.w, own->conv,
      sub->algo, workspace, workspace_bytes, args->alpha2, own->z, z,
      args->biasDesc, args->bias, args->activationDesc, own->y, y);
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
  arguments_t arguments;
} client_t;

static sdg_status_t client_open(void *user, sdg_plan_t *plan) {
  (void)user;
  conv_state_t *state = calloc(1, sizeof *state);
  if (!state)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
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
  const arguments_t *a = &client->arguments;
  conv_state_t *state = plan->state;
  sub_call_t *sub = &state->sub[state->count];
  *sub = (sub_call_t){
      .slabs = *slabs,
      .x_box = piece->x,
      .y_box = piece->y,
      .descriptors = {a->x_desc, a->y_desc, a->z_desc, a->conv_desc},
  };
  if (!slabs->program)
    SDG_TRY(sdg_conv_describe(
        client->conv, client->call, piece, plan->slab[slabs->x].stride,
        plan->slab[slabs->y].stride,
        slabs->z < 0 ? NULL : plan->slab[slabs->z].stride, &sub->descriptors));
  state->count++;
  *out_refusal =
      (int)sdg_conv_choose(client->call, &sub->descriptors, a->w_desc, a->algo,
                           &sub->algo, &sub->workspace_bytes);
  return SDG_OK;
}

// Scratch for sub-calls that need more workspace than the program provides.
static sdg_status_t client_close(void *user, sdg_plan_t *plan) {
  const client_t *client = user;
  conv_state_t *state = plan->state;
  size_t most = 0;
  for (int i = 0; i < state->count; i++)
    if (state->sub[i].workspace_bytes > most)
      most = state->sub[i].workspace_bytes;
  if (most <= client->arguments.workspace_bytes)
    return SDG_OK;
  return sdg_plan_workspace(plan, most, &state->workspace_slab);
}

static sdg_window_client_t client_make(client_t *client, bool keeps_x) {
  return (sdg_window_client_t){
      .keeps_x = keeps_x,
      .x = client->conv->x,
      .y = client->conv->y,
      .z = client->conv->z,
      .reads_old = !scale_is_zero(client->call, client->arguments.old_scale),
      .open = client_open,
      .add = client_add,
      .close = client_close,
      .user = client,
  };
}

sdg_status_t sdg_conv_plan_refused(int refusal, sdg_plan_t **out_plan) {
  *out_plan = sdg_plan_create("refused");
  if (!*out_plan)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  (*out_plan)->refusal = refusal;
  return SDG_OK;
}

sdg_status_t sdg_conv_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  SDG_TRY(sdg_conv_init(call, tagging, &conv));
  client_t client = {call, &conv, arguments_get(call)};
  sdg_window_client_t window = client_make(&client, tagging->section->keeps_x);
  sdg_window_piece_t view;
  (void)sdg_window_op_view(&conv.op, &view);
  sdg_conv_view_settle(call, &conv, &view, client.arguments.w_desc,
                       (int)client.arguments.algo);
  int refusal = sdg_conv_refusal(call, &conv, tagging, client.arguments.algo);
  sdg_status_t status =
      sdg_conv_looks_around(&conv) ? sdg_tagging_sure(call, tagging) : SDG_OK;
  if (status == SDG_OK)
    status = refusal
                 ? sdg_conv_plan_refused(refusal, out_plan)
                 : sdg_window_plan(call, tagging, &conv.op, &window, out_plan);
  sdg_conv_fini(&conv);
  return status;
}

// What each rank of the job reads: its need of x and, if old values count,
// those of its own outputs.
static sdg_status_t share_fill(sdg_share_t *share, const sdg_conv_t *conv,
                               const sdg_tagging_t *tagging,
                               const sdg_window_client_t *window) {
  sdg_box_t *need, *old = NULL;
  share->around = sdg_window_op_wraps(&conv->op);
  SDG_TRY(sdg_share_reads(share, conv->x, &need));
  if (window->reads_old)
    SDG_TRY(sdg_share_reads(share, conv->z >= 0 ? conv->z : conv->y, &old));
  for (int r = 0; r < share->ranks; r++) {
    need[r] = sdg_window_op_need(&conv->op, tagging, &conv->spec, r);
    if (old)
      old[r] = sdg_placement_box(&conv->op.y_placement, tagging->mesh, r);
  }
  // An input, but not read here.
  if (conv->z >= 0 && !window->reads_old) {
    SDG_TRY(sdg_share_reads(share, conv->z, &old));
    for (int r = 0; r < share->ranks; r++)
      old[r].dims = conv->op.dims;
  }
  return SDG_OK;
}

static sdg_status_t share_make(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, sdg_conv_t *conv,
                               sdg_plan_t **out_plan) {
  client_t client = {call, conv, arguments_get(call)};
  sdg_window_client_t window = client_make(&client, false);
  sdg_share_t *share = sdg_share_create(sdg_mesh_ranks(tagging->mesh));
  sdg_status_t status = SDG_OK;
  if (!share)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  SDG_TRY_GOTO(sdg_share_output(share, conv->y, &conv->op.y_placement), fail);
  SDG_TRY_GOTO(share_fill(share, conv, tagging, &window), fail);
  SDG_TRY_GOTO(sdg_window_plan_whole(call, &conv->op, &window,
                                     tagging->section->strategy, out_plan),
               fail);
  (*out_plan)->share = share;
  return SDG_OK;
fail:
  sdg_share_destroy(share);
  return status;
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
  arguments_t a = arguments_get(call);
  if (sdg_conv_refused_whole(call, a.x_desc, a.w_desc, a.conv_desc, a.y_desc,
                             a.algo, a.workspace_bytes))
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
