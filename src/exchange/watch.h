/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that watches transfers in flight: a peer's death or a stall ends
 * in an abort and an error, never in a hang. */
#ifndef SDG_SRC_EXCHANGE_WATCH_H
#define SDG_SRC_EXCHANGE_WATCH_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"

/* Starts the thread; once per job. */
sdg_status_t sdg_watch_start(double timeout_s) SDG_MUST_CHECK;

/* The calling thread has just enqueued a transfer on `stream` for the call
 * `entry` (a string constant): it is watched until it has ended. Each of a
 * thread's transfers comes after the one before, on whatever stream. While an
 * earlier one is watched, the last one is next. */
sdg_status_t sdg_watch_transfer(cudaStream_t stream,
                                const char *entry) SDG_MUST_CHECK;

/* The device, of which no transfer is in flight, is about to be reset
 * (src/exchange/exchange.h). */
void sdg_watch_forget(void);

/* Ends the thread: before the process exits. */
void sdg_watch_stop(void);

#endif
