/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that put together a tensor in scratch out of a rank's own rows and of
 * messages. Inside rules/ only. */
#ifndef SDG_RULES_KIT_ASSEMBLE_H
#define SDG_RULES_KIT_ASSEMBLE_H

#include "src/plan/plan.h"

/* What this rank has: rows of slab `to` outside `domain` (in its coordinates)
 * become zero, and those that the transfer finds here are copied from slab
 * `from`, wrapped images included. */
sdg_status_t sdg_assemble_own(sdg_plan_t *plan, const sdg_transfer_t *transfer,
                              const sdg_box_t *domain, int from, int to,
                              sdg_copy_kind_t kind) SDG_MUST_CHECK;
/* What has been received: message[i] is the slab of transfer->recv[i], or -1
 * where it arrived in place (sdg_plan_messages). */
sdg_status_t sdg_assemble_received(sdg_plan_t *plan,
                                   const sdg_transfer_t *transfer,
                                   const int *message, int to) SDG_MUST_CHECK;

#endif
