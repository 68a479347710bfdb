// SPDX-License-Identifier: Apache-2.0
// The plan of a pointwise op on tensors that every rank has room for.
#include "rules/pointwiseplan.h"

#include <cudnn.h>
#include <stdlib.h>

#include "rules/args.h"
#include "rules/tensor.h"
#include "rules/vendor.h"
#include "src/exec.h"

typedef struct state {
  int operands;
  int slab[SDG_OPERANDS_MAX];
  sdg_box_t box[SDG_OPERANDS_MAX]; // this rank's
  cudnnTensorDescriptor_t descriptor[SDG_OPERANDS_MAX];
} state_t;

static void state_destroy(void *user) {
  state_t *state = user;
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  for (int i = 0; state && i < state->operands; i++)
    if (state->descriptor[i])
      (void)cudnn->cudnnDestroyTensorDescriptor(state->descriptor[i]);
  free(state);
}

// The part of an operand that goes into `box` of the output: all of what is
// broadcast.
static sdg_box_t project(const sdg_operand_t *operand, const sdg_box_t *box) {
  sdg_box_t part = *box;
  for (int d = 0; d < box->dims && !sdg_box_empty(box); d++)
    if (operand->extent[d] == 1)
      part.dim[d] = (sdg_range_t){0, 1};
  return part;
}

// The real function with this rank's descriptors and addresses; operands are
// in the order of the entry's descriptors.
static int run(void *user, int index, const sdg_call_t *call,
               const sdg_exec_t *exec) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  const state_t *state = user;
  const cudnnTensorDescriptor_t *d = state->descriptor;
  void *at[SDG_OPERANDS_MAX];
  (void)index;
  for (int i = 0; i < state->operands; i++)
    at[i] = sdg_exec_element(exec, state->slab[i], &state->box[i]);
#define ARGS(entry) const struct sdg_args_##entry *a = call->args
  switch (call->entry) {
  case SDG_ENTRY_cudnnActivationForward: {
    ARGS(cudnnActivationForward);
    return (int)cudnn->cudnnActivationForward(a->handle, a->activationDesc,
                                              a->alpha, d[0], at[0], a->beta,
                                              d[1], at[1]);
  }
  case SDG_ENTRY_cudnnActivationBackward: {
    ARGS(cudnnActivationBackward);
    return (int)cudnn->cudnnActivationBackward(
        a->handle, a->activationDesc, a->alpha, d[0], at[0], d[1], at[1], d[2],
        at[2], a->beta, d[3], at[3]);
  }
  case SDG_ENTRY_cudnnAddTensor: {
    ARGS(cudnnAddTensor);
    return (int)cudnn->cudnnAddTensor(a->handle, a->alpha, d[0], at[0], a->beta,
                                      d[1], at[1]);
  }
  case SDG_ENTRY_cudnnOpTensor: {
    ARGS(cudnnOpTensor);
    return (int)cudnn->cudnnOpTensor(a->handle, a->opTensorDesc, a->alpha1,
                                     d[0], at[0], a->alpha2, d[1], at[1],
                                     a->beta, d[2], at[2]);
  }
  case SDG_ENTRY_cudnnScaleTensor: {
    ARGS(cudnnScaleTensor);
    return (int)cudnn->cudnnScaleTensor(a->handle, d[0], at[0], a->alpha);
  }
  case SDG_ENTRY_cudnnSetTensor: {
    ARGS(cudnnSetTensor);
    return (int)cudnn->cudnnSetTensor(a->handle, d[0], at[0], a->valuePtr);
  }
  case SDG_ENTRY_cudnnTransformTensor: {
    ARGS(cudnnTransformTensor);
    return (int)cudnn->cudnnTransformTensor(a->handle, a->alpha, d[0], at[0],
                                            a->beta, d[1], at[1]);
  }
  default:
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
#undef ARGS
}

static int operands_of(int entry) {
  switch (entry) {
  case SDG_ENTRY_cudnnActivationBackward:
    return 4;
  case SDG_ENTRY_cudnnOpTensor:
    return 3;
  case SDG_ENTRY_cudnnScaleTensor:
  case SDG_ENTRY_cudnnSetTensor:
    return 1;
  default:
    return 2;
  }
}

// The operand that is written; -1 where the ranks cannot share the call.
static int output_find(const sdg_call_t *call) {
  int output = -1;
  // A descriptor that is absent is for the real function to refuse.
  if (call->operands != operands_of(call->entry))
    return -1;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_output)
      output = i;
  if (output < 0)
    return -1;
  const sdg_operand_t *y = &call->operand[output];
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (operand->dims != y->dims || operand->elem_bytes == 0 || !operand->data)
      return -1;
    for (int d = 0; d < y->dims; d++)
      if (operand->extent[d] != y->extent[d] && operand->extent[d] != 1)
        return -1;
  }
  return output;
}

static bool extents_equal(const sdg_operand_t *a, const sdg_operand_t *b) {
  for (int d = 0; d < a->dims; d++)
    if (a->extent[d] != b->extent[d])
      return false;
  return true;
}

// The placement that the output gets; dims 0 if nothing of it is split.
static const sdg_placement_t *placement_find(const sdg_call_t *call,
                                             const sdg_tagging_t *tagging,
                                             int output) {
  const sdg_operand_t *y = &call->operand[output];
  for (int i = 0; i < call->operands; i++)
    if (i != output && extents_equal(&call->operand[i], y) &&
        sdg_placement_axes(&tagging->placement[i]))
      return &tagging->placement[i];
  return &tagging->placement[output];
}

static sdg_status_t reads_fill(sdg_share_t *share, const sdg_call_t *call,
                               const sdg_tagging_t *tagging, bool reads_old) {
  int output = share->output[0].operand;
  const sdg_placement_t *placement = &share->output[0].placement;
  for (int i = 0; i < call->operands; i++) {
    sdg_box_t *boxes;
    if (i == output && !reads_old)
      continue;
    SDG_TRY(sdg_share_reads(share, i, &boxes));
    for (int r = 0; r < share->ranks; r++) {
      sdg_box_t own = sdg_placement_box(placement, tagging->mesh, r);
      boxes[r] = project(&call->operand[i], &own);
    }
  }
  return SDG_OK;
}

static sdg_status_t steps_make(sdg_plan_t *plan, const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  sdg_box_t own = sdg_placement_box(&plan->share->output[0].placement,
                                    tagging->mesh, tagging->rank);
  if (sdg_box_empty(&own))
    return SDG_OK;
  state_t *state = calloc(1, sizeof *state);
  if (!state)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  plan->state = state;
  plan->state_destroy = state_destroy;
  plan->run = run;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_box_t all = {.dims = operand->dims};
    for (int d = 0; d < operand->dims; d++)
      all.dim[d].hi = operand->extent[d];
    SDG_TRY(sdg_plan_operand(plan, call, i, &all, &state->slab[i]));
    state->box[i] = project(operand, &own);
    state->operands++;
    if (sdg_cudnn_get()->cudnnCreateTensorDescriptor(&state->descriptor[i]) !=
        CUDNN_STATUS_SUCCESS)
      return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
    SDG_TRY(sdg_tensor_set(state->descriptor[i], operand->type, &state->box[i],
                           operand->stride));
  }
  return sdg_plan_call(plan, 0);
}

sdg_status_t sdg_pointwise_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, bool reads_old,
                                 sdg_plan_t **out_plan) {
  *out_plan = NULL;
  int output = output_find(call);
  if (output < 0)
    return SDG_OK;
  const sdg_placement_t *like = placement_find(call, tagging, output);
  if (!sdg_placement_axes(like))
    return SDG_OK;
  sdg_plan_t *plan = sdg_plan_create("window");
  sdg_status_t status = SDG_OK;
  if (plan)
    plan->share = sdg_share_create(sdg_mesh_ranks(tagging->mesh));
  if (!plan || !plan->share) {
    status = sdg_fail(SDG_E_NO_MEMORY, "a plan");
    goto fail;
  }
  SDG_TRY_GOTO(sdg_share_output(plan->share, output, like), fail);
  SDG_TRY_GOTO(reads_fill(plan->share, call, tagging, reads_old), fail);
  SDG_TRY_GOTO(steps_make(plan, call, tagging), fail);
  *out_plan = plan;
  return SDG_OK;
fail:
  sdg_plan_destroy(plan);
  return status;
}
