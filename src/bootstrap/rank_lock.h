/* SPDX-License-Identifier: Apache-2.0 */
/* Ensures one process per rank with locks on a file beside the rendezvous
 * socket. */
#ifndef SDG_SRC_BOOTSTRAP_RANK_LOCK_H
#define SDG_SRC_BOOTSTRAP_RANK_LOCK_H

#include <stdint.h>

#include "src/base/status.h"

/* The process holds it, and the kernel releases it when the process ends;
 * children made by fork do not hold it. */
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
/* Closes the descriptor in a child made by fork, which holds no lock. */
void sdg_rank_lock_forget(sdg_rank_lock_t *lock);

#endif
