/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks have to tell each other of a call's operands beside their extents:
 * a list of numbers of each, as long as it may be. */
#ifndef SDG_SRC_JOB_DETAILS_H
#define SDG_SRC_JOB_DETAILS_H

#include "src/base/status.h"
#include "src/call/call.h"

enum { SDG_DETAILS_MAX = 1 << 24 }; /* numbers of one operand */

/* This rank's. */
typedef struct sdg_details {
  int count[SDG_OPERANDS_MAX];
  const int *number[SDG_OPERANDS_MAX];
} sdg_details_t;

/* Which ranks have how many: of sdg_job_group(), in its order. */
typedef struct sdg_detail_counts {
  int of[SDG_OPERANDS_MAX];
} sdg_detail_counts_t;

/* Keeps every rank's lists with the descriptors, whose vectors are stored
 * (sdg_tag_set_details). `counts` is what all ranks know of each other: part of
 * the agreement on this call. Collective over sdg_job_group(), if any rank has
 * numbers. Errors: SDG_E_MESSAGE, SDG_E_DIVERGED, which break the job; those of
 * sdg_control_exchange. */
sdg_status_t
sdg_details_exchange(const sdg_call_t *call, const sdg_details_t *mine,
                     const sdg_detail_counts_t *counts) SDG_MUST_CHECK;

#endif
