/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for another thread when several ranks share the cores: first spins,
 * then yields, then sleeps. */
#ifndef SDG_SRC_HOST_CUDART_STREAM_WAIT_H
#define SDG_SRC_HOST_CUDART_STREAM_WAIT_H

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HOST_WAIT_PAUSES = 64, HOST_WAIT_YIELDS = 200 };

static inline void host_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Waits for a moment, the turn-th one; false when it is time to sleep. */
static inline bool host_wait_turn(int turn) {
  if (turn < HOST_WAIT_PAUSES) {
    host_pause();
    return true;
  }
  if (turn < HOST_WAIT_PAUSES + HOST_WAIT_YIELDS) {
    sched_yield();
    return true;
  }
  return false;
}

/* Sleeps while the word has this value, until woken. */
static inline void host_futex_wait(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static inline void host_futex_wake(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
