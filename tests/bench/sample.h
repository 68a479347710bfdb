/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the calling thread's CPU time is: looks now and then at where it is. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

/* Once the libraries are loaded; one thread at a time. */
int sample_start(void);
/* The share of the thread's CPU time since then that was sundog's own: spent in
 * libsundog, or in what it calls of the C library, but not in a vendor's
 * library. -1 without samples. */
double sample_stop(int *out_samples);

#endif
