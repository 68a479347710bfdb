/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a set of messages of one rank, all in progress together, through the
 * rings of a communicator. */
#ifndef SDG_SRC_HOST_NCCL_NET_PROGRESS_H
#define SDG_SRC_HOST_NCCL_NET_PROGRESS_H

#include "src/host/nccl/net/shm.h"

typedef enum host_lane_kind {
  HOST_LANE_SEND,
  HOST_LANE_RECV,
  HOST_LANE_REDUCE, /* from all peers at once, combined in the order of ranks */
} host_lane_kind_t;

/* One message, or one n-way reduction. Lanes to one peer, and lanes from one
 * peer, are served in the order of the array. A message of 0 bytes is sent as
 * one empty chunk, so that sizes are compared too. */
typedef struct host_lane {
  host_lane_kind_t kind;
  int peer;
  uint32_t signature;
  const char *source; /* SEND, REDUCE: this rank's data */
  char *target;       /* RECV, REDUCE */
  size_t bytes;
  ncclDataType_t type; /* REDUCE */
  ncclRedOp_t op;
  /* SEND: `source` is the result of this reduction, available chunk by chunk;
   * or NULL. */
  const struct host_lane *after;
  bool last; /* REDUCE: `target` may be a buffer that is being sent, so a chunk
                is written only after it was sent */
  /* Used by host_lanes_run. */
  size_t done;
  bool finished;
  struct host_lane *next;
} host_lane_t;

/* Runs all lanes to their end. At most one is REDUCE; data received from the
 * same peer by RECV then follows it. No lane has this rank as its peer. Returns
 * ncclSuccess, HOST_STOPPED after host_endpoint_stop, or the code of the
 * communicator's fault. When it fails, the targets of lanes that did not finish
 * are filled with bytes 0xff (NaN in every floating type), so that nobody takes
 * them for data. */
ncclResult_t host_lanes_run(host_endpoint_t *endpoint, host_lane_t *lanes,
                            int count);

#endif
