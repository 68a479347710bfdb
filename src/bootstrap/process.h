/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on this machine: identifies them beyond their number, and finds
 * their ancestors. */
#ifndef SDG_SRC_BOOTSTRAP_PROCESS_H
#define SDG_SRC_BOOTSTRAP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Identifies a process even after its number has been reused. Zeros: no
 * process. */
typedef struct sdg_process {
  int32_t pid;
  int32_t zero;
  uint64_t start;      /* in clock ticks since the machine started */
  uint64_t name_space; /* the pid namespace of `pid` */
} sdg_process_t;

sdg_process_t sdg_process_self(void);
/* Returns true while the process has not ended, as far as is visible from
 * here: a process in another pid namespace is not visible. */
bool sdg_process_lives(const sdg_process_t *process);

/* Returns true if a signal has stopped process `pid`. */
bool sdg_process_is_stopped(int32_t pid);

/* Returns true if process `pid` has this file mapped. False for a zombie,
 * after an exec, and for another process that was given the number later. */
bool sdg_process_maps(int32_t pid, dev_t device, ino_t inode);

/* Returns true if `pid` is the calling process or one of its ancestors. */
bool sdg_process_is_above(int32_t pid);

/* Writes the name of its program, as ps(1) shows it, or "". */
void sdg_process_name(int32_t pid, char *out, size_t bytes);

#endif
