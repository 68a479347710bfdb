/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process whose streams still have work. */
#ifndef SDG_SRC_HOST_CUDART_STREAM_ENDING_H
#define SDG_SRC_HOST_CUDART_STREAM_ENDING_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Called where a thread submits work. When the main thread leaves by exit(), or
 * returns from main(), it first lets the streams finish: handlers of exit()
 * free what oneDNN's threads execute, and only what thread-local objects have
 * to do comes before all of these. It gives up where nothing has been completed
 * for two seconds, as behind a message from a rank that is gone. */
void host_ending_prepare(void);

/* Work that was submitted, and what of it is completed, in all streams. */
void host_stream_count(uint64_t *out_submitted, uint64_t *out_completed);

#pragma GCC visibility pop

#endif
