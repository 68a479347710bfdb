/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, heuristics, engines, their configurations, and plans: what
 * finalizing makes of them. */
#ifndef SDG_SRC_HOST_CUDNN_BACKEND_ENGINE_H
#define SDG_SRC_HOST_CUDNN_BACKEND_ENGINE_H

#include "src/host/cudnn/backend/object.h"

cudnnStatus_t host_finalize_device(host_object_t *device);
cudnnStatus_t host_finalize_heuristic(host_object_t *heuristic);
cudnnStatus_t host_finalize_engine(host_object_t *engine);
cudnnStatus_t host_finalize_config(host_object_t *config);
cudnnStatus_t host_finalize_plan(host_object_t *plan);

#endif
