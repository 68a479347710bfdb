/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a run say at the same time, said once. */
#ifndef SDG_TOOLS_LAUNCH_COLLECT_H
#define SDG_TOOLS_LAUNCH_COLLECT_H

#include <stdint.h>
#include <sys/types.h>

/* Equal messages of different ranks, within so long after the first. */
#define COLLECT_WINDOW_NS INT64_C(300000000)

/* A process beside the run that reads messages of the library, each one write
 * of "sundog: SDG-nnn [rank r] text\n" (src/base/log.h), and writes them to
 * standard error: those that differ in the rank alone once, as "sundog: all 4
 * ranks: SDG-nnn text" or "sundog: ranks 0-2, 5: SDG-nnn text", and every other
 * one as it is. A message waits for equal ones until all ranks have said it,
 * the window is over, or nobody is left to say anything. Those of one rank keep
 * their order. */
typedef struct collect {
  int messages; /* written by the ranks, without waiting; -1: there is none */
  int done;     /* hung up once all is written */
  pid_t pid;    /* of this process's child */
} collect_t;

/* Starts it for a run of `size` ranks. Without one, or with less than two
 * ranks, messages go to standard error. It ends by itself, when `messages` is
 * closed everywhere. */
void collect_start(int size, collect_t *out);

/* This process writes no messages there. */
void collect_leave(collect_t *collect);

/* Waits until what was said is written: when all that could say something have
 * ended, and no longer than a few seconds, for a reader who does not read. */
void collect_wait(const collect_t *collect);

/* After that, in the process that started it: reaps it. */
void collect_reap(const collect_t *collect);

#endif
