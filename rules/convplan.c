// SPDX-License-Identifier: Apache-2.0
// Plans of a forward convolution: repair, extend, or the program's own call.
#include <stdlib.h>
#include <string.h>

#include "rules/args.h"
#include "rules/conv.h"
#include "rules/vendor.h"
#include "src/exec.h"

enum { PIECES_MAX = 1 + 2 * SDG_DIMS_MAX };

// One call of the real function within the plan.
typedef struct sub_call {
  bool program; /* descriptors are the program's own */
  sdg_conv_descriptors_t own;
  int x_slab, y_slab, z_slab; /* z_slab -1: the entry has no z */
  sdg_box_t x_box, y_box;     /* where in the slabs */
  cudnnConvolutionFwdAlgo_t algo;
  size_t workspace_bytes;
} sub_call_t;

typedef struct conv_state {
  int count;
  sub_call_t sub[PIECES_MAX];
  int workspace_slab; /* -1: the program's workspace is enough */
} conv_state_t;

/* What both entries have in common of their arguments. */
typedef struct arguments {
  const void *w;
  cudnnTensorDescriptor_t x_desc, y_desc, z_desc;
  cudnnFilterDescriptor_t w_desc;
  cudnnConvolutionDescriptor_t conv_desc;
  cudnnConvolutionFwdAlgo_t algo;
  void *workspace;
  size_t workspace_bytes;
  const void *old_scale; /* beta, or alpha2 of z */
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

bool sdg_conv_is_forward(const sdg_call_t *call) {
  return call->entry == SDG_ENTRY_cudnnConvolutionForward ||
         call->entry == SDG_ENTRY_cudnnConvolutionBiasActivationForward;
}

int sdg_conv_key(const sdg_call_t *call, uint64_t *out) {
  arguments_t a = arguments_get(call);
  out[0] = (uint64_t)a.algo;
  out[1] = a.workspace_bytes;
  out[2] = scale_is_zero(call, a.old_scale);
  return 3;
}

static int conv_run(void *user, int index, const sdg_call_t *call,
                    const sdg_exec_t *exec) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  const conv_state_t *state = user;
  const sub_call_t *sub = &state->sub[index];
  arguments_t a = arguments_get(call);
  void *x = sdg_exec_element(exec, sub->x_slab, &sub->x_box);
  void *y = sdg_exec_element(exec, sub->y_slab, &sub->y_box);
  cudnnTensorDescriptor_t x_desc = sub->program ? a.x_desc : sub->own.x;
  cudnnTensorDescriptor_t y_desc = sub->program ? a.y_desc : sub->own.y;
  cudnnConvolutionDescriptor_t conv =
      sub->program ? a.conv_desc : sub->own.conv;
  void *workspace = a.workspace;
  size_t workspace_bytes = a.workspace_bytes;
  if (sub->workspace_bytes > workspace_bytes) {
    workspace = sdg_exec_address(exec, state->workspace_slab);
    workspace_bytes = sub->workspace_bytes;
  }
  if (call->entry == SDG_ENTRY_cudnnConvolutionForward) {
    const struct sdg_args_cudnnConvolutionForward *args = call->args;
    return (int)cudnn->cudnnConvolutionForward(
        args->handle, args->alpha, x_desc, x, a.w_desc, a.w, conv, sub->algo,
        workspace, workspace_bytes, args->beta, y_desc, y);
  }
  const struct sdg_args_cudnnConvolutionBiasActivationForward *args =
      call->args;
  const void *z = sdg_exec_element(exec, sub->z_slab, &sub->y_box);
  return (int)cudnn->cudnnConvolutionBiasActivationForward(
      args->handle, args->alpha1, x_desc, x, a.w_desc, a.w, conv, sub->algo,
      workspace, workspace_bytes, args->alpha2,
      sub->program ? a.z_desc : y_desc, z, args->biasDesc, args->bias,
      args->activationDesc, y_desc, y);
}

static void conv_state_destroy(void *user) {
  conv_state_t *state = user;
  if (!state)
    return;
  for (int i = 0; i < state->count; i++)
    if (!state->sub[i].program)
      sdg_conv_undescribe(&state->sub[i].own);
  free(state);
}

// The program's algorithm where the engine takes it for this piece, otherwise
// the engine's own choice.
static sdg_status_t algo_choose(const sdg_call_t *call, sub_call_t *sub) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  arguments_t a = arguments_get(call);
  cudnnHandle_t handle = (cudnnHandle_t)(uintptr_t)call->handle;
  cudnnTensorDescriptor_t x = sub->program ? a.x_desc : sub->own.x;
  cudnnTensorDescriptor_t y = sub->program ? a.y_desc : sub->own.y;
  cudnnConvolutionDescriptor_t conv =
      sub->program ? a.conv_desc : sub->own.conv;
  sub->algo = a.algo;
  cudnnStatus_t got = cudnn->cudnnGetConvolutionForwardWorkspaceSize(
      handle, x, a.w_desc, conv, y, sub->algo, &sub->workspace_bytes);
  if (got == CUDNN_STATUS_SUCCESS)
    return SDG_OK;
  int count = 0;
  cudnnConvolutionFwdAlgoPerf_t perf;
  cudnnStatus_t asked = cudnn->cudnnGetConvolutionForwardAlgorithm_v7(
      handle, x, a.w_desc, conv, y, 1, &count, &perf);
  if (asked == CUDNN_STATUS_SUCCESS && count == 1 &&
      perf.status == CUDNN_STATUS_SUCCESS) {
    sub->algo = perf.algo;
    sub->workspace_bytes = perf.memory;
    return SDG_OK;
  }
  return sdg_conv_refused("cudnnGetConvolutionForwardWorkspaceSize", got);
}

// A plan being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_conv_t *conv;
  sdg_plan_t *plan;
  conv_state_t *state;
  int x, y, z; /* slabs of the program's tensors; z -1 */
  bool reads_old;
  sdg_copy_kind_t copy; /* of what is assembled */
  int messages;
  int *message; /* slab of each received message, -1: in place */
} maker_t;

static sdg_status_t maker_open(maker_t *m) {
  const sdg_conv_t *conv = m->conv;
  m->state = calloc(1, sizeof *m->state);
  m->messages = conv->transfer.recvs;
  m->message = calloc((size_t)m->messages + 1, sizeof *m->message);
  if (!m->plan || !m->state || !m->message)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  m->plan->state = m->state;
  m->plan->state_destroy = conv_state_destroy;
  m->plan->run = conv_run;
  m->state->workspace_slab = -1;
  arguments_t a = arguments_get(m->call);
  m->reads_old = !scale_is_zero(m->call, a.old_scale);
  m->z = -1;
  SDG_TRY(sdg_plan_operand(m->plan, m->call, conv->x, &conv->x_box, &m->x));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, conv->y, &conv->y_box, &m->y));
  if (conv->z >= 0)
    SDG_TRY(sdg_plan_operand(m->plan, m->call, conv->z, &conv->y_box, &m->z));
  return SDG_OK;
}

// Adds the sub-call of a piece on the given slabs.
static sdg_status_t sub_add(maker_t *m, const sdg_conv_piece_t *piece, int x,
                            int y, int z, bool program) {
  sub_call_t *sub = &m->state->sub[m->state->count];
  *sub = (sub_call_t){.program = program,
                      .x_slab = x,
                      .y_slab = y,
                      .z_slab = z,
                      .x_box = piece->x,
                      .y_box = piece->y};
  if (!program)
    SDG_TRY(sdg_conv_describe(m->conv, m->call, piece, m->plan->slab[x].stride,
                              m->plan->slab[y].stride, &sub->own));
  m->state->count++;
  return algo_choose(m->call, sub);
}

// A strip with slabs of its own: x assembled, y and z small copies. The
// extended whole writes straight into the program's y.
typedef struct strip {
  const sdg_conv_piece_t *piece;
  int x, y, z;
  bool apart; /* y is a copy that overwrites */
} strip_t;

static sdg_status_t strip_open(maker_t *m, const sdg_conv_piece_t *piece,
                               strip_t *strip) {
  *strip = (strip_t){.piece = piece, .y = m->y, .z = m->z};
  strip->apart = !sdg_box_equal(&piece->y, &m->conv->y_box);
  SDG_TRY(sdg_plan_scratch(m->plan, &piece->x, m->x, &strip->x));
  if (strip->apart) {
    SDG_TRY(sdg_plan_scratch(m->plan, &piece->y, m->y, &strip->y));
    if (m->z >= 0)
      SDG_TRY(sdg_plan_scratch(m->plan, &piece->y, m->y, &strip->z));
  }
  return sub_add(m, piece, strip->x, strip->y, strip->z, false);
}

// Old values of rows that the call in place is going to overwrite.
static sdg_status_t strip_save(maker_t *m, const strip_t *strip) {
  if (!strip->apart || !m->reads_old)
    return SDG_OK;
  if (m->z >= 0)
    return sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->z, strip->z, NULL, NULL,
                         SDG_COPY_STRIP);
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->y, strip->y, NULL, NULL,
                       SDG_COPY_STRIP);
}

// Rows of x that this rank has: outside the domain zeros, own rows, own rows
// wrapped around.
static sdg_status_t strip_own(maker_t *m, const strip_t *strip) {
  const sdg_conv_t *conv = m->conv;
  sdg_box_t domain = strip->piece->x;
  for (int d = 0; d < conv->dims; d++)
    if (d != 1 && !conv->dim[d].wrap)
      domain.dim[d] = (sdg_range_t){0, conv->dim[d].x_extent};
  sdg_box_t outside[2 * SDG_DIMS_MAX];
  int count = sdg_box_subtract(&strip->piece->x, &domain, outside);
  for (int i = 0; i < count; i++)
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, strip->x, &outside[i]));
  for (int i = 0; i < conv->transfer.locals; i++) {
    const sdg_message_t *local = &conv->transfer.local[i];
    sdg_box_t box = sdg_box_shift(&local->box, local->shift);
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->x, strip->x, local->shift,
                          &box, m->copy));
  }
  return SDG_OK;
}

static sdg_status_t strip_finish(maker_t *m, const strip_t *strip, int index) {
  for (int i = 0; i < m->messages; i++)
    if (m->message[i] >= 0)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->message[i], strip->x,
                            NULL, NULL, SDG_COPY_HALO));
  SDG_TRY(sdg_plan_call(m->plan, index));
  if (!strip->apart)
    return SDG_OK;
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, strip->y, m->y, NULL, NULL,
                       SDG_COPY_STRIP);
}

// Scratch for sub-calls that want more workspace than the program brings.
static sdg_status_t workspace_add(maker_t *m) {
  arguments_t a = arguments_get(m->call);
  size_t most = 0;
  for (int i = 0; i < m->state->count; i++)
    if (m->state->sub[i].workspace_bytes > most)
      most = m->state->sub[i].workspace_bytes;
  if (most <= a.workspace_bytes)
    return SDG_OK;
  return sdg_plan_workspace(m->plan, most, &m->state->workspace_slab);
}

// The steps, in this order: messages leave; what can be computed in place is,
// while they travel; strips are assembled from own rows, then from messages;
// their outputs overwrite.
static sdg_status_t steps_make(maker_t *m, const sdg_conv_piece_t *piece,
                               int pieces, bool view) {
  const sdg_conv_t *conv = m->conv;
  strip_t strip[PIECES_MAX];
  int into[PIECES_MAX];
  int strips = 0;
  if (view) {
    bool program = sdg_box_equal(&piece[0].x, &conv->x_box) &&
                   sdg_box_equal(&piece[0].y, &conv->y_box);
    SDG_TRY(sub_add(m, &piece[0], m->x, m->y, m->z, program));
  }
  for (int i = view; i < pieces; i++, strips++) {
    SDG_TRY(strip_open(m, &piece[i], &strip[strips]));
    into[strips] = strip[strips].x;
  }
  SDG_TRY(sdg_plan_messages(m->plan, &conv->transfer, m->x, into, strips,
                            m->message));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < strips; i++)
    SDG_TRY(strip_save(m, &strip[i]));
  if (view)
    SDG_TRY(sdg_plan_call(m->plan, 0));
  for (int i = 0; i < strips; i++)
    SDG_TRY(strip_own(m, &strip[i]));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < strips; i++)
    SDG_TRY(strip_finish(m, &strip[i], i + view));
  return workspace_add(m);
}

static sdg_status_t plan_make(const sdg_call_t *call, const sdg_conv_t *conv,
                              bool extend, sdg_plan_t **out_plan) {
  sdg_conv_piece_t piece[PIECES_MAX];
  bool view;
  int pieces = sdg_conv_pieces(conv, extend, &view, piece);
  maker_t maker = {
      .call = call,
      .conv = conv,
      .plan = sdg_plan_create(extend ? "extend" : "repair"),
      .copy = extend ? SDG_COPY_ACTIVATION : SDG_COPY_STRIP,
  };
  sdg_status_t status = maker_open(&maker);
  if (status == SDG_OK)
    status = steps_make(&maker, piece, pieces, view);
  free(maker.message);
  if (status != SDG_OK) {
    sdg_plan_destroy(maker.plan);
    return status;
  }
  *out_plan = maker.plan;
  return SDG_OK;
}

// Nothing to send, to receive or to redo: the program's own call.
static bool is_literal(const sdg_conv_t *conv) {
  sdg_conv_piece_t piece[PIECES_MAX];
  bool view;
  return conv->transfer.sends == 0 && conv->transfer.recvs == 0 &&
         sdg_conv_pieces(conv, false, &view, piece) == 1 &&
         sdg_box_equal(&piece[0].x, &conv->x_box) &&
         sdg_box_equal(&piece[0].y, &conv->y_box);
}

static sdg_status_t literal_make(sdg_plan_t **out_plan) {
  *out_plan = sdg_plan_create("literal");
  if (!*out_plan)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  (*out_plan)->literal = true;
  return SDG_OK;
}

sdg_status_t sdg_conv_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  SDG_TRY(sdg_conv_init(call, tagging, &conv));
  sdg_strategy_t strategy = tagging->section->strategy;
  sdg_status_t status = SDG_OK;
  if (strategy != SDG_STRATEGY_EXTEND && is_literal(&conv))
    status = literal_make(out_plan);
  else {
    bool extend = sdg_conv_extends(&conv, strategy);
    status = plan_make(call, &conv, extend, out_plan);
    if (status == SDG_E_VENDOR_CALL && !extend && strategy == SDG_STRATEGY_AUTO)
      status = plan_make(call, &conv, true, out_plan);
  }
  if (status == SDG_OK && conv.communicates)
    (*out_plan)->axes = tagging->axes;
  sdg_conv_fini(&conv);
  return status;
}
