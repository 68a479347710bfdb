// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuDNN's backend API, and the choice of an engine.
#include "rules/graph/descriptors.h"

#include <stdlib.h>

typedef sdg_graph_descriptors_t maker_t;
typedef cudnnBackendDescriptor_t descriptor_t;

enum { NOTES_MAX = 32, CONFIGS_MAX = 64 };

// ---- descriptors -----------------------------------------------------------

descriptor_t sdg_graph_make(maker_t *m, cudnnBackendDescriptorType_t kind) {
  descriptor_t made = NULL;
  if (m->count == m->room && !m->status) {
    int room = m->room ? 2 * m->room : 64;
    descriptor_t *more = realloc(m->made, (size_t)room * sizeof *more);
    if (!more) {
      m->status = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
      return NULL;
    }
    m->made = more;
    m->room = room;
  }
  if (!m->status)
    m->status = m->cudnn->cudnnBackendCreateDescriptor(kind, &made);
  if (m->status)
    return NULL;
  m->made[m->count++] = made;
  return made;
}

void sdg_graph_set(maker_t *m, descriptor_t descriptor,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count,
                   const void *element) {
  if (!m->status)
    m->status = m->cudnn->cudnnBackendSetAttribute(descriptor, name, type,
                                                   count, element);
}

void sdg_graph_finalize(maker_t *m, descriptor_t descriptor) {
  if (!m->status)
    m->status = m->cudnn->cudnnBackendFinalize(descriptor);
}

void sdg_graph_descriptors_fini(maker_t *m, descriptor_t kept) {
  for (int i = m->count; i-- > 0;)
    if (m->made[i] != kept)
      (void)m->cudnn->cudnnBackendDestroyDescriptor(m->made[i]);
  free(m->made);
}

// Reads up to `room` values; returns how many there are, 0 after a failure.
static int64_t get(maker_t *m, descriptor_t descriptor,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t room, void *out) {
  int64_t count = 0;
  if (m->status)
    return 0;
  m->status = m->cudnn->cudnnBackendGetAttribute(descriptor, name, type, room,
                                                 &count, out);
  return m->status ? 0 : count < room ? count : room;
}

// Reads the descriptor that an attribute refers to.
static descriptor_t child(maker_t *m, descriptor_t descriptor,
                          cudnnBackendAttributeName_t name,
                          cudnnBackendDescriptorType_t kind) {
  descriptor_t out = sdg_graph_make(m, kind);
  (void)get(m, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &out);
  return out;
}

// ---- configurations --------------------------------------------------------

// The engine and knobs of a plan.
static void config_read(maker_t *m, descriptor_t plan,
                        sdg_graph_config_t *out) {
  descriptor_t knob[SDG_GRAPH_KNOBS];
  descriptor_t config = child(m, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                              CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  descriptor_t engine = child(m, config, CUDNN_ATTR_ENGINECFG_ENGINE,
                              CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  out->engine = 0;
  (void)get(m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
            &out->engine);
  for (int i = 0; i < SDG_GRAPH_KNOBS; i++)
    knob[i] = sdg_graph_make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  out->knob_count =
      (int)get(m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
               CUDNN_TYPE_BACKEND_DESCRIPTOR, SDG_GRAPH_KNOBS, knob);
  for (int i = 0; i < out->knob_count; i++) {
    (void)get(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
              CUDNN_TYPE_KNOB_TYPE, 1, &out->knob[i].type);
    (void)get(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
              1, &out->knob[i].value);
  }
}

static descriptor_t engine_make(maker_t *m, descriptor_t graph, int64_t index) {
  descriptor_t engine = sdg_graph_make(m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  sdg_graph_set(m, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
  sdg_graph_set(m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                &index);
  sdg_graph_finalize(m, engine);
  return engine;
}

static descriptor_t config_make(maker_t *m, descriptor_t engine,
                                const sdg_graph_config_t *config) {
  descriptor_t knob[SDG_GRAPH_KNOBS];
  for (int i = 0; i < config->knob_count; i++) {
    knob[i] = sdg_graph_make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    sdg_graph_set(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                  CUDNN_TYPE_KNOB_TYPE, 1, &config->knob[i].type);
    sdg_graph_set(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                  CUDNN_TYPE_INT64, 1, &config->knob[i].value);
    sdg_graph_finalize(m, knob[i]);
  }
  descriptor_t made = sdg_graph_make(m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  sdg_graph_set(m, made, CUDNN_ATTR_ENGINECFG_ENGINE,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
  if (config->knob_count > 0)
    sdg_graph_set(m, made, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                  CUDNN_TYPE_BACKEND_DESCRIPTOR, config->knob_count, knob);
  sdg_graph_finalize(m, made);
  return made;
}

static descriptor_t plan_make(maker_t *m, descriptor_t config,
                              int64_t *out_bytes) {
  descriptor_t plan =
      sdg_graph_make(m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  sdg_graph_set(m, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                &m->handle);
  sdg_graph_set(m, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
  sdg_graph_finalize(m, plan);
  (void)get(m, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
            1, out_bytes);
  return m->status ? NULL : plan;
}

// ---- numerical notes -------------------------------------------------------

typedef struct notes {
  int64_t count; // -1: not known, any are allowed
  cudnnBackendNumericalNote_t note[NOTES_MAX];
} notes_t;

static void notes_get(maker_t *m, descriptor_t engine, notes_t *out) {
  out->count = get(m, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                   CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, out->note);
}

static bool notes_within(const notes_t *notes, const notes_t *allowed) {
  for (int64_t i = 0; allowed->count >= 0 && i < notes->count; i++) {
    int64_t k = 0;
    while (k < allowed->count && allowed->note[k] != notes->note[i])
      k++;
    if (k == allowed->count)
      return false;
  }
  return true;
}

// ---- plans -----------------------------------------------------------------

// Begins again after a failure that is no failure of the whole.
static void forgive(maker_t *m) {
  if (m->status != CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
    m->status = CUDNN_STATUS_SUCCESS;
}

// The first config of a heuristic that takes the graph.
static descriptor_t heuristic_try(maker_t *m, descriptor_t graph,
                                  cudnnBackendHeurMode_t mode,
                                  const notes_t *allowed, int64_t *out_bytes) {
  descriptor_t config[CONFIGS_MAX], plan = NULL;
  descriptor_t heuristic =
      sdg_graph_make(m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  sdg_graph_set(m, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
  sdg_graph_set(m, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                1, &mode);
  sdg_graph_finalize(m, heuristic);
  for (int i = 0; i < CONFIGS_MAX; i++)
    config[i] = sdg_graph_make(m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  int64_t configs = get(m, heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, config);
  for (int64_t i = 0; i < configs && !plan; i++) {
    notes_t notes;
    forgive(m);
    notes_get(m,
              child(m, config[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                    CUDNN_BACKEND_ENGINE_DESCRIPTOR),
              &notes);
    if (!m->status && notes_within(&notes, allowed))
      plan = plan_make(m, config[i], out_bytes);
  }
  return plan;
}

descriptor_t sdg_graph_plan_like(maker_t *m, descriptor_t graph,
                                 descriptor_t like,
                                 const sdg_graph_config_t *config,
                                 int64_t *out_bytes) {
  static const cudnnBackendHeurMode_t mode[] = {CUDNN_HEUR_MODE_A,
                                                CUDNN_HEUR_MODE_FALLBACK};
  sdg_graph_config_t own;
  notes_t allowed;
  if (m->status) // no such graph
    return NULL;
  if (!config)
    config_read(m, like, &own);
  descriptor_t engine =
      engine_make(m, graph, config ? config->engine : own.engine);
  notes_get(m, engine, &allowed);
  if (m->status) // the engine does not say what it may do
    allowed.count = -1;
  descriptor_t plan =
      plan_make(m, config_make(m, engine, config ? config : &own), out_bytes);
  for (int i = 0; i < 2 && !plan; i++) {
    forgive(m);
    plan = heuristic_try(m, graph, mode[i], &allowed, out_bytes);
  }
  if (!plan && !m->status)
    m->status = CUDNN_STATUS_NOT_SUPPORTED;
  return plan;
}
