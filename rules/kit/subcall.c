// SPDX-License-Identifier: Apache-2.0
// Stores and runs the sub-calls of a plan.
#include "rules/kit/subcall.h"

#include <stdlib.h>
#include <string.h>

// If memory runs out, uthash skips the element instead of exiting.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "rules/kit/subcall_state.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"

// Type, extents and strides of a tensor, with a descriptor. Tensors at several
// addresses share a form, because there are fewer forms than sub-calls.
typedef struct form {
  struct {
    int64_t type, dims, extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
  } key;
  cudnnTensorDescriptor_t descriptor;
  UT_hash_handle hh;
} form_t;

// A tensor's address.
typedef struct place {
  cudnnTensorDescriptor_t descriptor; // owned by the tensor's form
  int slab;                           // -1: `at` returns it
  int64_t offset_bytes;               // from the slab's address
  void *(*at)(const sdg_call_t *call);
} place_t;

// A plan may have thousands of these, so each is stored as compactly as
// possible.
typedef struct stored {
  cudnnStatus_t (*fn)(const sdg_subcall_run_t *run);
  sdg_scalar_t scalar[SDG_SUBCALL_SCALARS];
  void *op;
  void (*op_destroy)(void *op);
  int workspace_slab;
  size_t workspace_bytes;
  int tensors;
  place_t tensor[];
} stored_t;

typedef struct state {
  cudnnHandle_t handle; // handle of the call for which the plan was made
  stored_t **stored;
  int count;
  form_t *forms;
  // Sub-calls run one after the other, so one workspace of the largest size
  // serves all.
  int workspace_slab;
  size_t workspace_bytes;
} state_t;

static void stored_destroy(stored_t *stored) {
  if (stored->op)
    stored->op_destroy(stored->op);
  free(stored);
}

static void state_destroy(void *user) {
  state_t *state = user;
  for (int i = 0; i < state->count; i++)
    stored_destroy(state->stored[i]);
  for (form_t *form = state->forms, *next; form; form = next) {
    next = form->hh.next;
    HASH_DEL(state->forms, form);
    (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(form->descriptor);
    free(form);
  }
  free(state->stored);
  free(state);
}

static int subcall_run(void *user, int index, const sdg_call_t *call,
                       const sdg_exec_t *exec) {
  const state_t *state = user;
  const stored_t *stored = state->stored[index];
  sdg_subcall_run_t run = {
      .call = call,
      .exec = exec,
      .handle = (cudnnHandle_t)(uintptr_t)call->handle,
      .scalar = stored->scalar,
      .op = stored->op,
      .workspace_bytes = stored->workspace_bytes,
  };
  if (run.workspace_bytes > 0)
    run.workspace = sdg_exec_address(exec, stored->workspace_slab);
  for (int i = 0; i < stored->tensors; i++) {
    const place_t *tensor = &stored->tensor[i];
    run.descriptor[i] = tensor->descriptor;
    run.data[i] = tensor->slab < 0
                      ? tensor->at(call)
                      : (char *)sdg_exec_address(exec, tensor->slab) +
                            tensor->offset_bytes;
  }
  return (int)stored->fn(&run);
}

sdg_status_t sdg_subcalls_open(sdg_plan_t *plan, const sdg_call_t *call) {
  state_t *state;
  SDG_TRY(SDG_ALLOCATE(state, 1, "a plan"));
  state->handle = (cudnnHandle_t)(uintptr_t)call->handle;
  plan->state = state;
  plan->state_destroy = state_destroy;
  plan->run = subcall_run;
  return SDG_OK;
}

cudnnHandle_t sdg_subcalls_handle(const sdg_plan_t *plan) {
  return ((const state_t *)plan->state)->handle;
}

// The strides of a tensor: those of its slab; row-major if it has no slab.
static void strides_of(const sdg_plan_t *plan,
                       const sdg_subcall_tensor_t *tensor, int64_t *out) {
  int64_t row_major[SDG_DIMS_MAX];
  if (tensor->slab >= 0) {
    memcpy(out, plan->slab[tensor->slab].stride,
           (size_t)tensor->box.dims * sizeof *out);
    return;
  }
  for (int d = 0; d < tensor->box.dims; d++)
    row_major[d] = tensor->box.dims - d;
  sdg_slab_pack(&tensor->box, row_major, out);
}

// On a GPU, cudnnOpTensor and cudnnSetTensor refuse tensors of fewer than four
// dimensions. So all descriptors get further dimensions of extent 1, which
// softmax and reductions accept, too.
enum { LEAST_DIMS = 4 };

sdg_status_t sdg_subcall_describe(const sdg_plan_t *plan,
                                  const sdg_subcall_tensor_t *tensor,
                                  cudnnTensorDescriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  int64_t stride[SDG_DIMS_MAX];
  sdg_box_t box = tensor->box;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  strides_of(plan, tensor, stride);
  for (; box.dims < LEAST_DIMS; box.dims++) {
    box.dim[box.dims] = (sdg_range_t){0, 1};
    stride[box.dims] = 1;
  }
  if (cudnn->cudnnCreateTensorDescriptor(out) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  return sdg_tensor_set(*out, tensor->type, &box, stride);
}

static sdg_status_t form_make(const sdg_plan_t *plan,
                              const sdg_subcall_tensor_t *tensor,
                              form_t **io_form) {
  form_t *form = *io_form, *made = malloc(sizeof *made);
  if (!made)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  *made = *form;
  sdg_status_t status = sdg_subcall_describe(plan, tensor, &made->descriptor);
  if (status != SDG_OK) {
    if (made->descriptor)
      (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(made->descriptor);
    free(made);
    return status;
  }
  *io_form = made;
  return SDG_OK;
}

static sdg_status_t form_get(const sdg_plan_t *plan,
                             const sdg_subcall_tensor_t *tensor,
                             cudnnTensorDescriptor_t *out) {
  state_t *state = plan->state;
  form_t asked, *form = NULL;
  memset(&asked, 0, sizeof asked);
  asked.key.type = tensor->type;
  asked.key.dims = tensor->box.dims;
  strides_of(plan, tensor, asked.key.stride);
  for (int d = 0; d < tensor->box.dims; d++)
    asked.key.extent[d] = tensor->box.dim[d].hi - tensor->box.dim[d].lo;
  HASH_FIND(hh, state->forms, &asked.key, sizeof asked.key, form);
  if (!form) {
    form = &asked;
    SDG_TRY(form_make(plan, tensor, &form));
    HASH_ADD(hh, state->forms, key, sizeof form->key, form);
    if (!form->hh.tbl) {
      (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(form->descriptor);
      free(form);
      return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
    }
  }
  *out = form->descriptor;
  return SDG_OK;
}

static sdg_status_t place_get(const sdg_plan_t *plan,
                              const sdg_subcall_tensor_t *tensor,
                              place_t *out) {
  *out = (place_t){.slab = tensor->slab, .at = tensor->at};
  SDG_TRY(form_get(plan, tensor, &out->descriptor));
  if (tensor->slab < 0)
    return SDG_OK;
  const sdg_slab_t *slab = &plan->slab[tensor->slab];
  for (int d = 0; d < tensor->box.dims; d++)
    out->offset_bytes += (tensor->box.dim[d].lo - slab->box.dim[d].lo) *
                         slab->stride[d] * slab->elem_bytes;
  return SDG_OK;
}

// Grows the array for one more element: capacities are powers of two, at least
// 8.
static sdg_status_t stored_grow(state_t *state) {
  int count = state->count;
  bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
  if (!full)
    return SDG_OK;
  size_t capacity = count == 0 ? 8 : 2 * (size_t)count;
  stored_t **grown = realloc(state->stored, capacity * sizeof *grown);
  if (!grown)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  state->stored = grown;
  return SDG_OK;
}

static sdg_status_t stored_fill(sdg_plan_t *plan, const sdg_subcall_t *sub,
                                stored_t *stored) {
  state_t *state = plan->state;
  for (int i = 0; i < sub->tensors; i++)
    SDG_TRY(place_get(plan, &sub->tensor[i], &stored->tensor[i]));
  if (sub->workspace_bytes > state->workspace_bytes) {
    SDG_TRY(
        sdg_plan_workspace(plan, sub->workspace_bytes, &state->workspace_slab));
    state->workspace_bytes = sub->workspace_bytes;
  }
  stored->workspace_slab = state->workspace_slab;
  return stored_grow(state);
}

sdg_status_t sdg_subcall_add(sdg_plan_t *plan, const sdg_subcall_t *sub) {
  int index;
  SDG_TRY(sdg_subcall_keep(plan, sub, &index));
  return sdg_plan_call(plan, index);
}

sdg_status_t sdg_subcall_keep(sdg_plan_t *plan, const sdg_subcall_t *sub,
                              int *out_index) {
  state_t *state = plan->state;
  stored_t *stored =
      malloc(sizeof *stored + (size_t)sub->tensors * sizeof *stored->tensor);
  if (!stored) {
    if (sub->op)
      sub->op_destroy(sub->op);
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  }
  *stored = (stored_t){.fn = sub->fn,
                       .op = sub->op,
                       .op_destroy = sub->op_destroy,
                       .workspace_bytes = sub->workspace_bytes,
                       .tensors = sub->tensors};
  memcpy(stored->scalar, sub->scalar, sizeof stored->scalar);
  sdg_status_t status = stored_fill(plan, sub, stored);
  if (status != SDG_OK) {
    stored_destroy(stored);
    return status;
  }
  state->stored[state->count] = stored;
  *out_index = state->count++;
  return SDG_OK;
}
