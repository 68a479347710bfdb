/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out plans of a rank by itself, without job, messages or a thread of
 * it: for calls of sundog's own in programs that asked for no split. */
#ifndef SDG_SRC_EXCHANGE_ALONE_H
#define SDG_SRC_EXCHANGE_ALONE_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/plan/plan.h"

/* Enqueues the sub-calls of a plan that has no other steps but joins; does not
 * wait. Scratch is taken and given back in the stream's order. *out_vendor: the
 * vendor's status of the first sub-call that failed, 0 if none did; those after
 * it are left out. Any thread, one plan by one thread at a time.
 * SDG_E_DEVICE_MEMORY, SDG_E_CAPTURE, SDG_E_INTERNAL. */
sdg_status_t sdg_alone_run(const sdg_plan_t *plan, const sdg_call_t *call,
                           cudaStream_t stream, int *out_vendor) SDG_MUST_CHECK;

#endif
