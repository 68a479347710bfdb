/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: small numbers of the threads of a rank that communicate with other
 * ranks; per-thread data is indexed by them. */
#ifndef SDG_SRC_BASE_CHANNEL_H
#define SDG_SRC_BASE_CHANNEL_H

#include <stdbool.h>

enum {
  SDG_CHANNEL_RECORD_BYTES = 4096, /* the largest record of one exchange */
  SDG_CHANNEL_THREADS = 8, /* channels 0 to 7: threads that make tagged calls */
  /* The channel on which new threads agree on their order. */
  SDG_CHANNEL_ORDER = 8,
  SDG_CHANNELS = 9, /* number of channels of a rank */
};

extern _Thread_local int sdg_channel_own
    __attribute__((tls_model("initial-exec")));

/* True after the calling thread has claimed its channel (src/job/thread.h): the
 * job was joined before. */
extern _Thread_local bool sdg_channel_claimed
    __attribute__((tls_model("initial-exec")));

/* True in threads that sundog made and in which vendors' libraries make calls
 * that the linker resolves: no call there is the program's. */
extern _Thread_local bool sdg_channel_apart
    __attribute__((tls_model("initial-exec")));

/* Returns the calling thread's channel, 0 .. SDG_CHANNEL_THREADS - 1; 0 if it
 * has not claimed one. */
static inline int sdg_channel_get(void) {
  return sdg_channel_own;
}

#endif
