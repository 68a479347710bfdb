/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this machine: which one a number means, and who started it. */
#ifndef SDG_SRC_BOOTSTRAP_PROCESS_H
#define SDG_SRC_BOOTSTRAP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process, whatever becomes of its number later. Zeros: none. */
typedef struct sdg_process {
  int32_t pid;
  int32_t zero;
  uint64_t start;      /* in clock ticks since the machine started */
  uint64_t name_space; /* in which `pid` is its number */
} sdg_process_t;

sdg_process_t sdg_process_self(void);
/* True while it has not ended, as far as can be seen from here: a process of
 * another name space cannot. */
bool sdg_process_lives(const sdg_process_t *process);

/* Whether `pid` is the calling process, its parent, its parent's parent ... */
bool sdg_process_is_above(int32_t pid);

/* The name of its program, as ps(1) has it, or "". */
void sdg_process_name(int32_t pid, char *out, size_t bytes);

#endif
