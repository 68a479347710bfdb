/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on this machine: identifies them beyond their number, finds their
 * ancestors, and ensures one process per rank. */
#ifndef SDG_SRC_BOOTSTRAP_PROCESS_H
#define SDG_SRC_BOOTSTRAP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/status.h"

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

/* Returns the parent of process `pid`; 0 if it has none or is not visible. */
int32_t sdg_process_parent(int32_t pid);

/* Returns true if the process was started with this variable, as far as is
 * visible; `value` NULL: with any value of it. */
bool sdg_process_began_with(int32_t pid, const char *name, const char *value);

/* Writes the name of its program, as ps(1) shows it, or "". */
void sdg_process_name(int32_t pid, char *out, size_t bytes);

/* ---- one process per rank ------------------------------------------------ */

/* A lock on a file beside the rendezvous socket. The process holds it, and the
 * kernel releases it when the process ends; children made by fork do not hold
 * it. */
typedef struct sdg_rank_lock {
  int fd;
  char *path; /* of the lock file, owned */
} sdg_rank_lock_t;

/* Takes `rank` of the job that meets at `socket_path`, and records this
 * process as its holder. SDG_E_RANK_TAKEN, without a report, if another
 * process holds it: *out_holder is its process number, 0 if unknown. A process
 * that closed every descriptor lost its lock, but still holds the rank while
 * it lives. SDG_E_RENDEZVOUS if the file cannot be made or belongs to another
 * user. */
sdg_status_t sdg_rank_lock_take(const char *socket_path, int rank,
                                sdg_rank_lock_t *out_lock,
                                int32_t *out_holder) SDG_MUST_CHECK;

/* Returns a rank of the job that meets at `socket_path` whose process is
 * neither this one nor its ancestor; *out_holder is its process number. -1 if
 * no such rank exists. */
int sdg_rank_lock_other(const char *socket_path, int32_t *out_holder);

/* Releases the rank. The last process of the job removes the lock file, and
 * also `socket_path` unless it is NULL, in case rank 0 died before it could
 * remove its socket. */
void sdg_rank_lock_release(sdg_rank_lock_t *lock, int rank,
                           const char *socket_path);
/* Removes the lock file, and the socket, of a job whose processes were all
 * killed before they could. Returns whether it did. This process must hold no
 * rank of the job. */
bool sdg_rank_lock_sweep(const char *socket_path);
/* Closes the descriptor in a child made by fork, which holds no lock. */
void sdg_rank_lock_forget(sdg_rank_lock_t *lock);

#endif
