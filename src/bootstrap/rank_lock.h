/* SPDX-License-Identifier: Apache-2.0 */
/* One process per rank: locks on a file beside the rendezvous socket. */
#ifndef SDG_SRC_BOOTSTRAP_RANK_LOCK_H
#define SDG_SRC_BOOTSTRAP_RANK_LOCK_H

#include <stdint.h>

#include "src/base/status.h"

/* Held by the process, released by the kernel with it; children made by fork
 * do not hold it. */
typedef struct sdg_rank_lock {
  int fd;
  char *path; /* of the lock file, owned */
} sdg_rank_lock_t;

/* Takes `rank` of the job that meets at `socket_path`, and leaves there which
 * process has it. SDG_E_RANK_TAKEN, without a report, when another process
 * holds it: *out_holder is its number, 0 if that cannot be told. One that has
 * closed every descriptor, and with them its lock, holds it while it lives.
 * SDG_E_RENDEZVOUS when the file cannot be made or is not this user's. */
sdg_status_t sdg_rank_lock_take(const char *socket_path, int rank,
                                sdg_rank_lock_t *out_lock,
                                int32_t *out_holder) SDG_MUST_CHECK;

/* A rank of the job that meets at `socket_path` whose process is not this one,
 * nor above it: *out_holder is its number. -1: there is none. */
int sdg_rank_lock_other(const char *socket_path, int32_t *out_holder);

/* Gives the rank back. The last process of the job removes the lock file, and
 * `socket_path` unless NULL: where rank 0 was met, in case it died before it
 * could. */
void sdg_rank_lock_release(sdg_rank_lock_t *lock, int rank,
                           const char *socket_path);
/* Closes in a child made by fork, which holds nothing. */
void sdg_rank_lock_forget(sdg_rank_lock_t *lock);

#endif
