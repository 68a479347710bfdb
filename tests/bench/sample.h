/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which library uses the calling thread's CPU time, by samples. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

/* Call it after the libraries are loaded, in one thread at a time. */
int sample_start(void);
/* Returns sundog's share of the thread's CPU time since then: time in libsundog
 * and in the C library called by it, but not in a vendor's library. -1 without
 * samples. */
double sample_stop(int *out_samples);

#endif
