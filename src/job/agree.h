/* SPDX-License-Identifier: Apache-2.0 */
/* Agreements: the ranks tell each other what they are about to use, compare it,
 * and keep all ranks' local extents with the descriptors. */
#ifndef SDG_SRC_JOB_AGREE_H
#define SDG_SRC_JOB_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/job/details.h"

/* True if a descriptor of the call has a generation that no agreement has
 * seen. The same on all ranks of a program that is the same on all ranks. */
bool sdg_agree_needed(const sdg_call_t *call);

enum { SDG_AGREE_SIZES = 2 * SDG_DIMS_MAX + 2 };

/* One exchange for the whole call, collective over sdg_job_group().
 * `parameters` is the op's parameters as text, compared literally; `sizes` are
 * `count` numbers of the op, at most SDG_AGREE_SIZES, that may differ as
 * extents do; `details` more of that of each operand, or NULL, for which there
 * are more exchanges where any rank has some. On success every descriptor of
 * the call has its vector (sdg_tag_vector): of extents, the op's of sizes.
 * Errors, on every rank alike and before anything is enqueued: SDG_E_DIVERGED
 * when the ranks are at different calls (breaks the job), SDG_E_DISAGREE when
 * the same call differs in types, layouts, parameters or extents that must be
 * equal; those of sdg_control_exchange. out_wait_ns: time in the exchange. */
sdg_status_t sdg_agree(const sdg_call_t *call, const char *parameters,
                       const int64_t *sizes, int count,
                       const sdg_details_t *details,
                       int64_t *out_wait_ns) SDG_MUST_CHECK;

#endif
