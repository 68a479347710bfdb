/* SPDX-License-Identifier: Apache-2.0 */
/* Prints equal messages of several ranks as one line. */
#ifndef SDG_TOOLS_LAUNCH_COLLECT_H
#define SDG_TOOLS_LAUNCH_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Nanoseconds that a message waits for equal messages of other ranks. */
#define COLLECT_WINDOW_NS INT64_C(300000000)

/* A process beside the run that reads the library's messages and writes them to
 * standard error. A message is one write of "sundog: SDG-nnn [rank r] text\n"
 * (src/base/log.h). Messages that differ only in the rank become one line, such
 * as "sundog: all 4 ranks: SDG-nnn text" or "sundog: ranks 0-2, 5: SDG-nnn
 * text"; other messages are not changed. A message waits until all ranks have
 * sent it, COLLECT_WINDOW_NS has passed, or no writer is left. Messages of one
 * rank keep their order. */
typedef struct collect {
  int messages; /* the ranks write here, without blocking; -1: no such process
                 */
  int done;     /* closed by the process when all messages are written */
  pid_t pid;    /* of the process, a child of this one */
} collect_t;

/* Starts the process for a run of `size` ranks. If that fails, or `size` is 1,
 * messages go straight to standard error. The process ends when `messages` is
 * closed everywhere. */
void collect_start(int size, collect_t *out);

/* Closes this process's end of `messages`. */
void collect_leave(collect_t *collect);

/* Waits until all messages are written. Call it when all writers have ended.
 * Waits at most a few seconds, in case nobody reads standard error. */
void collect_wait(const collect_t *collect);

/* Reaps the process; call it in the process that started it, after
 * collect_wait. */
void collect_reap(const collect_t *collect);

/* Writes "rank 3", "ranks 0-2, 5" or "all 4 ranks": those of `size` ranks for
 * which by[r] is set. */
void collect_who(FILE *out, const bool *by, int size);

#endif
