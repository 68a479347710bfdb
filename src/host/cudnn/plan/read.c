// SPDX-License-Identifier: Apache-2.0
// A plan from JSON text, as cuDNN 9.19 or this library writes it. What is not
// known is refused: it could change the result.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/plan/names.h"
#include "src/host/cudnn/plan/plan.h"
#include "src/host/cudnn/plan/version.h"

// ---- values ----------------------------------------------------------------

static bool numbers_get(const json_t *list, int *out_count, int64_t *out) {
  if (!json_is_array(list) || json_array_size(list) > CUDNN_DIM_MAX)
    return false;
  *out_count = (int)json_array_size(list);
  for (int i = 0; i < *out_count; i++) {
    const json_t *value = json_array_get(list, (size_t)i);
    if (!json_is_integer(value))
      return false;
    out[i] = json_integer_value(value);
  }
  return true;
}

static bool enumerator_get(host_key_type_t type, const json_t *value,
                           int64_t *out) {
  return host_name_find(type, json_string_value(value), out);
}

static bool uid_get(const json_t *name, int64_t *out) {
  const char *text = json_string_value(name);
  char *end = NULL;
  if (!text || !*text)
    return false;
  *out = strtoll(text, &end, 10);
  return *end == '\0';
}

// ---- tensors ---------------------------------------------------------------

static bool tensor_read(const json_t *object, sdg_graph_tensor_t *out) {
  int strides;
  int64_t type, reordering = CUDNN_TENSOR_REORDERING_NONE;
  const json_t *reordered = json_object_get(object, "reordering");
  if (!uid_get(json_object_get(object, "name"), &out->uid) ||
      !enumerator_get(HOST_KEY_DATA_TYPE, json_object_get(object, "dataType"),
                      &type) ||
      !numbers_get(json_object_get(object, "dim"), &out->rank, out->dim) ||
      !numbers_get(json_object_get(object, "stride"), &strides, out->stride) ||
      strides != out->rank || out->rank < 1 ||
      (reordered &&
       !enumerator_get(HOST_KEY_REORDERING, reordered, &reordering)))
    return false;
  out->type = (cudnnDataType_t)type;
  out->reordering = (cudnnBackendTensorReordering_t)reordering;
  out->alignment = json_integer_value(json_object_get(object, "ptrAlignment"));
  out->vector_count = json_integer_value(json_object_get(object, "vectCount"));
  out->vector_dimension =
      json_integer_value(json_object_get(object, "vectDim"));
  out->is_virtual = json_is_true(json_object_get(object, "isVirtual"));
  out->is_by_value = json_is_true(json_object_get(object, "isByValue"));
  out->is_ragged = json_is_true(json_object_get(object, "isRagged"));
  return out->alignment > 0;
}

static bool tensors_read(const json_t *list, sdg_graph_t *graph) {
  if (!json_is_array(list))
    return false;
  size_t count = json_array_size(list);
  graph->tensor = calloc(count + 1, sizeof *graph->tensor);
  for (size_t i = 0; graph->tensor && i < count; i++) {
    if (!tensor_read(json_array_get(list, i), &graph->tensor[i]))
      return false;
    graph->tensor_count++;
  }
  return graph->tensor;
}

// ---- nodes -----------------------------------------------------------------

static bool parameter_read(const host_key_t *key, const json_t *value,
                           sdg_graph_parameter_t *out) {
  *out = (sdg_graph_parameter_t){.name = key->attribute,
                                 .type = host_key_attribute_type(key->type),
                                 .count = 1};
  int64_t list[CUDNN_DIM_MAX];
  switch (key->type) {
  case HOST_KEY_REAL:
    out->value[0].real = json_number_value(value);
    return json_is_number(value);
  case HOST_KEY_LIST:
    if (!numbers_get(value, &out->count, list))
      return false;
    for (int i = 0; i < out->count; i++)
      out->value[i].integer = list[i];
    return true;
  case HOST_KEY_INTEGER:
    out->value[0].integer = json_integer_value(value);
    return json_is_integer(value);
  case HOST_KEY_BOOLEAN:
    out->value[0].integer = json_is_true(value);
    return json_is_boolean(value);
  default:
    return enumerator_get(key->type, value, &out->value[0].integer);
  }
}

// "pad" has the keys of both sides.
static bool key_is(const host_key_t *key, const char *text) {
  return strcmp(key->key, text) == 0 ||
         (strcmp(text, "pad") == 0 && strncmp(key->key, "pad_", 4) == 0);
}

static bool member_read(const sdg_graph_t *graph, const char *text,
                        const json_t *value, sdg_graph_node_t *node) {
  bool known = false;
  for (int i = 0; i < host_key_count; i++) {
    const host_key_t *key = &host_keys[i];
    if (key->kind != node->kind || !key_is(key, text))
      continue;
    known = true;
    int64_t uid;
    if (key->type != HOST_KEY_OPERAND) {
      if (!parameter_read(key, value,
                          &node->parameter[node->parameter_count++]))
        return false;
      continue;
    }
    if (!uid_get(value, &uid))
      return false;
    int tensor = sdg_graph_find(graph, uid);
    if (tensor < 0)
      return false;
    node->operand[node->operand_count++] =
        (sdg_graph_operand_t){key->attribute, tensor};
  }
  return known;
}

static bool node_read(const sdg_graph_t *graph, json_t *object,
                      sdg_graph_node_t *node) {
  int64_t kind;
  const char *text;
  json_t *value;
  if (!enumerator_get(HOST_KEY_OPERATION, json_object_get(object, "operation"),
                      &kind))
    return false;
  node->kind = (cudnnBackendDescriptorType_t)kind;
  // A member has two rows at most.
  size_t room = 2 * json_object_size(object) + 1;
  node->operand = calloc(room, sizeof *node->operand);
  node->parameter = calloc(room, sizeof *node->parameter);
  if (!node->operand || !node->parameter)
    return false;
  json_object_foreach(object, text, value) if (strcmp(text, "operation") != 0 &&
                                               !member_read(graph, text, value,
                                                            node)) return false;
  return true;
}

static bool nodes_read(const json_t *list, sdg_graph_t *graph) {
  size_t count = json_array_size(list);
  graph->node = calloc(count + 1, sizeof *graph->node);
  for (size_t i = 0; graph->node && i < count; i++) {
    graph->node_count++;
    if (!node_read(graph, json_array_get(list, i), &graph->node[i]))
      return false;
  }
  return graph->node && count > 0;
}

// Whether nodes have all operands that the JSON of their kind always has: the
// first that is written.
static bool nodes_complete(const sdg_graph_t *graph) {
  for (int n = 0; n < graph->node_count; n++) {
    bool writes = false;
    for (int i = 0; i < graph->node[n].operand_count; i++)
      writes |=
          sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name);
    if (!writes || graph->node[n].operand_count < 2)
      return false;
  }
  return true;
}

// ---- the plan --------------------------------------------------------------

static bool engine_read(json_t *object, host_config_t *out) {
  const json_t *id = json_object_get(object, "engineId");
  json_t *knobs = json_object_get(object, "knobChoices"), *value;
  const char *name;
  if (!json_is_integer(id) || json_object_size(knobs) > HOST_PLAN_KNOBS)
    return false;
  *out = (host_config_t){.engine = json_integer_value(id)};
  json_object_foreach(knobs, name, value) {
    int64_t type;
    if (!host_name_find(HOST_KEY_KNOB_TYPE, name, &type))
      return false;
    out->knob[out->knob_count++] =
        (host_knob_t){(cudnnBackendKnobType_t)type, json_integer_value(value)};
  }
  return true;
}

static bool plan_read(const json_t *plan, sdg_graph_t *graph,
                      host_config_t *out_config) {
  const json_t *operations = json_object_get(plan, "operationGraph");
  return json_integer_value(json_object_get(plan, "schemaVersion")) ==
             HOST_PLAN_SCHEMA &&
         tensors_read(json_object_get(operations, "tensors"), graph) &&
         nodes_read(json_object_get(operations, "nodes"), graph) &&
         nodes_complete(graph) && sdg_graph_sort(graph) &&
         engine_read(json_object_get(plan, "engine"), out_config);
}

cudnnStatus_t host_plan_read(const char *text, int64_t length,
                             sdg_graph_t **out_graph,
                             host_config_t *out_config) {
  while (length > 0 && text[length - 1] == '\0')
    length--;
  json_t *plan = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
  sdg_graph_t *graph = calloc(1, sizeof *graph);
  if (!plan || !graph) {
    json_decref(plan);
    free(graph);
    return host_refuse(CUDNN_STATUS_BAD_PARAM, "a plan's JSON text");
  }
  graph->references = 1;
  bool good = plan_read(plan, graph, out_config);
  json_decref(plan);
  if (!good) {
    sdg_graph_release(graph);
    return host_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                       "a plan of schema 4 whose keys are all known");
  }
  *out_graph = graph;
  return CUDNN_STATUS_SUCCESS;
}
