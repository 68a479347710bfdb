// SPDX-License-Identifier: Apache-2.0
// Heuristics, which propose configurations, and plans, which are made of one
// or read from text.
#include "src/host/cudnn/backend/engine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/model/model.h"

char *host_value_text(const host_value_t *value) {
  char *text = calloc((size_t)value->count + 1, 1);
  for (int64_t i = 0; text && i < value->count; i++)
    text[i] = (char)value->slot[i].integer;
  return text;
}

cudnnStatus_t host_value_put_text(host_value_t *value, const char *text) {
  REFUSE_IF(!text, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  size_t bytes = strlen(text) + 1;
  cudnnStatus_t status =
      host_value_resize(value, CUDNN_TYPE_CHAR, (int64_t)bytes);
  for (size_t i = 0; i < bytes && !status; i++)
    value->slot[i].integer = text[i];
  return status;
}

// NVIDIA's library says nothing of a graph that no engine takes: it proposes
// nothing. The first one is told on stderr, each one by the last error.
static void explain(const sdg_graph_t *graph) {
  static _Atomic int said;
  const char *why = host_plan_refuses(graph);
  if (!why)
    return;
  (void)host_refuse(CUDNN_STATUS_NOT_SUPPORTED, why);
  bool printed = atomic_exchange(&said, 1) != 0;
  if (!printed)
    host_model_print(&printed, "a graph", why);
}

// The room for results; heuristics of NVIDIA's library propose up to 40.
enum { RESULTS = 64 };

cudnnStatus_t host_finalize_heuristic(host_object_t *heuristic) {
  host_object_t *graph =
      host_object_child(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  REFUSE_IF(HOST_VALUE(heuristic, ENGINEHEUR_OPERATION_GRAPH)->count == 0,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!graph, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED); // when it was set
  cudnnBackendHeurMode_t mode = (cudnnBackendHeurMode_t)host_object_integer(
      heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_INSTANT);
  sdg_graph_config_t *config = calloc(RESULTS, sizeof *config);
  REFUSE_IF(!config, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  host_plan_record(graph->graph);
  int count = host_plan_configs(graph->graph, mode, RESULTS, config);
  if (count > RESULTS)
    count = RESULTS;
  if (count == 0)
    explain(graph->graph);
  host_value_t *results = HOST_VALUE(heuristic, ENGINEHEUR_RESULTS);
  cudnnStatus_t status =
      host_value_resize(results, CUDNN_TYPE_BACKEND_DESCRIPTOR, count);
  for (int i = 0; i < count && !status; i++)
    status = host_config_create(graph, &config[i], &results->slot[i].object);
  free(config);
  return status;
}

// The device of a plan: its descriptor's, or the current one.
static char *device_text(host_object_t *plan) {
  host_object_t *device =
      host_object_child(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  if (device && device->finalized)
    return host_value_text(HOST_VALUE(device, DEVICEPROP_JSON_REPRESENTATION));
  int current = 0;
  (void)cudaGetDevice(&current);
  return host_device_text(current);
}

static cudnnStatus_t complete(host_object_t *plan, sdg_graph_t *graph,
                              const sdg_graph_config_t *config) {
  host_plan_record(graph);
  cudnnStatus_t status = host_plan_check(graph, config);
  if (!status)
    status =
        host_object_put(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                        CUDNN_TYPE_INT64, host_plan_workspace(graph, config));
  if (status)
    return status;
  char *device = device_text(plan);
  char *text = device ? host_plan_write(graph, config, device) : NULL;
  // Operations that are not computed here have no text either: such a plan
  // exists, and its text cannot be read.
  if (text)
    status = host_value_put_text(
        HOST_VALUE(plan, EXECUTION_PLAN_JSON_REPRESENTATION), text);
  free(device);
  free(text);
  if (!status)
    plan->graph = sdg_graph_retain(graph);
  return status;
}

// A plan from text has descriptors of its engine, too: programs read the engine
// and the knobs back.
static cudnnStatus_t attach(host_object_t *plan, sdg_graph_t *graph,
                            const sdg_graph_config_t *config) {
  host_value_t *value = HOST_VALUE(plan, EXECUTION_PLAN_ENGINE_CONFIG);
  host_object_t *of =
      host_object_create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  REFUSE_IF(!of, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  of->finalized = true;
  of->graph = sdg_graph_retain(graph);
  cudnnStatus_t status =
      host_value_resize(value, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
  if (!status)
    status = host_config_create(of, config, &value->slot[0].object);
  host_object_release(of);
  return status;
}

static cudnnStatus_t from_text(host_object_t *plan) {
  char *text =
      host_value_text(HOST_VALUE(plan, EXECUTION_PLAN_JSON_REPRESENTATION));
  REFUSE_IF(!text, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  sdg_graph_reading_t reading =
      sdg_graph_read(text, (int64_t)strlen(text), &graph, &config);
  free(text);
  if (reading == SDG_GRAPH_NO_JSON)
    return host_refuse(CUDNN_STATUS_BAD_PARAM, "a plan's JSON text");
  if (reading == SDG_GRAPH_UNKNOWN)
    return host_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                       "a plan of schema 4 whose keys are all known");
  cudnnStatus_t status = attach(plan, graph, &config);
  if (!status)
    status = complete(plan, graph, &config);
  sdg_graph_release(graph);
  return status;
}

cudnnStatus_t host_finalize_plan(host_object_t *plan) {
  REFUSE_IF(HOST_VALUE(plan, EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS)->count >
                0,
            CUDNN_STATUS_NOT_SUPPORTED);
  host_object_t *from =
      host_object_child(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (!from && HOST_VALUE(plan, EXECUTION_PLAN_JSON_REPRESENTATION)->count > 0)
    return from_text(plan);
  REFUSE_IF(!from || !from->finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  sdg_graph_config_t config;
  sdg_graph_t *graph = NULL;
  cudnnStatus_t status = host_config_read(from, &config, &graph);
  return status ? status : complete(plan, graph, &config);
}
