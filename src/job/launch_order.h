/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one order in which the threads of a rank launch transfers; the order
 * is the same on every rank of a group.
 *
 * A transfer occupies the device until its peers have launched theirs. If two
 * threads launch A and B in this order on one rank and in the other order on
 * another, both transfers must run at once. CUDA does not promise that:
 * streams share queues of the device, kernels of other libraries fill it, and
 * a thread that waits for the whole device (cudaFree, cudaDeviceSynchronize, a
 * copy on the legacy stream) also waits for the other thread's transfer. So
 * threads take turns. The first rank of the group launches in whatever order
 * its threads arrive, and publishes that order. The other ranks launch in the
 * same order; a thread waits until its turn.
 *
 * Why this cannot deadlock: on each rank, the launched transfers are a prefix
 * of the one order. Let T be its first turn that some rank has not launched.
 * All turns before T are launched everywhere. What they wait for on a device
 * was enqueued before them, so it depends only on earlier turns: they
 * complete. Hence the thread of T waits neither for the device for ever nor
 * for its turn, and launches T. One case remains: threads that hold a lock of
 * the program around tagged calls and acquire it in different orders on
 * different ranks. They end in SDG_E_THREADS_ORDER.
 *
 * While a rank makes tagged calls from channel 0 only, no order is needed and
 * nobody waits. The first further thread calls sdg_launch_order_enter(); when
 * all ranks' threads have, the ranks agree how many launches of channel 0
 * precede the order. */
#ifndef SDG_SRC_JOB_LAUNCH_ORDER_H
#define SDG_SRC_JOB_LAUNCH_ORDER_H

#include "src/base/status.h"

/* Begin and end enclose the launch of one transfer or the creation of a
 * communicator. Within a thread, all ranks of the group do these in the same
 * order; a rank that has nothing to send or receive also calls both. Not
 * nested. SDG_E_JOB_BROKEN without a report; SDG_E_PEER_LOST,
 * SDG_E_THREADS_ORDER. After an error do not call end. */
sdg_status_t sdg_launch_order_begin(void) SDG_MUST_CHECK;
void sdg_launch_order_end(void);

/* Call when the calling thread is the first of this rank with this channel
 * (not 0). Collective over the group; `entry` is the thread's current call. */
sdg_status_t sdg_launch_order_enter(int channel,
                                    const char *entry) SDG_MUST_CHECK;

#endif
