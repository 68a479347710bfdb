/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps signals of sundog's failing writes (SIGPIPE, SIGXFSZ) from the
 * program. */
#ifndef SDG_SRC_BASE_SIGNAL_GUARD_H
#define SDG_SRC_BASE_SIGNAL_GUARD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

typedef struct sdg_signal_guard {
  sigset_t before, pending;
} sdg_signal_guard_t;

static inline void sdg_signal_guard_set(sigset_t *out) {
  sigemptyset(out);
  sigaddset(out, SIGPIPE);
  sigaddset(out, SIGXFSZ);
}

/* From here on, failing writes of this thread return an error but raise no
 * signal. */
static inline sdg_signal_guard_t sdg_signal_guard_begin(void) {
  sdg_signal_guard_t guard;
  sigset_t held;
  sdg_signal_guard_set(&held);
  sigpending(&guard.pending);
  pthread_sigmask(SIG_BLOCK, &held, &guard.before);
  return guard;
}

/* Removes signals raised since begin, but not those that were already
 * pending. */
static inline void sdg_signal_guard_end(const sdg_signal_guard_t *guard) {
  sigset_t raised;
  sdg_signal_guard_set(&raised);
  if (sigismember(&guard->pending, SIGPIPE))
    sigdelset(&raised, SIGPIPE);
  if (sigismember(&guard->pending, SIGXFSZ))
    sigdelset(&raised, SIGXFSZ);
  const struct timespec now = {0, 0};
  while (sigtimedwait(&raised, NULL, &now) > 0)
    ;
  pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

#endif
