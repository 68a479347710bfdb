/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges the numbers that ranks need of a call's operands beside their
 * extents: one list of any length per operand. */
#ifndef SDG_SRC_JOB_DETAILS_H
#define SDG_SRC_JOB_DETAILS_H

#include "src/base/status.h"
#include "src/call/call.h"

enum { SDG_DETAILS_MAX = 1 << 24 }; /* most numbers of one operand */

/* This rank's lists. */
typedef struct sdg_details {
  int count[SDG_OPERANDS_MAX];
  const int *number[SDG_OPERANDS_MAX];
} sdg_details_t;

/* The lengths of one rank's lists. Arrays of these have one entry per rank of
 * sdg_job_group(), in its order. */
typedef struct sdg_detail_counts {
  int of[SDG_OPERANDS_MAX];
} sdg_detail_counts_t;

/* Exchanges the lists and stores them with the descriptors, whose vectors are
 * already stored (sdg_tag_set_details). `counts` are the lengths of all ranks'
 * lists, known from the agreement on this call. Collective over
 * sdg_job_group() if any rank has numbers. Errors: SDG_E_MESSAGE and
 * SDG_E_DIVERGED, which break the job; those of sdg_control_exchange. */
sdg_status_t
sdg_details_exchange(const sdg_call_t *call, const sdg_details_t *mine,
                     const sdg_detail_counts_t *counts) SDG_MUST_CHECK;

#endif
