/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank does not come, or ended, while this one still needs it. */
#ifndef SDG_SRC_JOB_PEER_FAILURE_H
#define SDG_SRC_JOB_PEER_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"

/* SDG_E_PEER_LOST, reported, if a rank died, or left with fewer tagged calls
 * of the thread with this channel than this one has made (any number if the
 * transfer `has_failed`: what it still had to send is gone); or the failure
 * that a rank told the job. `what` names the call that waits. Thread-safe; some
 * microseconds. */
sdg_status_t sdg_peer_failure_check(int channel, const char *what,
                                    bool has_failed) SDG_MUST_CHECK;

/* What an accident in a tagged call is: if a rank ended, or told the job of a
 * failure, that, reported; else `status` itself. The calling thread's. */
sdg_status_t sdg_peer_failure_accident(sdg_status_t status) SDG_MUST_CHECK;

/* The ranks with fewer tagged calls of this thread than this one, or stopped by
 * a signal: "rank 1 (at call 3 cudnn...)". Where there is none, all others. Any
 * thread. */
void sdg_peer_failure_behind(int channel, char *out, size_t out_bytes);

/* A CUDA call of the program failed at `entry`: if that is because a rank ended
 * during a transfer, says so and breaks the job. */
void sdg_peer_failure_explain(const char *entry);

#endif
