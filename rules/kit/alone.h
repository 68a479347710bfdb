/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out plans that need neither a job nor messages: sundog's own calls
 * in programs that asked for no split. */
#ifndef SDG_RULES_KIT_ALONE_H
#define SDG_RULES_KIT_ALONE_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/plan/plan.h"

/* Enqueues the sub-calls of a plan whose other steps are all joins; does not
 * wait. Scratch is allocated and freed in stream order. *out_vendor: the
 * vendor's status of the first sub-call that failed, 0 if none failed; the
 * sub-calls after it are skipped. Any thread; one thread at a time per plan.
 * SDG_E_DEVICE_MEMORY, SDG_E_CAPTURE, SDG_E_INTERNAL. */
sdg_status_t sdg_alone_run(const sdg_plan_t *plan, const sdg_call_t *call,
                           cudaStream_t stream, int *out_vendor) SDG_MUST_CHECK;

#endif
