/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that the program makes for one communicator. */
#ifndef SDG_SRC_HOST_NCCL_REDOP_H
#define SDG_SRC_HOST_NCCL_REDOP_H

#include "src/host/nccl/comm.h"

/* Replaces an operator made by the program by its factor and sum; false if the
 * communicator has no operator with this number and type. */
bool host_redop_apply(ncclComm_t comm, host_op_t *op);

#endif
