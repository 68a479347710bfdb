/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, heuristics, engines, their configurations, and plans: what
 * finalizing makes of them. */
#ifndef SDG_SRC_HOST_CUDNN_BACKEND_ENGINE_H
#define SDG_SRC_HOST_CUDNN_BACKEND_ENGINE_H

#include "src/host/cudnn/backend/object.h"
#include "src/host/cudnn/plan/plan.h"

cudnnStatus_t host_finalize_device(host_object_t *device);
cudnnStatus_t host_finalize_heuristic(host_object_t *heuristic);
cudnnStatus_t host_finalize_engine(host_object_t *engine);
cudnnStatus_t host_finalize_config(host_object_t *config);
cudnnStatus_t host_finalize_plan(host_object_t *plan);

/* The description of a device as JSON, to be freed; NULL when memory is short.
 */
char *host_device_text(int device);

/* A finalized configuration, with its engine, of the finalized descriptor of a
 * graph. */
cudnnStatus_t host_config_create(host_object_t *graph,
                                 const sdg_graph_config_t *config,
                                 host_object_t **out);
/* Engine and knobs of an ENGINECFG descriptor; its graph is *out_graph, which
 * is borrowed. */
cudnnStatus_t host_config_read(host_object_t *config, sdg_graph_config_t *out,
                               sdg_graph_t **out_graph);

/* Text as one string, to be freed; NULL when memory is short. */
char *host_value_text(const host_value_t *value);
/* INTERNAL_ERROR_HOST_ALLOCATION_FAILED if `text` is NULL. */
cudnnStatus_t host_value_put_text(host_value_t *value, const char *text);

#endif
