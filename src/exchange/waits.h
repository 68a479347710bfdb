/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long the program's stream waits for transfers, with a pair of
 * timing events around each wait. Called only if SUNDOG_WAITS is set. */
#ifndef SDG_SRC_EXCHANGE_WAITS_H
#define SDG_SRC_EXCHANGE_WAITS_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/observe/report.h"

/* Begin and end enclose a wait of `stream` for other ranks or for the
 * communication stream, on behalf of calls of kind `row`. Results are added to
 * the row when later calls find them ready, so the last few calls of a run may
 * be missing. */
sdg_status_t sdg_waits_begin(sdg_report_row_t *row,
                             cudaStream_t stream) SDG_MUST_CHECK;
sdg_status_t sdg_waits_end(cudaStream_t stream) SDG_MUST_CHECK;

/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_waits_forget(void);

#endif
