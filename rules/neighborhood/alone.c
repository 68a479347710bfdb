// SPDX-License-Identifier: Apache-2.0
// Neighbourhood attention of tensors that only this rank has.
#include <cudnn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules/kit/alone.h"
#include "rules/neighborhood/plan.h"
#include "rules/vendor/vendor.h"

// Everything that the plan of a call on one rank depends on.
typedef struct alone_key {
  const void *handle;
  uint64_t number[SDG_OP_KEYS];
  int operands, dims[SDG_NEIGHBORHOOD_OPERANDS];
  sdg_type_t type[SDG_NEIGHBORHOOD_OPERANDS];
  int64_t extent[SDG_NEIGHBORHOOD_OPERANDS][SDG_DIMS_MAX];
  int64_t stride[SDG_NEIGHBORHOOD_OPERANDS][SDG_DIMS_MAX];
} alone_key_t;

enum { ALONE_PLANS = 16 };
static struct {
  pthread_mutex_t lock; // while a plan is made or enqueued
  struct {
    alone_key_t key;
    sdg_plan_t *plan;
    uint64_t used;
  } entry[ALONE_PLANS];
  uint64_t uses;
} alone = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void alone_key_make(const sdg_call_t *call, alone_key_t *out) {
  memset(out, 0, sizeof *out);
  out->handle = call->handle;
  (void)sdg_op_neighborhood.key(call, out->number);
  out->operands = call->operands;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    out->dims[i] = operand->dims;
    out->type[i] = operand->type;
    memcpy(out->extent[i], operand->extent, sizeof out->extent[i]);
    memcpy(out->stride[i], operand->stride, sizeof out->stride[i]);
  }
}

// Makes a plan for a mesh of one rank, where every dimension is whole.
static sdg_status_t alone_plan(const sdg_call_t *call, sdg_plan_t **out_plan) {
  static const sdg_mesh_t mesh = {.axes = 1, .name = {"ranks"}, .size = {1}};
  sdg_tagging_t *tagging;
  SDG_TRY(SDG_ALLOCATE(tagging, 1, "a plan"));
  tagging->mesh = &mesh;
  tagging->ranks = 1;
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < call->operands && status == SDG_OK; i++)
    status = sdg_placement_init(call->operand[i].dims, call->operand[i].extent,
                                &tagging->placement[i]);
  if (status == SDG_OK)
    status = sdg_neighborhood_plan(call, tagging, out_plan);
  for (int i = 0; i < call->operands; i++)
    sdg_placement_fini(&tagging->placement[i]);
  free(tagging);
  return status;
}

static sdg_status_t alone_find(const sdg_call_t *call, sdg_plan_t **out_plan) {
  alone_key_t key;
  alone_key_make(call, &key);
  int at = 0;
  for (int i = 0; i < ALONE_PLANS; i++) {
    if (alone.entry[i].plan &&
        memcmp(&alone.entry[i].key, &key, sizeof key) == 0) {
      alone.entry[i].used = ++alone.uses;
      *out_plan = alone.entry[i].plan;
      return SDG_OK;
    }
    if (alone.entry[i].used < alone.entry[at].used)
      at = i;
  }
  SDG_TRY(alone_plan(call, out_plan));
  sdg_plan_destroy(alone.entry[at].plan);
  alone.entry[at].key = key;
  alone.entry[at].plan = *out_plan;
  alone.entry[at].used = ++alone.uses;
  return SDG_OK;
}

sdg_status_t sdg_neighborhood_alone(sdg_call_t *call) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudaStream_t stream;
  sdg_plan_t *plan;
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].data)
      return sdg_fail(SDG_E_NEIGHBORHOOD, "%s has no data",
                      sdg_role_name(call->operand[i].role));
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnStatus_t got =
      cudnn->cudnnGetStream((cudnnHandle_t)(uintptr_t)call->handle, &stream);
  if (got != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL, "cudnnGetStream: %d", (int)got);
  pthread_mutex_lock(&alone.lock);
  sdg_status_t status = alone_find(call, &plan);
  if (status == SDG_OK)
    status = sdg_alone_run(plan, call, stream, &call->result);
  pthread_mutex_unlock(&alone.lock);
  return status;
}
