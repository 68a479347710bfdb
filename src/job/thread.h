/* SPDX-License-Identifier: Apache-2.0 */
/* The calling threads of a rank: who may make tagged calls, and as which thread
 * of the job.
 *
 * A thread of the job is a name, and a channel of the control channel. What it
 * has (counts, agreed extents, plans, scratch, streams, communicators) is kept
 * in tables by channel, and used only by the one living thread of the rank that
 * has claimed the channel; the next one of the same name goes on with it. So
 * what is kept per thread needs no lock, and threads that come and go leave
 * nothing behind. */
#ifndef SDG_SRC_JOB_THREAD_H
#define SDG_SRC_JOB_THREAD_H

#include "src/base/channel.h"
#include "src/base/status.h"

/* Makes the calling thread a thread of the job, until it ends or gets another
 * name: before each tagged call, a test of two words from the second on.
 * The first one without a name gets channel 0. Further ones need a name, or
 * SUNDOG_THREADS=ordered; then, once per name, this is collective over the
 * group. The job must be joined. SDG_E_THREAD, SDG_E_THREAD_NAME,
 * SDG_E_THREADS_MANY, and those of an exchange, which break the job. */
sdg_status_t sdg_thread_claim(const char *entry) SDG_MUST_CHECK;

/* The calling thread's name from now on: 1 to 31 characters of letters, digits
 * and "._-"; NULL: none, as if it had ended. SDG_E_THREAD_NAME. */
sdg_status_t sdg_thread_set_name(const char *name) SDG_MUST_CHECK;

#endif
