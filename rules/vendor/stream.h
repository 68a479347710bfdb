/* SPDX-License-Identifier: Apache-2.0 */
/* The stream that a call is on. Inside rules/ only. */
#ifndef SDG_RULES_VENDOR_STREAM_H
#define SDG_RULES_VENDOR_STREAM_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/call/call.h"

/* The stream of the call's handle, and whether it is being captured. */
sdg_status_t sdg_stream_state(const sdg_call_t *call, cudaStream_t *out_stream,
                              bool *out_capturing) SDG_MUST_CHECK;
/* The stream of the call's handle, which must not be capturing:
 * SDG_E_CAPTURE. */
sdg_status_t sdg_stream_of(const sdg_call_t *call,
                           cudaStream_t *out_stream) SDG_MUST_CHECK;

#endif
