// SPDX-License-Identifier: Apache-2.0
// Turns collectives and groups of sends and receives into lanes. Every rank
// sends to every other rank directly: in shared memory a relay saves nothing.
#include "src/host/nccl/collective.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/nccl/net/progress.h"
#include "src/host/nccl/reduce.h"

// All-reduce up to this size: every rank sends all its data to all others and
// reduces by itself, in one step instead of two. The bits are the same.
enum { ONE_HOP_BYTES = 8 << 10 };

size_t host_op_send_bytes(const host_op_t *op, int rank, int ranks) {
  size_t bytes = op->count * host_type_bytes(op->type);
  switch (op->kind) {
  case HOST_OP_RECV:
    return 0;
  case HOST_OP_BROADCAST:
    return rank == op->root ? bytes : 0;
  case HOST_OP_REDUCE_SCATTER:
  case HOST_OP_ALL_TO_ALL:
    return bytes * (size_t)ranks;
  case HOST_OP_SCATTER:
    return rank == op->root ? bytes * (size_t)ranks : 0;
  default:
    return bytes;
  }
}

size_t host_op_recv_bytes(const host_op_t *op, int rank, int ranks) {
  size_t bytes = op->count * host_type_bytes(op->type);
  switch (op->kind) {
  case HOST_OP_SEND:
    return 0;
  case HOST_OP_REDUCE:
    return rank == op->root ? bytes : 0;
  case HOST_OP_ALL_GATHER:
  case HOST_OP_ALL_TO_ALL:
    return bytes * (size_t)ranks;
  case HOST_OP_GATHER:
    return rank == op->root ? bytes * (size_t)ranks : 0;
  default:
    return bytes;
  }
}

// The lanes of one collective under construction.
typedef struct plan {
  host_endpoint_t *endpoint;
  const host_op_t *op;
  uint32_t signature;
  host_lane_t *lanes; // room for 4 per rank
  int count;
} plan_t;

// A number made of the settings that all ranks must have in common, besides
// sizes. Sends and receives may differ even in type.
static uint32_t op_signature(const host_op_t *op) {
  if (op->kind == HOST_OP_SEND || op->kind == HOST_OP_RECV)
    return 1;
  return (uint32_t)op->kind << 24 | (uint32_t)op->type << 16 |
         (uint32_t)op->op << 8 | (uint32_t)op->root;
}

static host_lane_t *plan_lane(plan_t *plan, host_lane_kind_t kind, int peer,
                              const void *source, void *target, size_t bytes) {
  host_lane_t *lane = &plan->lanes[plan->count++];
  *lane = (host_lane_t){.kind = kind,
                        .peer = peer,
                        .signature = plan->signature,
                        .source = source,
                        .target = target,
                        .bytes = bytes,
                        .type = plan->op->type,
                        .op = plan->op->op};
  return lane;
}

// Adds lanes to or from all other ranks. Block p of the buffer is rank p's,
// `stride` bytes apart; with stride 0 all ranks have the same block.
static void plan_send_all(plan_t *plan, const void *source, size_t stride,
                          size_t bytes, const host_lane_t *after) {
  host_endpoint_t *e = plan->endpoint;
  for (int peer = 0; peer < e->ranks; peer++)
    if (peer != e->rank)
      plan_lane(plan, HOST_LANE_SEND, peer,
                bytes ? (const char *)source + (size_t)peer * stride : NULL,
                NULL, bytes)
          ->after = after;
}

static void plan_recv_all(plan_t *plan, void *target, size_t stride,
                          size_t bytes) {
  host_endpoint_t *e = plan->endpoint;
  for (int peer = 0; peer < e->ranks; peer++)
    if (peer != e->rank)
      plan_lane(plan, HOST_LANE_RECV, peer, NULL,
                bytes ? (char *)target + (size_t)peer * stride : NULL, bytes);
}

static void copy_own(void *target, const void *source, size_t bytes) {
  if (bytes > 0 && target != source)
    memmove(target, source, bytes);
}

static const char *at(const void *buffer, size_t offset) {
  return buffer ? (const char *)buffer + offset : NULL;
}

static void plan_all_reduce(plan_t *plan) {
  const host_op_t *op = plan->op;
  host_endpoint_t *e = plan->endpoint;
  size_t size = host_type_bytes(op->type);
  size_t bytes = op->count * size;
  if (bytes <= ONE_HOP_BYTES) {
    plan_send_all(plan, op->send, 0, bytes, NULL);
    plan_lane(plan, HOST_LANE_REDUCE, -1, op->send, op->recv, bytes)->last =
        true;
    return;
  }
  // Rank p reduces block p and sends it while it goes on reducing. The chunks
  // of both passes have the same limits, so in place a chunk is overwritten by
  // its result only after it was sent.
  size_t ranks = (size_t)e->ranks;
  size_t block = (op->count + ranks - 1) / ranks * size;
  size_t first[HOST_RANKS_MAX + 1];
  for (size_t p = 0; p <= ranks; p++)
    first[p] = p * block < bytes ? p * block : bytes;
  size_t own = first[e->rank];
  size_t own_bytes = first[e->rank + 1] - own;
  for (int p = 0; p < e->ranks; p++)
    if (p != e->rank)
      plan_lane(plan, HOST_LANE_SEND, p, at(op->send, first[p]), NULL,
                first[p + 1] - first[p]);
  const host_lane_t *reduced =
      plan_lane(plan, HOST_LANE_REDUCE, -1, at(op->send, own),
                (char *)op->recv + own, own_bytes);
  plan_send_all(plan, (char *)op->recv + own, 0, own_bytes, reduced);
  for (int p = 0; p < e->ranks; p++)
    if (p != e->rank)
      plan_lane(plan, HOST_LANE_RECV, p, NULL, (char *)op->recv + first[p],
                first[p + 1] - first[p]);
}

static void plan_collective(plan_t *plan) {
  const host_op_t *op = plan->op;
  host_endpoint_t *e = plan->endpoint;
  size_t bytes = op->count * host_type_bytes(op->type);
  size_t own = (size_t)e->rank * bytes;
  bool is_root = e->rank == op->root;
  switch (op->kind) {
  case HOST_OP_ALL_REDUCE:
    plan_all_reduce(plan);
    break;
  case HOST_OP_ALL_GATHER:
    copy_own((char *)op->recv + own, op->send, bytes);
    plan_send_all(plan, op->send, 0, bytes, NULL);
    plan_recv_all(plan, op->recv, bytes, bytes);
    break;
  case HOST_OP_BROADCAST:
    if (is_root) {
      copy_own(op->recv, op->send, bytes);
      plan_send_all(plan, op->send, 0, bytes, NULL);
    } else {
      plan_lane(plan, HOST_LANE_RECV, op->root, NULL, op->recv, bytes);
    }
    break;
  case HOST_OP_REDUCE:
    if (is_root)
      plan_lane(plan, HOST_LANE_REDUCE, -1, op->send, op->recv, bytes);
    else
      plan_lane(plan, HOST_LANE_SEND, op->root, op->send, NULL, bytes);
    break;
  case HOST_OP_REDUCE_SCATTER:
    plan_send_all(plan, op->send, bytes, bytes, NULL);
    plan_lane(plan, HOST_LANE_REDUCE, -1, at(op->send, own), op->recv, bytes);
    break;
  case HOST_OP_ALL_TO_ALL:
    copy_own((char *)op->recv + own, at(op->send, own), bytes);
    plan_send_all(plan, op->send, bytes, bytes, NULL);
    plan_recv_all(plan, op->recv, bytes, bytes);
    break;
  case HOST_OP_GATHER:
    if (is_root) {
      copy_own((char *)op->recv + own, op->send, bytes);
      plan_recv_all(plan, op->recv, bytes, bytes);
    } else {
      plan_lane(plan, HOST_LANE_SEND, op->root, op->send, NULL, bytes);
    }
    break;
  case HOST_OP_SCATTER:
    if (is_root) {
      copy_own(op->recv, at(op->send, own), bytes);
      plan_send_all(plan, op->send, bytes, bytes, NULL);
    } else {
      plan_lane(plan, HOST_LANE_RECV, op->root, NULL, op->recv, bytes);
    }
    break;
  case HOST_OP_SEND:
  case HOST_OP_RECV:
    break;
  }
}

static bool is_message(const host_op_t *op) {
  return op->kind == HOST_OP_SEND || op->kind == HOST_OP_RECV;
}

// Matches the i-th send to this rank with the i-th receive from it.
static void copy_to_self(const host_op_t *ops, int count, int rank) {
  int r = 0;
  for (int s = 0; s < count; s++) {
    if (ops[s].kind != HOST_OP_SEND || ops[s].root != rank)
      continue;
    while (ops[r].kind != HOST_OP_RECV || ops[r].root != rank)
      r++;
    copy_own(ops[r].recv, ops[s].send,
             ops[s].count * host_type_bytes(ops[s].type));
    r++;
  }
}

static ncclResult_t run_messages(plan_t *plan, const host_op_t *ops,
                                 int count) {
  int rank = plan->endpoint->rank;
  copy_to_self(ops, count, rank);
  plan->count = 0;
  for (int i = 0; i < count; i++) {
    const host_op_t *op = &ops[i];
    if (!is_message(op) || op->root == rank)
      continue;
    plan->op = op;
    plan->signature = op_signature(op);
    plan_lane(plan, op->kind == HOST_OP_SEND ? HOST_LANE_SEND : HOST_LANE_RECV,
              op->root, op->send, op->recv,
              op->count * host_type_bytes(op->type));
  }
  return host_lanes_run(plan->endpoint, plan->lanes, plan->count);
}

ncclResult_t host_ops_run(host_endpoint_t *endpoint, const host_op_t *ops,
                          int count) {
  int room = 4 * endpoint->ranks > count ? 4 * endpoint->ranks : count;
  plan_t plan = {.endpoint = endpoint,
                 .lanes = malloc((size_t)room * sizeof(host_lane_t))};
  if (!plan.lanes) {
    // The peers wait for an operation that this rank cannot run.
    host_fault_set(endpoint, (host_fault_t){HOST_FAULT_SKIPPED, endpoint->rank,
                                            endpoint->rank});
    return ncclSystemError;
  }
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < count && result == ncclSuccess; i++) {
    if (is_message(&ops[i]))
      continue;
    plan.op = &ops[i];
    plan.signature = op_signature(&ops[i]);
    plan.count = 0;
    plan_collective(&plan);
    result = host_lanes_run(endpoint, plan.lanes, plan.count);
  }
  if (result == ncclSuccess)
    result = run_messages(&plan, ops, count);
  free(plan.lanes);
  return result;
}
