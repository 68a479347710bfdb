/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's operations in terms of messages between the ranks. */
#ifndef SDG_SRC_HOST_NCCL_COLLECTIVE_H
#define SDG_SRC_HOST_NCCL_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/host/nccl/net/shm.h"

typedef enum host_op_kind {
  HOST_OP_SEND,
  HOST_OP_RECV,
  HOST_OP_ALL_REDUCE,
  HOST_OP_ALL_GATHER,
  HOST_OP_BROADCAST,
  HOST_OP_REDUCE,
  HOST_OP_REDUCE_SCATTER,
  HOST_OP_ALL_TO_ALL,
  HOST_OP_GATHER,
  HOST_OP_SCATTER,
} host_op_kind_t;

/* One call of the program. Counts are elements, with NCCL's meaning: those of
 * one rank's block if the operation has blocks. */
typedef struct host_op {
  host_op_kind_t kind;
  const void *send;
  void *recv;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root; /* for SEND, RECV: the peer */
  cudaStream_t stream;
  bool scaled;           /* the data is first multiplied by a factor: */
  const void *factor_at; /* its address in device memory or, if NULL, */
  uint64_t factor;       /* its bits in the type */
} host_op_t;

/* Bytes that the operation reads at `send` and writes at `recv` on this rank.
 */
size_t host_op_send_bytes(const host_op_t *op, int rank, int ranks);
size_t host_op_recv_bytes(const host_op_t *op, int rank, int ranks);

/* Runs the operations of one group: first the collectives in their order, then
 * all sends and receives together. Buffers are addresses that this process can
 * use. Sends and receives to the rank itself are matched in order and agree in
 * number and sizes. Returns the results of host_lanes_run. */
ncclResult_t host_ops_run(host_endpoint_t *endpoint, const host_op_t *ops,
                          int count);

#endif
