/* SPDX-License-Identifier: Apache-2.0 */
/* Makes descriptors of cuDNN's backend API. After a failure the functions do
 * nothing, so that only the end has to look at it. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_DESCRIPTORS_H
#define SDG_RULES_GRAPH_DESCRIPTORS_H

#include "rules/vendor/vendor.h"
#include "src/graph/graph.h"

typedef struct sdg_graph_descriptors {
  const sdg_cudnn_t *cudnn;
  cudnnHandle_t handle;
  cudnnStatus_t status; /* of the first call that failed */
  int count, room;
  cudnnBackendDescriptor_t *made; /* owned */
} sdg_graph_descriptors_t;

/* NULL after a failure. */
cudnnBackendDescriptor_t sdg_graph_make(sdg_graph_descriptors_t *maker,
                                        cudnnBackendDescriptorType_t kind);
void sdg_graph_set(sdg_graph_descriptors_t *maker,
                   cudnnBackendDescriptor_t descriptor,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count,
                   const void *element);
void sdg_graph_finalize(sdg_graph_descriptors_t *maker,
                        cudnnBackendDescriptor_t descriptor);
/* Destroys all descriptors but `kept` (may be NULL); an attribute keeps those
 * that it refers to. */
void sdg_graph_descriptors_fini(sdg_graph_descriptors_t *maker,
                                cudnnBackendDescriptor_t kept);

/* A finalized plan for `graph` by the engine and knobs of the plan `like`, or,
 * if they do not take it, by the first configuration of the heuristics (modes A
 * and FALLBACK) whose numerical notes that engine has, too. With `config` the
 * engine and the knobs are these, whatever `like` is. */
cudnnBackendDescriptor_t sdg_graph_plan_like(sdg_graph_descriptors_t *maker,
                                             cudnnBackendDescriptor_t graph,
                                             cudnnBackendDescriptor_t like,
                                             const sdg_graph_config_t *config,
                                             int64_t *out_workspace_bytes);

#endif
