/* SPDX-License-Identifier: Apache-2.0 */
/* Which channel of the control channel a named thread has: the same on every
 * rank, in whatever order the ranks' threads come. */
#ifndef SDG_SRC_CHANNEL_H
#define SDG_SRC_CHANNEL_H

#include "src/control.h"
#include "src/status.h"

enum { SDG_CHANNEL_NAME_BYTES = 32 };

/* The channel, 1 .. SDG_CONTROL_THREADS - 1, of this name, given to it for the
 * rest of the job by the first rank that asks. No wait for other ranks.
 * SDG_E_THREADS_MANY: all are taken by other names. Thread-safe. */
sdg_status_t sdg_channel_find(sdg_control_t *control, const char *name,
                              int *out_channel) SDG_MUST_CHECK;

/* For messages: " of thread 'io'"; empty for channel 0, whose thread has no
 * name, and for channels without a thread. */
void sdg_channel_label(const sdg_control_t *control, int channel, char *out,
                       size_t bytes);

#endif
