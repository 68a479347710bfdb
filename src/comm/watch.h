/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that watches transfers in flight: a peer's death or a stall ends
 * in an abort and an error, not in a hang. */
#ifndef SDG_SRC_COMM_WATCH_H
#define SDG_SRC_COMM_WATCH_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"

/* Starts the thread; call once per job. */
sdg_status_t sdg_watch_start(double timeout_s) SDG_MUST_CHECK;

/* Begin and end enclose the enqueuing of a transfer for the call `entry` (a
 * string constant). In between the calling thread is watched: NCCL should not
 * wait for other ranks there, but may if it has to connect them. After a begin
 * that failed do not call end. */
sdg_status_t sdg_watch_begin(const char *entry) SDG_MUST_CHECK;

/* Returns `status`, that of enqueuing the transfer on `stream`. If it is
 * SDG_OK, the transfer is watched until it has ended. A thread's transfers run
 * one after another, whatever their streams. If an earlier one is being
 * watched, the newest is watched next. */
sdg_status_t sdg_watch_end(sdg_status_t status,
                           cudaStream_t stream) SDG_MUST_CHECK;

/* Ends what sdg_watch_begin began without a transfer to watch. Returns
 * `status`. */
sdg_status_t sdg_watch_enclosed(sdg_status_t status) SDG_MUST_CHECK;

/* The job has failed on a thread that may not call CUDA: the watching thread
 * aborts all transfers. */
void sdg_watch_alarm(void);

/* Call before the device is reset (src/exchange/exchange.h), with no transfer
 * in flight on it. */
void sdg_watch_forget(void);

/* Stops the thread; call before the process exits. */
void sdg_watch_stop(void);

#endif
