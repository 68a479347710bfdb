/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: one per calling thread for all exchanges, and one per set of
 * mesh axes for sums, all made at the thread's first use of any. */
#ifndef SDG_SRC_COMM_COMM_H
#define SDG_SRC_COMM_COMM_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "src/base/status.h"
#include "src/geometry/mesh.h"

/* The ranks along some axes, this one among them. */
typedef struct sdg_comm {
  sdg_axes_t axes;
  int ranks;
  int peer[SDG_RANKS_MAX]; /* their numbers in `exchange`, ascending */
  ncclComm_t exchange;     /* for messages; has all ranks of the job's group */
  ncclComm_t sum; /* for sums over these ranks; NULL: this is the only one */
} sdg_comm_t;

/* Gets the calling thread's communicators over `axes`. The thread's first call
 * is collective over the job's group and makes all of them
 * (src/comm/connection.h). Borrowed; lives as long as the process. */
sdg_status_t sdg_comm_get(sdg_axes_t axes,
                          sdg_comm_t **out_comm) SDG_MUST_CHECK;

/* Lock and unlock enclose every NCCL call on a communicator, so that the
 * watching thread cannot abort it meanwhile. SDG_E_JOB_BROKEN after an abort;
 * the lock is then not held. Do not hold it while waiting. */
sdg_status_t sdg_comm_lock(void) SDG_MUST_CHECK;
void sdg_comm_unlock(void);

/* Turns an NCCL result into a status. While the result is ncclInProgress, which
 * NCCL returns if NCCL_COMM_BLOCKING=0 is set, it waits, without the lock.
 * SDG_E_NCCL; the errors of sdg_connection_check() if other ranks do not
 * arrive. */
sdg_status_t sdg_comm_check(ncclComm_t comm, ncclResult_t result,
                            const char *what) SDG_MUST_CHECK;

/* Gets the rank's device: the one that was current at the first call. Any
 * thread. SDG_E_DEVICES if another one is current now. */
sdg_status_t sdg_comm_device(int *out_device) SDG_MUST_CHECK;

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
