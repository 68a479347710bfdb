/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the NCCL communicators of a calling thread, with every pair of ranks
 * connected, so that no later transfer waits for another rank on the host. */
#ifndef SDG_SRC_COMM_CONNECTION_H
#define SDG_SRC_COMM_CONNECTION_H

#include <nccl.h>
#include <stdbool.h>

#include "src/base/status.h"
#include "src/base/stopwatch.h"
#include "src/geometry/mesh.h"

/* The communicators of one calling thread. */
typedef struct sdg_connection {
  ncclComm_t all; /* all ranks of the job's group, in the group's order */
  /* Index: a set of axes. The ranks along these axes, if they are several, but
   * not the whole group; otherwise NULL. Split from `all`, sharing its
   * resources. */
  ncclComm_t part[1 << SDG_AXES_MAX];
  /* Device memory of the first messages. Never freed: cudaFree would wait for
   * the program's work. */
  void *cells;
} sdg_connection_t;

/* Makes the calling thread's communicators on `device`, which is current.
 * Collective over the job's group.
 * They are made in a thread of sundog's own, because NCCL waits for other ranks
 * without a limit. If that takes longer than SUNDOG_TIMEOUT or a rank ends, the
 * thread is left alone, with all that it has made. SDG_E_ONE_GPU,
 * SDG_E_DIVERGED, SDG_E_NCCL, SDG_E_PEER_TIMEOUT and the errors of
 * sdg_peer_failure_check(). */
sdg_status_t sdg_connection_make(int device,
                                 sdg_connection_t *out) SDG_MUST_CHECK;

/* Gets the id of a new communicator over the job's group, which the group's
 * first rank makes. Collective over the group; `what` names the exchange.
 * SDG_E_ONE_GPU, SDG_E_DIVERGED, SDG_E_NCCL. */
sdg_status_t sdg_connection_introduce(const char *what,
                                      ncclUniqueId *out_id) SDG_MUST_CHECK;

/* Ends all transfers of the communicators and frees them. */
void sdg_connection_abort(const sdg_connection_t *connection);

/* Checks the ranks that the calling thread waits for in `what`: call several
 * times a second. `said`: a line has named them. SDG_E_JOB_BROKEN (reported
 * before), SDG_E_PEER_TIMEOUT, and the errors of sdg_peer_failure_check(). */
sdg_status_t sdg_connection_check(sdg_stopwatch_t *since, const char *what,
                                  bool *said) SDG_MUST_CHECK;

#endif
