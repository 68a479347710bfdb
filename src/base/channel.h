/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: numbers for the threads of a rank that talk to other ranks, and for
 * what each of them has. */
#ifndef SDG_SRC_BASE_CHANNEL_H
#define SDG_SRC_BASE_CHANNEL_H

enum {
  SDG_CHANNEL_RECORD_BYTES = 4096, /* the largest record of one exchange */
  SDG_CHANNEL_THREADS = 8, /* channels 0.. of threads with tagged calls */
  SDG_CHANNEL_ORDER = 8,   /* channel on which new threads are put in order */
  SDG_CHANNELS = 9,        /* of a rank */
};

extern _Thread_local int sdg_channel_own
    __attribute__((tls_model("initial-exec")));

/* The calling thread's channel, 0 .. SDG_CHANNEL_THREADS - 1; 0 for one that
 * has claimed none. */
static inline int sdg_channel_get(void) {
  return sdg_channel_own;
}

#endif
