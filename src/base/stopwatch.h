/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long a thread has waited, without the time during which the
 * process was stopped. */
#ifndef SDG_SRC_BASE_STOPWATCH_H
#define SDG_SRC_BASE_STOPWATCH_H

#include <stdint.h>
#include <time.h>

typedef struct sdg_stopwatch {
  uint64_t last_ns;
  uint64_t waited_ns;
} sdg_stopwatch_t;

static inline uint64_t sdg_monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline sdg_stopwatch_t sdg_stopwatch_start(void) {
  return (sdg_stopwatch_t){.last_ns = sdg_monotonic_ns(), .waited_ns = 0};
}

/* Returns the seconds waited so far. Call several times a second: a longer gap
 * counts as one second, so that a job that was suspended and resumed as a
 * whole (Ctrl-Z, a debugger, a frozen container) does not time out. */
static inline double sdg_stopwatch_read(sdg_stopwatch_t *watch) {
  uint64_t now_ns = sdg_monotonic_ns();
  uint64_t step_ns = now_ns - watch->last_ns;
  watch->last_ns = now_ns;
  watch->waited_ns += step_ns < 1000000000u ? step_ns : 1000000000u;
  return (double)watch->waited_ns * 1e-9;
}

#endif
