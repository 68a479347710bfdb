/* SPDX-License-Identifier: Apache-2.0 */
/* Measures with pairs of timing events what the streams of a call do: how long
 * the program's stream waits for transfers (SUNDOG_WAITS, SUNDOG_RECORD), and
 * when transfers, sums, copies and the real function run (SUNDOG_RECORD). */
#ifndef SDG_SRC_EXCHANGE_PHASES_H
#define SDG_SRC_EXCHANGE_PHASES_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/observe/phase_record.h"
#include "src/observe/report.h"

/* Returns true if an option asks for such times. */
bool sdg_phases_wanted(void);

/* Begin and end enclose a phase of `stream` of a call of kind `row`; phases may
 * nest. *out_phase is what sdg_phase_end takes; -1: it is not timed. Results
 * are recorded when later phases find them ready, and at exit. The last ones
 * are missing if the program has not waited for them, or ends in another
 * thread. Waits are added to the row. */
sdg_status_t sdg_phase_begin(sdg_report_row_t *row, sdg_phase_t kind,
                             cudaStream_t stream,
                             int *out_phase) SDG_MUST_CHECK;
sdg_status_t sdg_phase_end(int phase, cudaStream_t stream) SDG_MUST_CHECK;

/* Call if a stream is made to wait outside a phase: what comes next on it does
 * not begin where the last phase ended. */
void sdg_phases_part(cudaStream_t stream);

/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_phases_forget(void);

#endif
