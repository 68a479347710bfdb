/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the threads of a rank launch what waits for other ranks,
 * the same on every rank of a group.
 *
 * A transfer occupies the device until its peers have launched theirs. Two
 * threads that launch A and B in this order here and in the other there would
 * rely on both running at once, which nothing promises: streams share queues of
 * the device, kernels of other libraries fill it, and a thread that waits for
 * the whole device (cudaFree, cudaDeviceSynchronize, a copy on the legacy
 * stream) waits for the other thread's transfer too. So threads take turns.
 * The first rank of the group launches as its threads come, and tells the
 * order; the others launch in that order, and a thread whose turn it is not
 * waits.
 *
 * Why this ends: on each rank what has been launched is a prefix of the one
 * order. Let T be the first turn of it that some rank has not launched. All
 * before T are launched everywhere, and what they wait for on a device was
 * enqueued before them, hence waits for turns before them alone: they complete.
 * The thread of T can therefore neither wait for the device for ever nor for
 * its turn, and launches T. What is left are threads that hold a lock of the
 * program around tagged calls, and get it in another order on each rank: they
 * end in SDG_E_THREADS_ORDER.
 *
 * As long as a rank has made tagged calls from channel 0 alone there is nothing
 * to order and nobody waits. The first further thread's
 * sdg_launch_order_enter() makes the ranks agree how many launches of channel 0
 * came before the order. */
#ifndef SDG_SRC_JOB_LAUNCH_ORDER_H
#define SDG_SRC_JOB_LAUNCH_ORDER_H

#include "src/base/status.h"

/* Around the launch of one transfer, or the making of a communicator, which all
 * ranks of the group do in the same order within a thread; also on a rank that
 * has nothing to send or receive in it. Not nested. SDG_E_JOB_BROKEN without a
 * report; SDG_E_PEER_LOST, SDG_E_THREADS_ORDER. After an error there is nothing
 * to end. */
sdg_status_t sdg_launch_order_begin(void) SDG_MUST_CHECK;
void sdg_launch_order_end(void);

/* The calling thread is the first of this rank with this channel (not 0).
 * Collective over the group; `entry` is the call it is at. */
sdg_status_t sdg_launch_order_enter(int channel,
                                    const char *entry) SDG_MUST_CHECK;

#endif
