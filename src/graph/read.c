// SPDX-License-Identifier: Apache-2.0
// A plan from JSON text, as cuDNN 9.19 or this library writes it. What is not
// known is refused: it could change the result.
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/graph/names.h"
#include "src/graph/graph.h"

// ---- values ----------------------------------------------------------------

static bool numbers_get(const sdg_json_t *list, int *out_count, int64_t *out) {
  if (!sdg_json_is(list, SDG_JSON_ARRAY) || list->count > CUDNN_DIM_MAX)
    return false;
  *out_count = (int)list->count;
  for (const sdg_json_t *value = list->first; value; value = value->next) {
    if (!sdg_json_is(value, SDG_JSON_INTEGER))
      return false;
    *out++ = value->integer;
  }
  return true;
}

// Pairs of numerator and denominator: integers if all are whole, as build.c of
// the host device keeps them.
static bool fractions_get(const sdg_json_t *list, sdg_graph_parameter_t *out) {
  int64_t pair[CUDNN_DIM_MAX];
  bool whole = true;
  int count = 0, two;
  if (!sdg_json_is(list, SDG_JSON_ARRAY) || list->count > CUDNN_DIM_MAX)
    return false;
  for (const sdg_json_t *value = list->first; value; value = value->next) {
    if (!numbers_get(value, &two, pair) || two != 2 || pair[1] == 0)
      return false;
    out->value[count++].real = (double)pair[0] / (double)pair[1];
    whole &= pair[0] % pair[1] == 0;
  }
  for (int i = 0; i < count && whole; i++)
    out->value[i].integer = (int64_t)out->value[i].real;
  out->type = whole ? CUDNN_TYPE_INT64 : CUDNN_TYPE_FRACTION;
  out->count = count;
  return true;
}

static bool enumerator_get(sdg_graph_key_type_t type, const sdg_json_t *value,
                           int64_t *out) {
  return sdg_graph_name_find(type, sdg_json_string(value), out);
}

static bool uid_get(const sdg_json_t *name, int64_t *out) {
  const char *text = sdg_json_string(name);
  char *end = NULL;
  if (!text || !*text)
    return false;
  *out = strtoll(text, &end, 10);
  return *end == '\0';
}

// ---- tensors ---------------------------------------------------------------

// A later cuDNN may write more, which could change what is computed.
static bool tensor_is_known(const sdg_json_t *object) {
  static const char *const known[] = {"name",      "dataType",     "dim",
                                      "stride",    "ptrAlignment", "vectDim",
                                      "vectCount", "isVirtual",    "isByValue",
                                      "isRagged",  "reordering"};
  for (const sdg_json_t *member = object->first; member;
       member = member->next) {
    size_t i = 0;
    while (i < sizeof known / sizeof *known &&
           strcmp(member->key, known[i]) != 0)
      i++;
    if (i == sizeof known / sizeof *known)
      return false;
  }
  return true;
}

static bool tensor_read(const sdg_json_t *object, sdg_graph_tensor_t *out) {
  int strides;
  int64_t type, reordering = CUDNN_TENSOR_REORDERING_NONE;
  const sdg_json_t *reordered = sdg_json_get(object, "reordering");
  const sdg_json_t *ragged = sdg_json_get(object, "isRagged");
  if (!sdg_json_is(object, SDG_JSON_OBJECT) || !tensor_is_known(object) ||
      !uid_get(sdg_json_get(object, "name"), &out->uid) ||
      !enumerator_get(SDG_GRAPH_KEY_DATA_TYPE, sdg_json_get(object, "dataType"),
                      &type) ||
      !numbers_get(sdg_json_get(object, "dim"), &out->rank, out->dim) ||
      !numbers_get(sdg_json_get(object, "stride"), &strides, out->stride) ||
      strides != out->rank || out->rank < 1 ||
      (reordered &&
       !enumerator_get(SDG_GRAPH_KEY_REORDERING, reordered, &reordering)))
    return false;
  out->type = (cudnnDataType_t)type;
  out->reordering = (cudnnBackendTensorReordering_t)reordering;
  out->alignment = sdg_json_integer(sdg_json_get(object, "ptrAlignment"));
  out->vector_count = sdg_json_integer(sdg_json_get(object, "vectCount"));
  out->vector_dimension = sdg_json_integer(sdg_json_get(object, "vectDim"));
  out->is_virtual = sdg_json_is_true(sdg_json_get(object, "isVirtual"));
  out->is_by_value = sdg_json_is_true(sdg_json_get(object, "isByValue"));
  // It is a list with the tensor of offsets.
  out->is_ragged =
      ragged && (!sdg_json_is(ragged, SDG_JSON_BOOLEAN) || ragged->integer);
  return out->alignment > 0;
}

static bool tensors_read(const sdg_json_t *list, sdg_graph_t *graph) {
  if (!sdg_json_is(list, SDG_JSON_ARRAY))
    return false;
  graph->tensor = calloc(list->count + 1, sizeof *graph->tensor);
  for (const sdg_json_t *tensor = list->first; graph->tensor && tensor;
       tensor = tensor->next)
    if (!tensor_read(tensor, &graph->tensor[graph->tensor_count++]))
      return false;
  return graph->tensor;
}

// ---- nodes -----------------------------------------------------------------

static bool parameter_read(const sdg_graph_key_t *key, const sdg_json_t *value,
                           sdg_graph_parameter_t *out) {
  *out =
      (sdg_graph_parameter_t){.name = key->attribute,
                              .type = sdg_graph_key_attribute_type(key->type),
                              .count = 1};
  int64_t list[CUDNN_DIM_MAX];
  switch (key->type) {
  case SDG_GRAPH_KEY_REAL:
    out->value[0].real = value->real;
    return sdg_json_is(value, SDG_JSON_REAL) ||
           sdg_json_is(value, SDG_JSON_INTEGER);
  case SDG_GRAPH_KEY_LIST:
    if (!numbers_get(value, &out->count, list))
      return false;
    for (int i = 0; i < out->count; i++)
      out->value[i].integer = list[i];
    return true;
  case SDG_GRAPH_KEY_FRACTIONS:
    return fractions_get(value, out);
  case SDG_GRAPH_KEY_INTEGER:
    out->value[0].integer = sdg_json_integer(value);
    return sdg_json_is(value, SDG_JSON_INTEGER);
  case SDG_GRAPH_KEY_BOOLEAN:
    out->value[0].integer = sdg_json_is_true(value);
    return sdg_json_is(value, SDG_JSON_BOOLEAN);
  default:
    return enumerator_get(key->type, value, &out->value[0].integer);
  }
}

// "pad" has the keys of both sides.
static bool key_is(const sdg_graph_key_t *key, const char *text) {
  return strcmp(key->key, text) == 0 ||
         (strcmp(text, "pad") == 0 && strncmp(key->key, "pad_", 4) == 0);
}

static bool operand_read(const sdg_graph_t *graph,
                         cudnnBackendAttributeName_t name,
                         const sdg_json_t *value, sdg_graph_node_t *node) {
  int64_t uid;
  int tensor = uid_get(value, &uid) ? sdg_graph_find(graph, uid) : -1;
  if (tensor < 0)
    return false;
  node->operand[node->operand_count++] = (sdg_graph_operand_t){name, tensor};
  return true;
}

static bool operands_read(const sdg_graph_t *graph,
                          cudnnBackendAttributeName_t name,
                          const sdg_json_t *list, sdg_graph_node_t *node) {
  if (!sdg_json_is(list, SDG_JSON_ARRAY))
    return false;
  for (const sdg_json_t *value = list->first; value; value = value->next)
    if (!operand_read(graph, name, value, node))
      return false;
  return true;
}

static bool member_read(const sdg_graph_t *graph, const char *text,
                        const sdg_json_t *value, sdg_graph_node_t *node) {
  bool known = false;
  for (int i = 0; i < sdg_graph_key_count; i++) {
    const sdg_graph_key_t *key = &sdg_graph_keys[i];
    if (key->kind != node->kind || !key_is(key, text))
      continue;
    known = true;
    bool good = true;
    if (key->type == SDG_GRAPH_KEY_TYPE) // typed_read takes it
      continue;
    if (key->type == SDG_GRAPH_KEY_OPERAND)
      good = operand_read(graph, key->attribute, value, node);
    else if (key->type == SDG_GRAPH_KEY_OPERANDS)
      good = operands_read(graph, key->attribute, value, node);
    else
      good =
          parameter_read(key, value, &node->parameter[node->parameter_count++]);
    if (!good)
      return false;
  }
  return known;
}

// cuDNN writes the bytes of a number of any type as if they were a double's.
static bool number_convert(int64_t type, double *io_number) {
  int64_t bits;
  int32_t half;
  float single;
  memcpy(&bits, io_number, sizeof bits);
  half = (int32_t)(bits & 0xffffffff);
  memcpy(&single, &half, sizeof single);
  switch (type) {
  case CUDNN_TYPE_FLOAT:
    *io_number = single;
    return true;
  case CUDNN_TYPE_INT64:
    *io_number = (double)bits;
    return true;
  case CUDNN_TYPE_INT32:
    *io_number = half;
    return true;
  }
  return type == CUDNN_TYPE_DOUBLE;
}

// Numbers whose type is told by another member become doubles.
static bool typed_read(const sdg_json_t *object, sdg_graph_node_t *node) {
  for (int i = 0; i < sdg_graph_key_count; i++) {
    const sdg_graph_key_t *key = &sdg_graph_keys[i];
    const sdg_json_t *told = sdg_json_get(object, key->key);
    int64_t type;
    if (key->kind != node->kind || key->type != SDG_GRAPH_KEY_TYPE || !told)
      continue;
    if (!enumerator_get(SDG_GRAPH_KEY_TYPE, told, &type))
      return false;
    for (int k = 0; k < node->parameter_count; k++)
      if (node->parameter[k].name == key->attribute &&
          !number_convert(type, &node->parameter[k].value[0].real))
        return false;
  }
  return true;
}

static bool node_read(const sdg_graph_t *graph, const sdg_json_t *object,
                      sdg_graph_node_t *node) {
  int64_t kind;
  if (!enumerator_get(SDG_GRAPH_KEY_OPERATION,
                      sdg_json_get(object, "operation"), &kind))
    return false;
  node->kind = (cudnnBackendDescriptorType_t)kind;
  // A member has two rows at most, or a list of operands.
  size_t room = 2 * object->count + 1;
  for (const sdg_json_t *value = object->first; value; value = value->next)
    room += sdg_json_is(value, SDG_JSON_ARRAY) ? value->count : 0;
  node->operand = calloc(room, sizeof *node->operand);
  node->parameter = calloc(room, sizeof *node->parameter);
  if (!node->operand || !node->parameter)
    return false;
  for (const sdg_json_t *value = object->first; value; value = value->next)
    if (strcmp(value->key, "operation") != 0 &&
        !member_read(graph, value->key, value, node))
      return false;
  return typed_read(object, node);
}

static bool nodes_read(const sdg_json_t *list, sdg_graph_t *graph) {
  if (!sdg_json_is(list, SDG_JSON_ARRAY))
    return false;
  graph->node = calloc(list->count + 1, sizeof *graph->node);
  for (const sdg_json_t *node = list->first; graph->node && node;
       node = node->next)
    if (!node_read(graph, node, &graph->node[graph->node_count++]))
      return false;
  return graph->node && list->count > 0;
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

static bool engine_read(const sdg_json_t *object, sdg_graph_config_t *out) {
  const sdg_json_t *id = sdg_json_get(object, "engineId");
  const sdg_json_t *knobs = sdg_json_get(object, "knobChoices");
  if (!sdg_json_is(id, SDG_JSON_INTEGER) ||
      (knobs && knobs->count > SDG_GRAPH_KNOBS))
    return false;
  *out = (sdg_graph_config_t){.engine = sdg_json_integer(id)};
  for (const sdg_json_t *value = knobs ? knobs->first : NULL; value;
       value = value->next) {
    int64_t type;
    if (!value->key ||
        !sdg_graph_name_find(SDG_GRAPH_KEY_KNOB_TYPE, value->key, &type))
      return false;
    out->knob[out->knob_count++] = (sdg_graph_knob_t){
        (cudnnBackendKnobType_t)type, sdg_json_integer(value)};
  }
  return true;
}

static bool plan_read(const sdg_json_t *plan, sdg_graph_t *graph,
                      sdg_graph_config_t *out_config) {
  const sdg_json_t *operations = sdg_json_get(plan, "operationGraph");
  return sdg_json_integer(sdg_json_get(plan, "schemaVersion")) ==
             SDG_GRAPH_SCHEMA &&
         tensors_read(sdg_json_get(operations, "tensors"), graph) &&
         nodes_read(sdg_json_get(operations, "nodes"), graph) &&
         nodes_complete(graph) && sdg_graph_sort(graph) &&
         engine_read(sdg_json_get(plan, "engine"), out_config);
}

sdg_graph_reading_t sdg_graph_read(const char *text, int64_t length,
                                   sdg_graph_t **out_graph,
                                   sdg_graph_config_t *out_config) {
  while (length > 0 && text[length - 1] == '\0')
    length--;
  sdg_json_t *plan = sdg_json_read(text, (size_t)length);
  sdg_graph_t *graph = calloc(1, sizeof *graph);
  if (!plan || !graph) {
    sdg_json_free(plan);
    free(graph);
    return SDG_GRAPH_NO_JSON;
  }
  graph->references = 1;
  bool good = plan_read(plan, graph, out_config);
  sdg_json_free(plan);
  if (!good) {
    sdg_graph_release(graph);
    return SDG_GRAPH_UNKNOWN;
  }
  *out_graph = graph;
  return SDG_GRAPH_READ;
}
