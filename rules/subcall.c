// SPDX-License-Identifier: Apache-2.0
// Keeps the sub-calls of a plan, and makes them.
#include "rules/subcall.h"

#include <stdlib.h>

#include "rules/subcallstate.h"
#include "rules/tensor.h"
#include "rules/vendor.h"

typedef struct kept {
  sdg_subcall_t sub;
  cudnnTensorDescriptor_t descriptor[SDG_SUBCALL_TENSORS];
  int workspace_slab;
} kept_t;

typedef struct state {
  cudnnHandle_t handle; // of the call for which the plan was made
  kept_t *kept;
  int count;
  // Sub-calls run one after the other: a workspace serves all that want no
  // more.
  int workspace_slab;
  size_t workspace_bytes;
} state_t;

static void kept_fini(kept_t *kept) {
  for (int i = 0; i < kept->sub.tensors; i++)
    if (kept->descriptor[i])
      (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(kept->descriptor[i]);
  if (kept->sub.op)
    kept->sub.op_destroy(kept->sub.op);
}

static void state_destroy(void *user) {
  state_t *state = user;
  for (int i = 0; i < state->count; i++)
    kept_fini(&state->kept[i]);
  free(state->kept);
  free(state);
}

static int subcall_run(void *user, int index, const sdg_call_t *call,
                       const sdg_exec_t *exec) {
  const state_t *state = user;
  const kept_t *kept = &state->kept[index];
  sdg_subcall_run_t run = {
      .call = call,
      .handle = (cudnnHandle_t)(uintptr_t)call->handle,
      .scalar = kept->sub.scalar,
      .op = kept->sub.op,
      .workspace_bytes = kept->sub.workspace_bytes,
  };
  if (run.workspace_bytes > 0)
    run.workspace = sdg_exec_address(exec, kept->workspace_slab);
  for (int i = 0; i < kept->sub.tensors; i++) {
    const sdg_subcall_tensor_t *tensor = &kept->sub.tensor[i];
    run.descriptor[i] = kept->descriptor[i];
    run.data[i] = tensor->slab < 0
                      ? tensor->at(call)
                      : sdg_exec_element(exec, tensor->slab, &tensor->box);
  }
  return (int)kept->sub.fn(&run);
}

sdg_status_t sdg_subcalls_open(sdg_plan_t *plan, const sdg_call_t *call) {
  state_t *state = calloc(1, sizeof *state);
  if (!state)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  state->handle = (cudnnHandle_t)(uintptr_t)call->handle;
  plan->state = state;
  plan->state_destroy = state_destroy;
  plan->run = subcall_run;
  return SDG_OK;
}

cudnnHandle_t sdg_subcalls_handle(const sdg_plan_t *plan) {
  return ((const state_t *)plan->state)->handle;
}

sdg_status_t sdg_subcall_describe(const sdg_plan_t *plan,
                                  const sdg_subcall_tensor_t *tensor,
                                  cudnnTensorDescriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  int64_t packed[SDG_DIMS_MAX], row_major[SDG_DIMS_MAX];
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  for (int d = 0; d < tensor->box.dims; d++)
    row_major[d] = tensor->box.dims - d;
  if (tensor->slab < 0)
    sdg_slab_pack(&tensor->box, row_major, packed);
  if (cudnn->cudnnCreateTensorDescriptor(out) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  return sdg_tensor_set(*out, tensor->type, &tensor->box,
                        tensor->slab < 0 ? packed
                                         : plan->slab[tensor->slab].stride);
}

sdg_status_t sdg_subcall_add(sdg_plan_t *plan, const sdg_subcall_t *sub) {
  state_t *state = plan->state;
  kept_t kept = {.sub = *sub};
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < sub->tensors; i++)
    SDG_TRY_GOTO(
        sdg_subcall_describe(plan, &sub->tensor[i], &kept.descriptor[i]), fail);
  if (sub->workspace_bytes > state->workspace_bytes) {
    SDG_TRY_GOTO(
        sdg_plan_workspace(plan, sub->workspace_bytes, &state->workspace_slab),
        fail);
    state->workspace_bytes = sub->workspace_bytes;
  }
  kept.workspace_slab = state->workspace_slab;
  kept_t *grown =
      realloc(state->kept, (size_t)(state->count + 1) * sizeof *grown);
  if (!grown) {
    status = sdg_fail(SDG_E_NO_MEMORY, "a plan");
    goto fail;
  }
  state->kept = grown;
  state->kept[state->count] = kept;
  return sdg_plan_call(plan, state->count++);
fail:
  kept_fini(&kept);
  return status;
}
