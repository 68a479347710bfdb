/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the host device: their stack is large enough for arithmetic
 * whatever the program's limit is, and they take none of the program's signals.
 */
#ifndef SDG_SRC_HOST_THREAD_H
#define SDG_SRC_HOST_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Without this a thread's stack has the size of `ulimit -s`. */
enum { HOST_STACK_BYTES = 4 << 20 };

/* As pthread_create. `out_thread` is NULL for a thread that nobody joins. */
static inline int host_thread_start(pthread_t *out_thread,
                                    void *(*run)(void *argument),
                                    void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  size_t bytes = 0;
  int error = pthread_attr_init(&attributes);
  if (error != 0)
    return error;
  if (!out_thread)
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (pthread_attr_getstacksize(&attributes, &bytes) == 0 &&
      bytes < HOST_STACK_BYTES)
    pthread_attr_setstacksize(&attributes, HOST_STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(out_thread ? out_thread : &thread, &attributes, run,
                         argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

#endif
