/* SPDX-License-Identifier: Apache-2.0 */
/* How often libsundog.so has called each function of the vendors' libraries and
 * of the C library: counters in a file that the counting module (tally.c) and
 * the program that reads them map at the same time. */
#ifndef SDG_TESTS_BENCH_TALLY_H
#define SDG_TESTS_BENCH_TALLY_H

#include <stdint.h>

enum { TALLY_ROWS = 1024, TALLY_NAME = 72, TALLY_OBJECT = 24 };

typedef struct tally {
  /* tally_thread() of the thread whose calls count apart; the program sets
   * it. The counting code expects it at the start. */
  uint64_t thread;
  uint64_t own[TALLY_ROWS];   /* calls of that thread */
  uint64_t other[TALLY_ROWS]; /* calls of all other threads */
  /* Only the dynamic linker's lock holder adds rows. */
  int rows;
  struct {
    char name[TALLY_NAME];     /* of the function */
    char caller[TALLY_OBJECT]; /* file name, as "libsundog.so" */
    char callee[TALLY_OBJECT];
  } row[TALLY_ROWS];
} tally_t;

/* The calling thread, as the counting code tells threads apart. */
static inline uint64_t tally_thread(void) {
  uint64_t pointer;
#if defined(__x86_64__)
  __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
  __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
  return pointer;
}

#endif
