/* SPDX-License-Identifier: Apache-2.0 */
/* What sub-calls may ask their plan while it is being made. Inside rules/
 * only. */
#ifndef SDG_RULES_KIT_SUBCALL_STATE_H
#define SDG_RULES_KIT_SUBCALL_STATE_H

#include "rules/kit/subcall.h"

/* The handle of the call that is being planned, for queries of sizes. */
cudnnHandle_t sdg_subcalls_handle(const sdg_plan_t *plan);

/* Creates a tensor's descriptor. The caller destroys it, also after an error,
 * unless it is NULL. */
sdg_status_t sdg_subcall_describe(const sdg_plan_t *plan,
                                  const sdg_subcall_tensor_t *tensor,
                                  cudnnTensorDescriptor_t *out) SDG_MUST_CHECK;

#endif
