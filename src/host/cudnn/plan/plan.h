/* SPDX-License-Identifier: Apache-2.0 */
/* Engines, their configurations, and plans of operation graphs: what cuDNN's
 * planner answers, as pure functions of the graph. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_PLAN_H
#define SDG_SRC_HOST_CUDNN_PLAN_PLAN_H

#include "src/graph/graph.h"
#include "src/host/cudnn/descriptor/types.h"

enum { HOST_PLAN_KNOBS = 8, HOST_PLAN_NOTES = 8 };

/* What the API tells of an engine for a graph. */
typedef struct {
  int knob_count;
  struct {
    cudnnBackendKnobType_t type;
    int64_t minimum, maximum, stride;
  } knob[HOST_PLAN_KNOBS];
  int numerical_count, behavior_count;
  cudnnBackendNumericalNote_t numerical[HOST_PLAN_NOTES];
  cudnnBackendBehaviorNote_t behavior[HOST_PLAN_NOTES];
} host_engine_t;

/* NULL if an engine of cuDNN 9.19 on an H100 takes the graph, or with
 * SUNDOG_HOST_MODEL=any; else the rule that it breaks, a sentence for the log.
 */
const char *host_plan_refuses(const sdg_graph_t *graph);

/* Appends the graph to the file SUNDOG_HOST_GRAPHS, if that is set: "taken" or
 * the rule that it breaks, a tab, a plan's JSON, a line's end. Nothing for
 * operations that JSON is not written of here. */
void host_plan_record(const sdg_graph_t *graph);

/* The number of engines for the graph; ids are in *out_ids (room for `room`).
 */
int host_plan_engines(const sdg_graph_t *graph, int room, int64_t *out_ids);

/* Describes an engine; false if the graph has no such engine. */
bool host_plan_engine(const sdg_graph_t *graph, int64_t engine,
                      host_engine_t *out);

/* The configurations that a heuristic proposes, best first; returns their
 * number, of which at most `room` are written. */
int host_plan_configs(const sdg_graph_t *graph, cudnnBackendHeurMode_t mode,
                      int room, sdg_graph_config_t *out);

/* NOT_SUPPORTED if the engine does not take the graph or a knob's value is out
 * of range, with the reason in the log. */
cudnnStatus_t host_plan_check(const sdg_graph_t *graph,
                              const sdg_graph_config_t *config);

/* Bytes of workspace that the plan wants. */
int64_t host_plan_workspace(const sdg_graph_t *graph,
                            const sdg_graph_config_t *config);

/* EXECUTION_PLAN_JSON_REPRESENTATION: text with its final NUL, to be freed by
 * the caller; NULL when memory is short. */
char *host_plan_write(const sdg_graph_t *graph,
                      const sdg_graph_config_t *config,
                      const char *device_json);

#endif
