// SPDX-License-Identifier: Apache-2.0
// The exported operations: they check arguments, return NCCL's codes, and add
// the operation to the group.
#include "src/host/nccl/api.h"
#include "src/host/nccl/group.h"
#include "src/host/nccl/redop.h"
#include "src/host/nccl/reduce.h"

static bool is_reduction(host_op_kind_t kind) {
  return kind == HOST_OP_ALL_REDUCE || kind == HOST_OP_REDUCE ||
         kind == HOST_OP_REDUCE_SCATTER;
}

// Returns the fault of the operation as a text; NULL if it has none.
static const char *fault_of(const host_op_t *op, int rank, int ranks) {
  size_t size = host_type_bytes(op->type);
  if (size == 0)
    return "no such data type";
  if (op->root < 0 || op->root >= ranks)
    return "no such rank";
  if (op->count > PTRDIFF_MAX / size / (size_t)ranks)
    return "count too large";
  if ((!op->send && host_op_send_bytes(op, rank, ranks) > 0) ||
      (!op->recv && host_op_recv_bytes(op, rank, ranks) > 0))
    return "NULL buffer";
  return NULL;
}

// NCCL launches the work of a non-blocking communicator in a thread of its own,
// where the handle means that thread's stream: the work would run unordered.
static ncclResult_t stream_check(const char *function, ncclComm_t comm,
                                 cudaStream_t stream) {
  if (comm->blocking || stream != cudaStreamPerThread)
    return ncclSuccess;
  host_comm_say(NULL,
                "%s: cudaStreamPerThread is another stream in the thread that "
                "launches for a non-blocking communicator",
                function);
  return ncclInvalidUsage;
}

static ncclResult_t submit(const char *function, ncclComm_t comm,
                           host_op_t op) {
  ncclResult_t result = host_comm_usable(comm);
  if (result == ncclSuccess)
    result = stream_check(function, comm, op.stream);
  if (result != ncclSuccess)
    return host_group_fail(result);
  const char *fault = fault_of(&op, comm->rank, comm->ranks);
  if (!fault && is_reduction(op.kind) && !host_redop_apply(comm, &op))
    fault = "no such reduction";
  if (fault) {
    host_comm_say(NULL, "%s: %s", function, fault);
    return host_group_fail(ncclInvalidArgument);
  }
  return host_group_op(comm, &op);
}

#define OP(what, from, to, n, kind_of, reduction, whose, where)                \
  ((host_op_t){.kind = (what),                                                 \
               .send = (from),                                                 \
               .recv = (to),                                                   \
               .count = (n),                                                   \
               .type = (kind_of),                                              \
               .op = (reduction),                                              \
               .root = (whose),                                                \
               .stream = (where)})

ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t type,
                       int peer, ncclComm_t comm, cudaStream_t stream) {
  return submit(
      "ncclSend", comm,
      OP(HOST_OP_SEND, send, NULL, count, type, ncclSum, peer, stream));
}
NCCL_API(ncclSend);

ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t type, int peer,
                       ncclComm_t comm, cudaStream_t stream) {
  return submit(
      "ncclRecv", comm,
      OP(HOST_OP_RECV, NULL, recv, count, type, ncclSum, peer, stream));
}
NCCL_API(ncclRecv);

ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count,
                            ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
  return submit("ncclAllReduce", comm,
                OP(HOST_OP_ALL_REDUCE, send, recv, count, type, op, 0, stream));
}
NCCL_API(ncclAllReduce);

ncclResult_t pncclReduce(const void *send, void *recv, size_t count,
                         ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return submit("ncclReduce", comm,
                OP(HOST_OP_REDUCE, send, recv, count, type, op, root, stream));
}
NCCL_API(ncclReduce);

ncclResult_t pncclReduceScatter(const void *send, void *recv, size_t count,
                                ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream) {
  return submit(
      "ncclReduceScatter", comm,
      OP(HOST_OP_REDUCE_SCATTER, send, recv, count, type, op, 0, stream));
}
NCCL_API(ncclReduceScatter);

ncclResult_t pncclBroadcast(const void *send, void *recv, size_t count,
                            ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream) {
  return submit(
      "ncclBroadcast", comm,
      OP(HOST_OP_BROADCAST, send, recv, count, type, ncclSum, root, stream));
}
NCCL_API(ncclBroadcast);

ncclResult_t pncclBcast(void *buffer, size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return submit("ncclBcast", comm,
                OP(HOST_OP_BROADCAST, buffer, buffer, count, type, ncclSum,
                   root, stream));
}
NCCL_API(ncclBcast);

ncclResult_t pncclAllGather(const void *send, void *recv, size_t count,
                            ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream) {
  return submit(
      "ncclAllGather", comm,
      OP(HOST_OP_ALL_GATHER, send, recv, count, type, ncclSum, 0, stream));
}
NCCL_API(ncclAllGather);

ncclResult_t pncclAlltoAll(const void *send, void *recv, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit(
      "ncclAlltoAll", comm,
      OP(HOST_OP_ALL_TO_ALL, send, recv, count, type, ncclSum, 0, stream));
}
NCCL_API(ncclAlltoAll);

ncclResult_t pncclGather(const void *send, void *recv, size_t count,
                         ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  return submit(
      "ncclGather", comm,
      OP(HOST_OP_GATHER, send, recv, count, type, ncclSum, root, stream));
}
NCCL_API(ncclGather);

ncclResult_t pncclScatter(const void *send, void *recv, size_t count,
                          ncclDataType_t type, int root, ncclComm_t comm,
                          cudaStream_t stream) {
  return submit(
      "ncclScatter", comm,
      OP(HOST_OP_SCATTER, send, recv, count, type, ncclSum, root, stream));
}
NCCL_API(ncclScatter);
