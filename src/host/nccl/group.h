/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a thread between ncclGroupStart and ncclGroupEnd, and their
 * launch. */
#ifndef SDG_SRC_HOST_NCCL_GROUP_H
#define SDG_SRC_HOST_NCCL_GROUP_H

#include "src/host/nccl/comm.h"

ncclResult_t host_group_start(void);

/* Ends one level. The outermost end launches everything: all operations of one
 * communicator become one piece of work on the stream of its first operation.
 * This work starts after the earlier work of the operations' other streams, and
 * these streams wait for it. After an error inside the group, launches nothing
 * and returns the error. */
ncclResult_t host_group_end(void);

/* Adds a checked operation; outside of groups, launches it at once. */
ncclResult_t host_group_op(ncclComm_t comm, const host_op_t *op);

/* Adds a communicator to be joined; outside of groups, joins at once. If a
 * blocking one fails it is freed and *comm set to NULL. */
ncclResult_t host_group_join(ncclComm_t *comm);

/* Makes this thread's group, if one is open, fail with the error that a call
 * inside it returned. Returns the error. */
ncclResult_t host_group_fail(ncclResult_t error);

#endif
