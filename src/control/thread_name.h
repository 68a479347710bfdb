/* SPDX-License-Identifier: Apache-2.0 */
/* Which channel of the control channel a named thread has: the same on every
 * rank, in whatever order the ranks' threads come. */
#ifndef SDG_SRC_CONTROL_THREAD_NAME_H
#define SDG_SRC_CONTROL_THREAD_NAME_H

#include "src/base/status.h"
#include "src/bootstrap/shm.h"
#include "src/control/control.h"

enum { SDG_THREAD_NAME_BYTES = 32 };

/* The channel, 1 .. SDG_CHANNEL_THREADS - 1, of this name, given to it for the
 * rest of the job by the first rank that asks. No wait for other ranks, but for
 * an answer of rank 0 where they are on several machines (SDG_E_PEER_LOST,
 * SDG_E_PEER_TIMEOUT). SDG_E_THREADS_MANY: all are taken by other names.
 * Thread-safe. */
sdg_status_t sdg_thread_name_find(sdg_control_t *control, const char *name,
                                  int *out_channel) SDG_MUST_CHECK;

/* The same in one segment; between machines rank 0 does it for all, in its
 * own. */
sdg_status_t sdg_thread_name_claim(sdg_shm_t *shared, const char *name,
                                   int *out_channel) SDG_MUST_CHECK;
/* Writes what rank 0 has told. */
void sdg_thread_name_put(sdg_shm_t *shared, int channel, const char *name);
/* The name of a channel, "" if it has none. */
void sdg_thread_name_of(const sdg_shm_t *shared, int channel, char *out,
                        size_t bytes);

/* For messages: " of thread 'io'"; empty for channel 0, whose thread has no
 * name, and for channels without a thread. */
void sdg_thread_name_label(const sdg_control_t *control, int channel, char *out,
                           size_t bytes);

#endif
