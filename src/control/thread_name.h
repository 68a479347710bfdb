/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the names of threads to channels of the control channel. A name has the
 * same channel on every rank, in whatever order the ranks' threads start. */
#ifndef SDG_SRC_CONTROL_THREAD_NAME_H
#define SDG_SRC_CONTROL_THREAD_NAME_H

#include "src/base/status.h"
#include "src/bootstrap/shm.h"
#include "src/control/control.h"

enum { SDG_THREAD_NAME_BYTES = 32 };

/* Finds the channel of this name, 1 .. SDG_CHANNEL_THREADS - 1. The first rank
 * that asks assigns it for the rest of the job. Does not wait for other ranks
 * on one machine; on several machines it waits for rank 0's answer
 * (SDG_E_PEER_LOST, SDG_E_PEER_TIMEOUT). SDG_E_THREADS_MANY: all channels have
 * other names. Thread-safe. */
sdg_status_t sdg_thread_name_find(sdg_control_t *control, const char *name,
                                  int *out_channel) SDG_MUST_CHECK;

/* The same within one segment of shared memory. Between machines, rank 0 does
 * this for all ranks, in its own segment. */
sdg_status_t sdg_thread_name_claim(sdg_shm_t *shared, const char *name,
                                   int *out_channel) SDG_MUST_CHECK;
/* Writes the name that rank 0 has sent. */
void sdg_thread_name_put(sdg_shm_t *shared, int channel, const char *name);
/* Writes the name of a channel; "" if it has none. */
void sdg_thread_name_of(const sdg_shm_t *shared, int channel, char *out,
                        size_t bytes);

/* For messages: writes " of thread 'io'"; empty for channel 0, whose thread
 * has no name, and for channels without a thread. */
void sdg_thread_name_label(const sdg_control_t *control, int channel, char *out,
                           size_t bytes);

#endif
