/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that watches transfers in flight: a peer's death or a stall ends
 * in an abort and an error, never in a hang. */
#ifndef SDG_SRC_WATCH_H
#define SDG_SRC_WATCH_H

#include <cuda_runtime_api.h>

#include "src/status.h"

/* Starts the thread; once per job. */
sdg_status_t sdg_watch_start(double timeout_s) SDG_MUST_CHECK;

/* The calling thread enqueued a transfer on `stream`, always the same of it,
 * for the call `entry` (a string constant): it is watched until it has ended.
 * Cheap while an earlier one is in flight: then the thread turns to this one
 * when that has ended. */
sdg_status_t sdg_watch_transfer(cudaStream_t stream,
                                const char *entry) SDG_MUST_CHECK;

/* The device, of which no transfer is in flight, is about to be reset
 * (src/forget.h). */
void sdg_watch_forget(void);

/* Ends the thread: before the process exits. */
void sdg_watch_stop(void);

#endif
