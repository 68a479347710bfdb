// SPDX-License-Identifier: Apache-2.0
// Heuristics, engines, configurations and plans, which are refused.
#include "src/host/cudnn/backend/engine.h"

static cudnnStatus_t refuse(void) {
  return host_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                     "the host device has no engine for operation graphs");
}

cudnnStatus_t host_finalize_device(host_object_t *device) {
  (void)device;
  return refuse();
}

cudnnStatus_t host_finalize_heuristic(host_object_t *heuristic) {
  REFUSE_IF(!HOST_VALUE(heuristic, ENGINEHEUR_OPERATION_GRAPH)->count,
            CUDNN_STATUS_BAD_PARAM);
  return refuse();
}

cudnnStatus_t host_finalize_engine(host_object_t *engine) {
  REFUSE_IF(!HOST_VALUE(engine, ENGINE_OPERATION_GRAPH)->count,
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  return refuse();
}

cudnnStatus_t host_finalize_config(host_object_t *config) {
  REFUSE_IF(!HOST_VALUE(config, ENGINECFG_ENGINE)->count,
            CUDNN_STATUS_BAD_PARAM);
  return refuse();
}

cudnnStatus_t host_finalize_plan(host_object_t *plan) {
  REFUSE_IF(!HOST_VALUE(plan, EXECUTION_PLAN_ENGINE_CONFIG)->count,
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  return refuse();
}
