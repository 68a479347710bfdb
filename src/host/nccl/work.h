/* SPDX-License-Identifier: Apache-2.0 */
/* One launched group of one communicator, as a piece of work in a stream. */
#ifndef SDG_SRC_HOST_NCCL_WORK_H
#define SDG_SRC_HOST_NCCL_WORK_H

#include "src/host/nccl/comm.h"

/* Queues `ops` (malloc'ed; taken over even after an error) behind the work in
 * their streams. Work of one communicator runs in the order of launches,
 * whatever the streams. */
ncclResult_t host_work_launch(ncclComm_t comm, host_op_t *ops, int count);

#endif
