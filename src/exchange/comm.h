/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: one per set of mesh axes and calling thread, non-blocking,
 * created at first use. */
#ifndef SDG_SRC_EXCHANGE_COMM_H
#define SDG_SRC_EXCHANGE_COMM_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "src/base/status.h"
#include "src/geometry/mesh.h"

typedef struct sdg_comm {
  sdg_axes_t axes;
  int ranks;
  int rank[SDG_RANKS_MAX]; /* ranks of the job, in the communicator's order */
  int me;                  /* this rank's index in rank[] */
  ncclComm_t nccl;
} sdg_comm_t;

/* Gets the calling thread's communicator over `axes` that contains this rank.
 * The first call for an `axes` is collective over the job's group: ranks that
 * make the same tagged calls ask for the same communicators in the same order.
 * Borrowed; lives as long as the process. */
sdg_status_t sdg_comm_get(sdg_axes_t axes,
                          sdg_comm_t **out_comm) SDG_MUST_CHECK;

/* Lock and unlock enclose every NCCL call on a communicator, so that the
 * watching thread cannot abort it meanwhile. SDG_E_JOB_BROKEN after an abort;
 * the lock is then not held. Do not hold it while waiting. */
sdg_status_t sdg_comm_lock(void) SDG_MUST_CHECK;
void sdg_comm_unlock(void);

/* Turns an NCCL result into a status. While the result is ncclInProgress it
 * waits, without the lock. SDG_E_NCCL; SDG_E_PEER_TIMEOUT and the errors of
 * sdg_control_check if other ranks do not arrive. */
sdg_status_t sdg_comm_check(sdg_comm_t *comm, ncclResult_t result,
                            const char *what) SDG_MUST_CHECK;

/* Gets the stream for the calling thread's transfers. */
sdg_status_t sdg_comm_stream(cudaStream_t *out_stream) SDG_MUST_CHECK;

/* Aborts every transfer in flight; the watching thread may call it.
 * Communicators cannot be used afterwards. */
void sdg_comm_abort_all(void);

/* Call before the device is reset (src/exchange/exchange.h), with nothing in
 * flight on it: communicators are created again when they are next asked
 * for. */
void sdg_comm_forget(void);

/* The ranks of a communicator of the program's own; 0: NCCL does not say. */
int sdg_comm_size(ncclComm_t comm);
/* The bytes of an element; 0: unknown. */
size_t sdg_comm_type_bytes(ncclDataType_t type);

#endif
