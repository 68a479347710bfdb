// SPDX-License-Identifier: Apache-2.0
// Engines, their knobs and notes, and configurations of engines.
#include "src/host/cudnn/backend/engine.h"

#include <stdlib.h>

// One integer per element.
static cudnnStatus_t put_list(host_value_t *value,
                              cudnnBackendAttributeType_t type, int count,
                              const int *from) {
  cudnnStatus_t status = host_value_resize(value, type, count);
  for (int i = 0; i < count && !status; i++)
    value->slot[i].integer = from[i];
  return status;
}

// A child in every slot, finalized.
static cudnnStatus_t put_children(host_value_t *value,
                                  cudnnBackendDescriptorType_t kind,
                                  int count) {
  cudnnStatus_t status =
      host_value_resize(value, CUDNN_TYPE_BACKEND_DESCRIPTOR, count);
  for (int i = 0; i < count && !status; i++) {
    host_object_t *child = host_object_create(kind);
    value->slot[i].object = child;
    REFUSE_IF(!child, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    child->finalized = true;
  }
  return status;
}

static cudnnStatus_t put_knobs(host_object_t *engine,
                               const host_engine_t *about) {
  host_value_t *value = HOST_VALUE(engine, ENGINE_KNOB_INFO);
  cudnnStatus_t status = put_children(value, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR,
                                      about->knob_count);
  for (int i = 0; i < about->knob_count && !status; i++) {
    host_object_t *knob = value->slot[i].object;
    status = host_object_put(knob, CUDNN_ATTR_KNOB_INFO_TYPE,
                             CUDNN_TYPE_KNOB_TYPE, (int)about->knob[i].type);
    if (!status)
      status = host_object_put(knob, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE,
                               CUDNN_TYPE_INT64, about->knob[i].minimum);
    if (!status)
      status = host_object_put(knob, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE,
                               CUDNN_TYPE_INT64, about->knob[i].maximum);
    if (!status)
      status = host_object_put(knob, CUDNN_ATTR_KNOB_INFO_STRIDE,
                               CUDNN_TYPE_INT64, about->knob[i].stride);
  }
  return status;
}

static cudnnStatus_t put_notes(host_object_t *engine,
                               const host_engine_t *about) {
  int note[HOST_PLAN_NOTES];
  for (int i = 0; i < about->numerical_count; i++)
    note[i] = (int)about->numerical[i];
  cudnnStatus_t status =
      put_list(HOST_VALUE(engine, ENGINE_NUMERICAL_NOTE),
               CUDNN_TYPE_NUMERICAL_NOTE, about->numerical_count, note);
  for (int i = 0; i < about->behavior_count; i++)
    note[i] = (int)about->behavior[i];
  if (!status)
    status = put_list(HOST_VALUE(engine, ENGINE_BEHAVIOR_NOTE),
                      CUDNN_TYPE_BEHAVIOR_NOTE, about->behavior_count, note);
  return status;
}

cudnnStatus_t host_finalize_engine(host_object_t *engine) {
  const host_object_t *graph =
      host_object_child(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  REFUSE_IF(HOST_VALUE(engine, ENGINE_OPERATION_GRAPH)->count == 0,
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  REFUSE_IF(!graph, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED); // when it was set
  int64_t index =
      host_object_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  host_engine_t about;
  REFUSE_IF(!host_plan_engine(graph->graph, index, &about),
            CUDNN_STATUS_NOT_SUPPORTED);
  cudnnStatus_t status = put_knobs(engine, &about);
  if (!status)
    status = put_notes(engine, &about);
  return status;
}

cudnnStatus_t host_config_read(host_object_t *config, sdg_graph_config_t *out,
                               sdg_graph_t **out_graph) {
  host_object_t *engine =
      host_object_child(config, CUDNN_ATTR_ENGINECFG_ENGINE);
  REFUSE_IF(!engine || !engine->finalized, CUDNN_STATUS_BAD_PARAM);
  const host_value_t *choices = HOST_VALUE(config, ENGINECFG_KNOB_CHOICES);
  REFUSE_IF(choices->count > SDG_GRAPH_KNOBS, CUDNN_STATUS_NOT_SUPPORTED);
  *out = (sdg_graph_config_t){
      .engine = host_object_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0),
      .knob_count = (int)choices->count};
  for (int i = 0; i < out->knob_count; i++) {
    host_object_t *choice = choices->slot[i].object;
    out->knob[i].type = (cudnnBackendKnobType_t)host_object_integer(
        choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 0);
    out->knob[i].value =
        host_object_integer(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, -1);
  }
  *out_graph =
      host_object_child(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH)->graph;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_finalize_config(host_object_t *config) {
  sdg_graph_config_t read;
  sdg_graph_t *graph = NULL;
  cudnnStatus_t status = host_config_read(config, &read, &graph);
  if (!status)
    status = host_plan_check(graph, &read);
  if (!status)
    status =
        host_object_put(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
                        CUDNN_TYPE_INT64, host_plan_workspace(graph, &read));
  return status;
}

// A finalized engine of the graph, held by `config`.
static cudnnStatus_t put_engine(host_object_t *config, host_object_t *graph,
                                int64_t index) {
  host_value_t *value = HOST_VALUE(config, ENGINECFG_ENGINE);
  cudnnStatus_t status =
      put_children(value, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (status)
    return status;
  host_object_t *engine = value->slot[0].object;
  host_value_t *of = HOST_VALUE(engine, ENGINE_OPERATION_GRAPH);
  status = host_value_resize(of, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
  if (status)
    return status;
  of->slot[0].object = host_object_retain(graph);
  status = host_object_put(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                           CUDNN_TYPE_INT64, index);
  return status ? status : host_finalize_engine(engine);
}

static cudnnStatus_t fill(host_object_t *config, host_object_t *graph,
                          const sdg_graph_config_t *from) {
  cudnnStatus_t status = put_engine(config, graph, from->engine);
  host_value_t *value = HOST_VALUE(config, ENGINECFG_KNOB_CHOICES);
  if (!status)
    status = put_children(value, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                          from->knob_count);
  for (int i = 0; i < from->knob_count && !status; i++) {
    host_object_t *choice = value->slot[i].object;
    status = host_object_put(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                             CUDNN_TYPE_KNOB_TYPE, (int)from->knob[i].type);
    if (!status)
      status = host_object_put(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                               CUDNN_TYPE_INT64, from->knob[i].value);
  }
  return status ? status : host_finalize_config(config);
}

cudnnStatus_t host_config_create(host_object_t *graph,
                                 const sdg_graph_config_t *config,
                                 host_object_t **out) {
  host_object_t *made = host_object_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  REFUSE_IF(!made, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  cudnnStatus_t status = fill(made, graph, config);
  made->finalized = !status;
  if (status)
    host_object_release(made);
  else
    *out = made;
  return status;
}
