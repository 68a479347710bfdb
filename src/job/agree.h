/* SPDX-License-Identifier: Apache-2.0 */
/* Agreements: before a call, the ranks exchange descriptions of its operands
 * and compare them. Each descriptor then keeps the local extents of all
 * ranks. */
#ifndef SDG_SRC_JOB_AGREE_H
#define SDG_SRC_JOB_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/job/details.h"

/* Returns true if a descriptor of the call has a generation that no agreement
 * has seen. If all ranks run the same program, all get the same answer. */
bool sdg_agree_needed(const sdg_call_t *call);

/* A number of what the user asked for. Ranks whose numbers differ fail at their
 * next agreement. */
void sdg_agree_set_rules(uint64_t digest);

enum { SDG_AGREE_SIZES = 2 * SDG_DIMS_MAX + 2 };

/* Carries out one exchange for the whole call, collective over
 * sdg_job_group(). `parameters` is the op's parameters as text, compared
 * literally. `sizes` are `count` numbers of the op, at most SDG_AGREE_SIZES,
 * that may differ between ranks as extents do. `details` are further numbers
 * of each operand, or NULL; if any rank has some, more exchanges follow. On
 * success every descriptor of the call has its vector (sdg_tag_vector):
 * tensors the extents, the op's descriptor the sizes; and what work costs is
 * settled for the group (src/job/cost.h). Errors are the same on
 * every rank and come before anything is enqueued: SDG_E_DIVERGED if the ranks
 * are at different calls (breaks the job), SDG_E_DISAGREE if their rules differ
 * (sdg_agree_set_rules), or the same call differs in types, layouts, parameters
 * or extents that must be equal; and the errors of sdg_control_exchange.
 * out_wait_ns: time in the exchange. */
sdg_status_t sdg_agree(const sdg_call_t *call, const char *parameters,
                       const int64_t *sizes, int count,
                       const sdg_details_t *details,
                       int64_t *out_wait_ns) SDG_MUST_CHECK;

#endif
