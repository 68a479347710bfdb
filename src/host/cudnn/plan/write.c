// SPDX-License-Identifier: Apache-2.0
// A plan as JSON text, in the format of cuDNN 9.19.
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/graph/names.h"
#include "src/host/cudnn/plan/plan.h"
#include "src/host/cudnn/plan/version.h"

static json_t *numbers(const int64_t *values, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++)
    json_array_append_new(list, json_integer(values[i]));
  return list;
}

// Tensors are named by their uids.
static json_t *name_of(const sdg_graph_tensor_t *tensor) {
  char name[24];
  snprintf(name, sizeof name, "%" PRId64, tensor->uid);
  return json_string(name);
}

static json_t *enumerator(sdg_graph_key_type_t type, int64_t value) {
  const char *name = sdg_graph_name_of(type, value);
  return name ? json_string(name) : NULL;
}

static json_t *tensor_json(const sdg_graph_tensor_t *tensor) {
  json_t *object = json_object();
  json_object_set_new(object, "name", name_of(tensor));
  json_object_set_new(object, "dataType",
                      enumerator(SDG_GRAPH_KEY_DATA_TYPE, tensor->type));
  json_object_set_new(object, "dim", numbers(tensor->dim, tensor->rank));
  json_object_set_new(object, "stride", numbers(tensor->stride, tensor->rank));
  json_object_set_new(object, "isVirtual", json_boolean(tensor->is_virtual));
  json_object_set_new(object, "isByValue", json_boolean(tensor->is_by_value));
  json_object_set_new(object, "vectCount", json_integer(tensor->vector_count));
  json_object_set_new(object, "vectDim",
                      json_integer(tensor->vector_dimension));
  json_object_set_new(object, "ptrAlignment", json_integer(tensor->alignment));
  json_object_set_new(object, "reordering",
                      enumerator(SDG_GRAPH_KEY_REORDERING, tensor->reordering));
  return object;
}

static json_t *list_of(const sdg_graph_parameter_t *p) {
  json_t *list = json_array();
  for (int i = 0; i < p->count; i++)
    json_array_append_new(list, json_integer(p->value[i].integer));
  return list;
}

// The fraction with the smallest denominator that is the number.
static json_t *fraction_of(double number) {
  enum { DENOMINATORS = 1 << 16 };
  int64_t pair[] = {(int64_t)number, 1};
  while ((double)pair[0] / (double)pair[1] != number &&
         pair[1] < DENOMINATORS) {
    pair[1]++;
    pair[0] = (int64_t)nearbyint(number * (double)pair[1]);
  }
  return numbers(pair, 2);
}

static json_t *fractions_of(const sdg_graph_parameter_t *p) {
  json_t *list = json_array();
  for (int i = 0; i < p->count; i++)
    json_array_append_new(list, fraction_of(p->type == CUDNN_TYPE_FRACTION
                                                ? p->value[i].real
                                                : (double)p->value[i].integer));
  return list;
}

static json_t *names_of(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name) {
  if (sdg_graph_operand(node, name) < 0)
    return NULL;
  json_t *list = json_array();
  for (int i = 0; i < node->operand_count; i++)
    if (node->operand[i].name == name)
      json_array_append_new(list,
                            name_of(&graph->tensor[node->operand[i].tensor]));
  return list;
}

static json_t *value_of(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                        const sdg_graph_key_t *key) {
  if (key->type == SDG_GRAPH_KEY_OPERANDS)
    return names_of(graph, node, key->attribute);
  if (key->type == SDG_GRAPH_KEY_OPERAND) {
    int tensor = sdg_graph_operand(node, key->attribute);
    return tensor < 0 ? NULL : name_of(&graph->tensor[tensor]);
  }
  const sdg_graph_parameter_t *p = sdg_graph_parameter(node, key->attribute);
  if (!p || p->count < 1)
    return NULL;
  switch (key->type) {
  case SDG_GRAPH_KEY_TYPE: // all numbers are written as doubles
    return enumerator(SDG_GRAPH_KEY_TYPE, CUDNN_TYPE_DOUBLE);
  case SDG_GRAPH_KEY_REAL:
    return json_real(sdg_graph_real(node, key->attribute, 0));
  case SDG_GRAPH_KEY_LIST:
    return list_of(p);
  case SDG_GRAPH_KEY_FRACTIONS:
    return fractions_of(p);
  case SDG_GRAPH_KEY_INTEGER:
    return json_integer(p->value[0].integer);
  case SDG_GRAPH_KEY_BOOLEAN:
    return json_boolean(p->value[0].integer);
  default:
    return enumerator(key->type, p->value[0].integer);
  }
}

// "pad" stands for both where they are equal.
static void pads_join(json_t *object) {
  json_t *lower = json_object_get(object, "pad_lower");
  if (!lower || !json_equal(lower, json_object_get(object, "pad_upper")))
    return;
  json_object_set(object, "pad", lower);
  json_object_del(object, "pad_lower");
  json_object_del(object, "pad_upper");
}

static json_t *node_json(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  json_t *kind = enumerator(SDG_GRAPH_KEY_OPERATION, node->kind);
  if (!kind)
    return NULL;
  json_t *object = json_object();
  json_object_set_new(object, "operation", kind);
  for (int i = 0; i < sdg_graph_key_count; i++) {
    if (sdg_graph_keys[i].kind != node->kind)
      continue;
    json_t *value = value_of(graph, node, &sdg_graph_keys[i]);
    if (value)
      json_object_set_new(object, sdg_graph_keys[i].key, value);
  }
  pads_join(object);
  return object;
}

static json_t *graph_json(const sdg_graph_t *graph) {
  json_t *object = json_object(), *tensors = json_array(),
         *nodes = json_array();
  json_object_set_new(object, "tensors", tensors);
  json_object_set_new(object, "nodes", nodes);
  for (int i = 0; i < graph->tensor_count; i++)
    json_array_append_new(tensors, tensor_json(&graph->tensor[i]));
  for (int i = 0; i < graph->node_count; i++) {
    json_t *node = node_json(graph, &graph->node[i]);
    if (!node) {
      json_decref(object);
      return NULL;
    }
    json_array_append_new(nodes, node);
  }
  return object;
}

static json_t *engine_json(const sdg_graph_config_t *config) {
  json_t *object = json_object(), *knobs = json_object();
  json_object_set_new(object, "engineId", json_integer(config->engine));
  json_object_set_new(object, "knobChoices", knobs);
  for (int i = 0; i < config->knob_count; i++) {
    const char *name =
        sdg_graph_name_of(SDG_GRAPH_KEY_KNOB_TYPE, config->knob[i].type);
    if (name)
      json_object_set_new(knobs, name, json_integer(config->knob[i].value));
  }
  return object;
}

char *host_plan_write(const sdg_graph_t *graph,
                      const sdg_graph_config_t *config,
                      const char *device_json) {
  json_t *operations = graph_json(graph);
  if (!operations)
    return NULL;
  json_t *plan = json_object();
  json_object_set_new(plan, "cudnnVersion", json_integer(HOST_PLAN_CUDNN));
  json_object_set_new(plan, "schemaVersion", json_integer(SDG_GRAPH_SCHEMA));
  json_object_set_new(plan, "operationGraph", operations);
  json_t *device =
      device_json ? json_loads(device_json, 0, NULL) : json_object();
  if (device)
    json_object_set_new(plan, "GPUProfile", device);
  json_object_set_new(plan, "engine", engine_json(config));
  char *text = json_dumps(plan, JSON_COMPACT);
  json_decref(plan);
  return text;
}
