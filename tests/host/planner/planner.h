/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's planner on a machine without a GPU: whether an engine of its
 * libcudnn.so.9 takes an operation graph on a device that is described in
 * words. One thread. */
#ifndef SDG_TESTS_HOST_PLANNER_PLANNER_H
#define SDG_TESTS_HOST_PLANNER_PLANNER_H

#include "src/graph/graph.h"

typedef enum {
  PLANNER_H100,
  PLANNER_A100,
  PLANNER_B200,
  PLANNER_DEVICES
} planner_device_t;

/* As the device is called in outputs. */
const char *planner_device_name(planner_device_t device);

/* Opens NVIDIA's library; false, with a line on stderr, if it cannot be. */
bool planner_open(const char *path);

typedef struct planner_graph planner_graph_t;

/* The graph in descriptors of NVIDIA's; NULL if they cannot be finalized, with
 * the status and the operation's kind. */
planner_graph_t *planner_graph_create(const sdg_graph_t *graph,
                                      cudnnStatus_t *out_status, int *out_kind);
void planner_graph_destroy(planner_graph_t *graph);

/* Whether the heuristics (modes A and FALLBACK) propose a configuration, as
 * they do for graphs that an engine takes. *out: one of them. */
bool planner_graph_proposes(planner_graph_t *graph, planner_device_t device,
                            sdg_graph_config_t *out);
/* The first configuration of these heuristics that makes a plan; false if none
 * does. Compiles kernels, which may take many seconds. */
bool planner_graph_plans(planner_graph_t *graph, planner_device_t device,
                         sdg_graph_config_t *out);
/* Whether this configuration makes a plan. */
bool planner_graph_takes(planner_graph_t *graph, planner_device_t device,
                         const sdg_graph_config_t *config);

#endif
