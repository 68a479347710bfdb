// SPDX-License-Identifier: Apache-2.0
// A table of shadows by the addresses of descriptors.
#include "interpose/graph/shadow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// If memory is short, uthash leaves the element out and does not exit.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "interpose/graph/build.h"
#include "rules/graph/chain/clock.h"
#include "src/call/tag.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sdg_shadow_t *shadows; // by address

// ---- life ------------------------------------------------------------------

static void release(sdg_shadow_t *shadow);

static void value_clear(sdg_shadow_value_t *value) {
  for (int64_t i = 0; value->shadow && i < value->count; i++)
    release(value->shadow[i]);
  free(value->shadow);
  free(value->data);
  value->shadow = NULL;
  value->data = NULL;
  value->count = 0;
}

static void release(sdg_shadow_t *shadow) {
  if (!shadow || --shadow->references > 0)
    return;
  for (int i = 0; i < shadow->values; i++)
    value_clear(&shadow->value[i]);
  free(shadow->value);
  sdg_graph_pattern_release(shadow->pattern);
  free(shadow->config);
  free(shadow);
}

static sdg_shadow_t *find(const void *descriptor) {
  sdg_shadow_t *shadow;
  HASH_FIND_PTR(shadows, &descriptor, shadow);
  return shadow;
}

static void drop(const void *descriptor) {
  sdg_shadow_t *shadow = find(descriptor);
  if (!shadow)
    return;
  HASH_DEL(shadows, shadow);
  release(shadow);
}

void sdg_shadow_created(const void *descriptor,
                        cudnnBackendDescriptorType_t kind) {
  sdg_shadow_t *shadow = calloc(1, sizeof *shadow);
  pthread_mutex_lock(&lock);
  drop(descriptor);
  if (shadow) {
    shadow->key = descriptor;
    shadow->kind = kind;
    shadow->references = 1;
    HASH_ADD_PTR(shadows, key, shadow);
    if (!shadow->hh.tbl)
      release(shadow);
  }
  pthread_mutex_unlock(&lock);
}

void sdg_shadow_destroyed(const void *descriptor) {
  pthread_mutex_lock(&lock);
  drop(descriptor);
  pthread_mutex_unlock(&lock);
  sdg_tag_forget(descriptor);
}

// ---- attributes ------------------------------------------------------------

size_t sdg_shadow_value_bytes(cudnnBackendAttributeType_t type) {
  switch ((int)type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return sizeof(void *);
  case CUDNN_TYPE_INT64:
    return sizeof(int64_t);
  case CUDNN_TYPE_DOUBLE:
    return sizeof(double);
  case CUDNN_TYPE_FRACTION:
    return sizeof(cudnnFraction_t);
  case CUDNN_TYPE_BOOLEAN:
    return sizeof(bool);
  case CUDNN_TYPE_CHAR:
    return 1;
  }
  return sizeof(int32_t); // float, int32 and enumerations
}

const sdg_shadow_value_t *sdg_shadow_value(const sdg_shadow_t *shadow,
                                           cudnnBackendAttributeName_t name) {
  for (int i = 0; i < shadow->values; i++)
    if (shadow->value[i].name == name)
      return &shadow->value[i];
  return NULL;
}

const sdg_shadow_t *sdg_shadow_child(const sdg_shadow_t *shadow,
                                     cudnnBackendAttributeName_t name) {
  const sdg_shadow_value_t *value = sdg_shadow_value(shadow, name);
  return value && value->shadow && value->count > 0 ? value->shadow[0] : NULL;
}

// The value of an attribute, emptied, or a new one; NULL: memory is short.
static sdg_shadow_value_t *value_open(sdg_shadow_t *shadow,
                                      cudnnBackendAttributeName_t name) {
  for (int i = 0; i < shadow->values; i++)
    if (shadow->value[i].name == name) {
      value_clear(&shadow->value[i]);
      return &shadow->value[i];
    }
  sdg_shadow_value_t *more =
      realloc(shadow->value, ((size_t)shadow->values + 1) * sizeof *more);
  if (!more)
    return NULL;
  shadow->value = more;
  more += shadow->values++;
  *more = (sdg_shadow_value_t){.name = name};
  return more;
}

// Descriptors without a shadow leave NULL.
static void value_fill(sdg_shadow_value_t *value,
                       cudnnBackendAttributeType_t type, int64_t count,
                       const void *element) {
  size_t bytes = sdg_shadow_value_bytes(type) * (size_t)count;
  value->type = type;
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    value->data = malloc(bytes + 1);
    if (value->data)
      memcpy(value->data, element, bytes);
    value->count = value->data ? count : 0;
    return;
  }
  const cudnnBackendDescriptor_t *descriptor = element;
  value->shadow = calloc((size_t)count + 1, sizeof(void *));
  for (int64_t i = 0; value->shadow && i < count; i++) {
    value->shadow[i] = find(descriptor[i]);
    if (value->shadow[i])
      value->shadow[i]->references++;
  }
  value->count = value->shadow ? count : 0;
}

void sdg_shadow_set(const void *descriptor, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *element) {
  pthread_mutex_lock(&lock);
  sdg_shadow_t *shadow = find(descriptor);
  sdg_shadow_value_t *value = shadow && count >= 0 && (element || count == 0)
                                  ? value_open(shadow, name)
                                  : NULL;
  if (value && count > 0)
    value_fill(value, type, count, element);
  pthread_mutex_unlock(&lock);
}

// ---- graphs ----------------------------------------------------------------

// The descriptor by which another one belongs to a graph.
static const sdg_shadow_t *origin(const sdg_shadow_t *shadow) {
  switch ((int)shadow->kind) {
  case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    return sdg_shadow_child(shadow, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    return sdg_shadow_child(shadow, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    return sdg_shadow_child(shadow, CUDNN_ATTR_ENGINECFG_ENGINE);
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    return sdg_shadow_child(shadow, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  }
  return NULL;
}

static void pattern_set(sdg_shadow_t *shadow, sdg_graph_pattern_t *pattern) {
  sdg_graph_pattern_retain(pattern);
  sdg_graph_pattern_release(shadow->pattern);
  shadow->pattern = pattern;
}

// A plan that the program has set as JSON never had a graph's descriptor.
static void plan_read(sdg_shadow_t *shadow) {
  const sdg_shadow_value_t *text =
      sdg_shadow_value(shadow, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  sdg_graph_t *graph = NULL;
  if (!text || !text->data)
    return;
  shadow->config = calloc(1, sizeof *shadow->config);
  if (shadow->config && sdg_graph_read(text->data, text->count, &graph,
                                       shadow->config) == SDG_GRAPH_READ)
    shadow->pattern = sdg_graph_pattern_create(graph);
  sdg_graph_release(graph);
}

void sdg_shadow_finalized(const void *descriptor) {
  pthread_mutex_lock(&lock);
  sdg_shadow_t *shadow = find(descriptor);
  const sdg_shadow_t *from = shadow ? origin(shadow) : NULL;
  if (from)
    pattern_set(shadow, from->pattern);
  if (shadow && shadow->kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    sdg_graph_t *graph = sdg_shadow_graph(shadow);
    if (graph)
      shadow->pattern = sdg_graph_pattern_create(graph);
    sdg_graph_release(graph);
  }
  bool plan = shadow && shadow->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  if (plan)
    sdg_graph_clock_plan_made(shadow->pattern);
  if (plan && !from)
    plan_read(shadow);
  pthread_mutex_unlock(&lock);
  if (plan)
    sdg_tag_touch(descriptor);
}

void sdg_shadow_read(const void *descriptor, int64_t count,
                     const cudnnBackendDescriptor_t *filled) {
  pthread_mutex_lock(&lock);
  const sdg_shadow_t *from = find(descriptor);
  for (int64_t i = 0; from && from->pattern && i < count; i++) {
    sdg_shadow_t *shadow = find(filled[i]);
    if (shadow)
      pattern_set(shadow, from->pattern);
  }
  pthread_mutex_unlock(&lock);
}

// ---- executions ------------------------------------------------------------

static void pointers_get(const sdg_shadow_t *pack, const sdg_graph_t *graph,
                         sdg_graph_execution_t *out) {
  const sdg_shadow_value_t *uids =
      sdg_shadow_value(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const sdg_shadow_value_t *pointers =
      sdg_shadow_value(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const sdg_shadow_value_t *workspace =
      sdg_shadow_value(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  for (int64_t i = 0;
       uids && pointers && i < uids->count && i < pointers->count; i++) {
    int t = sdg_graph_find(graph, ((const int64_t *)uids->data)[i]);
    if (t >= 0 && t < SDG_GRAPH_TENSORS_MAX)
      out->pointer[t] = ((void *const *)pointers->data)[i];
  }
  if (workspace && workspace->count > 0)
    memcpy(&out->workspace, workspace->data, sizeof out->workspace);
  const sdg_shadow_value_t *override =
      sdg_shadow_value(pack, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS);
  out->overrides = override && override->count > 0;
}

bool sdg_shadow_use(const void *plan, const void *pack,
                    sdg_graph_execution_t *out) {
  memset(out, 0, sizeof *out);
  pthread_mutex_lock(&lock);
  const sdg_shadow_t *of_plan = find(plan), *of_pack = find(pack);
  bool known = of_plan && of_plan->pattern && of_pack;
  if (known) {
    out->pattern = sdg_graph_pattern_retain(of_plan->pattern);
    out->plan = (cudnnBackendDescriptor_t)(uintptr_t)plan;
    out->pack = (cudnnBackendDescriptor_t)(uintptr_t)pack;
    out->plan_generation = sdg_tag_generation(plan);
    out->config = of_plan->config;
    pointers_get(of_pack, out->pattern->graph, out);
  }
  pthread_mutex_unlock(&lock);
  return known;
}
