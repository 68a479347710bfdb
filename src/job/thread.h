/* SPDX-License-Identifier: Apache-2.0 */
/* The calling threads of a rank: decides which threads may make tagged calls,
 * and which thread of the job each one is.
 *
 * A thread of the job has a name and a channel of the control channel. Its
 * data (counts, agreed extents, plans, scratch, streams, communicators) is
 * stored in tables indexed by channel. Only the one living thread of the rank
 * that has claimed the channel uses it; when that thread has ended, the next
 * one of the same name continues with it. So data per thread needs no lock,
 * and threads that start and end leak nothing. */
#ifndef SDG_SRC_JOB_THREAD_H
#define SDG_SRC_JOB_THREAD_H

#include "src/base/channel.h"
#include "src/base/status.h"

/* Makes the calling thread a thread of the job, until it ends or gets another
 * name. Called before each tagged call; from the second call on it only tests
 * two words. The first thread without a name gets channel 0. Further threads
 * need a name, or SUNDOG_THREADS=ordered; the first claim of each name is then
 * collective over the group. The job must be joined. SDG_E_THREAD,
 * SDG_E_THREAD_NAME, SDG_E_THREADS_MANY; and the errors of an exchange, which
 * break the job. */
sdg_status_t sdg_thread_claim(const char *entry) SDG_MUST_CHECK;

/* The same for the whole view, which has one such thread at a time, on channel
 * 0, named or not. SDG_E_VIEW_WHOLE. */
sdg_status_t sdg_thread_claim_only(const char *entry) SDG_MUST_CHECK;

/* Sets the calling thread's name: 1 to 31 letters, digits and "._-". NULL
 * removes the name, as if the thread had ended. SDG_E_THREAD_NAME. */
sdg_status_t sdg_thread_set_name(const char *name) SDG_MUST_CHECK;

#endif
