/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread has asked for between ncclGroupStart and ncclGroupEnd, and how
 * it gets into streams. */
#ifndef SDG_SRC_HOST_NCCL_GROUP_H
#define SDG_SRC_HOST_NCCL_GROUP_H

#include "src/host/nccl/comm.h"

ncclResult_t host_group_start(void);

/* Ends one level; the outermost launches everything: all operations of a
 * communicator as one piece of work on the stream of the first of them, which
 * their other streams wait for and are waited for by. After an error inside the
 * group nothing is launched and the error is returned. */
ncclResult_t host_group_end(void);

/* Adds a checked operation; launches it at once outside of groups. */
ncclResult_t host_group_op(ncclComm_t comm, const host_op_t *op);

/* Adds a communicator to be joined; joins at once outside of groups. A
 * blocking one that fails is freed and *comm set to NULL. */
ncclResult_t host_group_join(ncclComm_t *comm);

/* Makes the group of this thread, if there is one, fail with an error that a
 * call inside it returned. Returns the error. */
ncclResult_t host_group_fail(ncclResult_t error);

#endif
