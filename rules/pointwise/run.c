// SPDX-License-Identifier: Apache-2.0
// Calls a pointwise op's real function on boxes of its operands.
#include "rules/pointwise/run.h"

#include <cudnn.h>
#include <stdlib.h>

#include "rules/vendor/argument.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "src/exchange/exec.h"

typedef struct state {
  int operands;
  int slab[SDG_OPERANDS_MAX];
  sdg_box_t box[SDG_OPERANDS_MAX]; // this rank's boxes
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

// The real function with this rank's descriptors and addresses.
static int run(void *user, int index, const sdg_call_t *call,
               const sdg_exec_t *exec) {
  const state_t *state = user;
  sdg_rebind_t own;
  (void)index;
  sdg_rebind_init(call, &own);
  for (int i = 0; i < state->operands; i++)
    sdg_rebind_put(&own, i, state->descriptor[i],
                   sdg_exec_element(exec, state->slab[i], &state->box[i]));
  return sdg_rebind_invoke(&own);
}

sdg_box_t sdg_pointwise_project(const int64_t *extent, const sdg_box_t *box) {
  sdg_box_t part = *box;
  for (int d = 0; d < box->dims && !sdg_box_empty(box); d++)
    if (extent[d] == 1)
      part.dim[d] = (sdg_range_t){0, 1};
  return part;
}

sdg_status_t sdg_pointwise_open(sdg_plan_t *plan) {
  plan->state = calloc(1, sizeof(state_t));
  if (!plan->state)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  plan->state_destroy = state_destroy;
  plan->run = run;
  return SDG_OK;
}

sdg_status_t sdg_pointwise_operand(sdg_plan_t *plan, const sdg_call_t *call,
                                   int index, int slab, const sdg_box_t *box) {
  state_t *state = plan->state;
  state->slab[index] = slab;
  state->box[index] = *box;
  state->operands = index + 1;
  if (sdg_cudnn_get()->cudnnCreateTensorDescriptor(&state->descriptor[index]) !=
      CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  return sdg_tensor_set(state->descriptor[index], call->operand[index].type,
                        box, plan->slab[slab].stride);
}
