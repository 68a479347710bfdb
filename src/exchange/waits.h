/* SPDX-License-Identifier: Apache-2.0 */
/* How long the program's stream stands still for transfers, by pairs of timing
 * events around the point where it waits. Only where SUNDOG_WAITS asks. */
#ifndef SDG_SRC_EXCHANGE_WAITS_H
#define SDG_SRC_EXCHANGE_WAITS_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/observe/report.h"

/* Around a wait of `stream` for other ranks, its own or for the communication
 * stream, for calls of kind `row`. Results are added to the row when later
 * calls find them ready, so the last few calls of a run may be missing. */
sdg_status_t sdg_waits_begin(sdg_report_row_t *row,
                             cudaStream_t stream) SDG_MUST_CHECK;
sdg_status_t sdg_waits_end(cudaStream_t stream) SDG_MUST_CHECK;

/* The device is about to be reset (src/exchange/exchange.h). */
void sdg_waits_forget(void);

#endif
