/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: one per set of mesh axes and calling thread, non-blocking,
 * made on first use. */
#ifndef SDG_SRC_EXCHANGE_COMM_H
#define SDG_SRC_EXCHANGE_COMM_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "src/base/status.h"
#include "src/geometry/mesh.h"

typedef struct sdg_comm {
  sdg_axes_t axes;
  int ranks;
  int rank[SDG_RANKS_MAX]; /* of the job, in the communicator's order */
  int me;                  /* index of this rank */
  ncclComm_t nccl;
} sdg_comm_t;

/* The calling thread's communicator over `axes` that this rank belongs to.
 * Collective over the agreement's group the first time: ranks that make the
 * same tagged calls ask for the same communicators in the same order. Borrowed;
 * lives as long as the process. */
sdg_status_t sdg_comm_get(sdg_axes_t axes,
                          sdg_comm_t **out_comm) SDG_MUST_CHECK;

/* Around calls of NCCL on a communicator: the watching thread does not abort it
 * meanwhile. SDG_E_JOB_BROKEN after an abort, then there is nothing to unlock.
 * Not to be held while waiting. */
sdg_status_t sdg_comm_lock(void) SDG_MUST_CHECK;
void sdg_comm_unlock(void);

/* Turns a result of NCCL into a status, waiting while it is ncclInProgress,
 * unlocked. SDG_E_NCCL; SDG_E_PEER_TIMEOUT and those of sdg_control_check when
 * other ranks do not come. */
sdg_status_t sdg_comm_check(sdg_comm_t *comm, ncclResult_t result,
                            const char *what) SDG_MUST_CHECK;

/* The stream that carries the transfers of the calling thread. */
sdg_status_t sdg_comm_stream(cudaStream_t *out_stream) SDG_MUST_CHECK;

/* Ends every transfer in flight; safe from the watching thread. Communicators
 * cannot be used afterwards. */
void sdg_comm_abort_all(void);

/* The device, on which nothing is in flight, is about to be reset
 * (src/exchange/exchange.h): communicators are made anew when they are asked
 * for.
 */
void sdg_comm_forget(void);

#endif
