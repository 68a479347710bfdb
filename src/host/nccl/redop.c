// SPDX-License-Identifier: Apache-2.0
// Reductions made by the program: sums of values first multiplied by a number
// of each rank. Also registered memory, which needs nothing here.
#include "src/host/nccl/redop.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/nccl/api.h"
#include "src/host/nccl/group.h"
#include "src/host/nccl/reduce.h"

static ncclResult_t invalid(const char *function, const char *what) {
  host_comm_say(NULL, "%s: %s", function, what);
  return host_group_fail(ncclInvalidArgument);
}

// Returns the communicator's operator, or NULL. Call with comm->lock held.
static host_redop_t *redop_of(ncclComm_t comm, ncclRedOp_t op) {
  size_t at = (size_t)op - ncclNumOps;
  return (unsigned)op >= ncclNumOps && at < HOST_REDOPS_MAX &&
                 comm->redop[at].used
             ? &comm->redop[at]
             : NULL;
}

bool host_redop_apply(ncclComm_t comm, host_op_t *op) {
  if ((unsigned)op->op < ncclNumOps)
    return true;
  pthread_mutex_lock(&comm->lock);
  const host_redop_t *found = redop_of(comm, op->op);
  bool good = found && found->type == op->type;
  if (good) {
    op->op = ncclSum;
    op->scaled = true;
    op->factor_at = found->at;
    op->factor = found->factor;
  }
  pthread_mutex_unlock(&comm->lock);
  return good;
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
                                       ncclDataType_t datatype,
                                       ncclScalarResidence_t residence,
                                       ncclComm_t comm) {
  ncclResult_t result = host_comm_usable(comm);
  size_t size = host_type_bytes(datatype);
  if (result != ncclSuccess)
    return host_group_fail(result);
  if (!op || !scalar || size == 0 ||
      (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
    return invalid("ncclRedOpCreatePreMulSum", "no such operator");
  host_redop_t made = {.used = true, .type = datatype};
  if (residence == ncclScalarDevice)
    made.at = scalar;
  else
    memcpy(&made.factor, scalar, size);
  pthread_mutex_lock(&comm->lock);
  int at = 0;
  while (at < HOST_REDOPS_MAX && comm->redop[at].used)
    at++;
  if (at < HOST_REDOPS_MAX) {
    comm->redop[at] = made;
    *op = (ncclRedOp_t)(ncclNumOps + at);
  }
  pthread_mutex_unlock(&comm->lock);
  if (at == HOST_REDOPS_MAX) {
    host_comm_say(NULL, "ncclRedOpCreatePreMulSum: more than %d operators",
                  HOST_REDOPS_MAX);
    return host_group_fail(ncclInternalError);
  }
  return ncclSuccess;
}
NCCL_API(ncclRedOpCreatePreMulSum);

// Operations that use it have a copy.
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  ncclResult_t result = host_comm_check(comm);
  if (result != ncclSuccess)
    return host_group_fail(result);
  pthread_mutex_lock(&comm->lock);
  host_redop_t *found = redop_of(comm, op);
  if (found)
    found->used = false;
  pthread_mutex_unlock(&comm->lock);
  return found ? ncclSuccess : invalid("ncclRedOpDestroy", "no such operator");
}
NCCL_API(ncclRedOpDestroy);

// ---- registered memory ----

// Returns the object of a handle.
typedef struct range {
  ncclComm_t comm;
  void *base;
  size_t bytes;
} range_t;

static ncclResult_t range_create(const char *function, ncclComm_t comm,
                                 void *base, size_t bytes, void *out_handle) {
  ncclResult_t result = host_comm_usable(comm);
  if (result != ncclSuccess)
    return host_group_fail(result);
  if (!base || bytes == 0 || !out_handle)
    return invalid(function, "nothing to register");
  range_t *range = malloc(sizeof *range);
  if (!range)
    return host_group_fail(ncclSystemError);
  *range = (range_t){comm, base, bytes};
  memcpy(out_handle, &range, sizeof(range));
  return ncclSuccess;
}

static ncclResult_t range_destroy(const char *function, ncclComm_t comm,
                                  void *handle) {
  ncclResult_t result = host_comm_check(comm);
  range_t *range = handle;
  if (result != ncclSuccess)
    return host_group_fail(result);
  if (!range)
    return ncclSuccess;
  if (range->comm != comm)
    return invalid(function, "of another communicator");
  free(range);
  return ncclSuccess;
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size,
                               void **handle) {
  return range_create("ncclCommRegister", comm, buff, size, handle);
}
NCCL_API(ncclCommRegister);

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle) {
  return range_destroy("ncclCommDeregister", comm, handle);
}
NCCL_API(ncclCommDeregister);

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                     ncclWindow_t *win, int winFlags) {
  if ((winFlags & ~NCCL_WIN_COLL_SYMMETRIC) != 0)
    return invalid("ncclCommWindowRegister", "no such flags");
  return range_create("ncclCommWindowRegister", comm, buff, size, win);
}
NCCL_API(ncclCommWindowRegister);

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return range_destroy("ncclCommWindowDeregister", comm, win);
}
NCCL_API(ncclCommWindowDeregister);
