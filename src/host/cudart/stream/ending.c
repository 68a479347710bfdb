// SPDX-License-Identifier: Apache-2.0
// Lets the streams finish before the handlers of exit() run.
#include "src/host/cudart/stream/ending.h"

#include <stdbool.h>
#include <unistd.h>

#include "src/host/cudart/stream/wait.h"

enum { NAP_US = 200, PATIENCE_US = 2000000 };

// glibc's, as compilers of C++ call it for thread-local objects.
int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object,
                             void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void streams_finish(void *process) {
  uint64_t submitted, completed, before = 0;
  int turn = 0;
  // A child of fork() has the queues, but none of the threads.
  if ((pid_t)(intptr_t)process != getpid())
    return;
  for (int waited_us = 0; waited_us < PATIENCE_US; before = completed) {
    host_stream_count(&submitted, &completed);
    if (submitted == completed)
      return;
    if (completed != before)
      waited_us = 0;
    if (host_wait_turn(turn++))
      continue;
    usleep(NAP_US);
    waited_us += NAP_US;
  }
}

void host_ending_prepare(void) {
  static _Thread_local bool prepared;
  if (prepared)
    return;
  prepared = true;
  pid_t process = getpid();
  if (gettid() == process)
    __cxa_thread_atexit_impl(streams_finish, (void *)(intptr_t)process,
                             &__dso_handle);
}
