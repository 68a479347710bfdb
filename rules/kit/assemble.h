/* SPDX-License-Identifier: Apache-2.0 */
/* Plan steps that assemble a tensor in scratch from a rank's own rows and from
 * received messages. Inside rules/ only. */
#ifndef SDG_RULES_KIT_ASSEMBLE_H
#define SDG_RULES_KIT_ASSEMBLE_H

#include "src/plan/plan.h"

/* Assembles what this rank has itself. Rows of slab `to` outside `domain` (in
 * the domain's coordinates) become zero. Rows that the transfer finds on this
 * rank are copied from slab `from`, including their wrapped images. */
sdg_status_t sdg_assemble_own(sdg_plan_t *plan, const sdg_transfer_t *transfer,
                              const sdg_box_t *domain, int from, int to,
                              sdg_copy_kind_t kind) SDG_MUST_CHECK;
/* Assembles what was received. message[i] is the slab of transfer->recv[i], or
 * -1 if that message arrived in place (sdg_plan_messages). */
sdg_status_t sdg_assemble_received(sdg_plan_t *plan,
                                   const sdg_transfer_t *transfer,
                                   const int *message, int to) SDG_MUST_CHECK;

#endif
