/* SPDX-License-Identifier: Apache-2.0 */
/* Which graphs with a normalisation an engine of cuDNN takes. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_NORMS_H
#define SDG_SRC_HOST_CUDNN_PLAN_NORMS_H

#include "src/host/cudnn/plan/facts.h"

/* The rule that the graph breaks, a sentence for the log; NULL if it breaks
 * none, or has no normalisation. */
const char *host_norms_refuse(const host_facts_t *facts);

#endif
