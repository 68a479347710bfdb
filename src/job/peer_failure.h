/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rank that ended or does not respond while this rank still needs
 * it. */
#ifndef SDG_SRC_JOB_PEER_FAILURE_H
#define SDG_SRC_JOB_PEER_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"

/* Reports and returns SDG_E_PEER_LOST if a rank died, or left after fewer
 * tagged calls of the thread with this channel than this rank has made (after
 * any number if the transfer `has_failed`, because data it still had to send
 * is gone). If a rank reported a failure to the job, returns that failure.
 * `what` names the waiting call. Thread-safe; takes some microseconds. */
sdg_status_t sdg_peer_failure_check(int channel, const char *what,
                                    bool has_failed) SDG_MUST_CHECK;

/* Finds the cause of an error in a tagged call of the calling thread: if a
 * rank ended or told the job of a failure, reports and returns that; otherwise
 * returns `status`. */
sdg_status_t sdg_peer_failure_accident(sdg_status_t status) SDG_MUST_CHECK;

/* Lists the ranks that have made fewer tagged calls of this thread than this
 * rank, or are stopped by a signal: "rank 1 (at call 3 cudnn...)". If none is
 * behind or stopped, lists all other ranks. Any thread. */
void sdg_peer_failure_behind(int channel, char *out, size_t out_bytes);

/* Call when a CUDA call of the program failed at `entry`: if the cause is a
 * rank that ended during a transfer, reports that and breaks the job. */
void sdg_peer_failure_explain(const char *entry);

#endif
