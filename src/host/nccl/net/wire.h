/* SPDX-License-Identifier: Apache-2.0 */
/* Between machines each rank has a segment of its own. A thread with a
 * connection to every other rank copies between the segments: a slot that this
 * rank has filled appears filled in the receiver's, and one that the receiver
 * has emptied appears free here. The code that moves messages sees no
 * difference. */
#ifndef SDG_SRC_HOST_NCCL_NET_WIRE_H
#define SDG_SRC_HOST_NCCL_NET_WIRE_H

#include "src/host/nccl/net/shm.h"

/* Starts the thread on `endpoint`, a private segment. sockets[r] is the
 * connection with rank r (guarded, see fork.h), -1 for the rank itself. The
 * wire owns them when successful. */
ncclResult_t host_wire_start(host_endpoint_t *endpoint, const int *sockets);

/* Tells the peers that this rank has left, and ends. Data that they have not
 * received by then is lost. */
void host_wire_stop(host_wire_t *wire);

/* Wakes the wire's thread because the endpoint has new data for the peers. Any
 * thread may call it. */
void host_wire_poke(host_wire_t *wire);

/* Returns true when the connection with `peer` has ended. */
bool host_wire_gone(const host_wire_t *wire, int peer);

/* Returns true when every slot filled so far lies in its receiver's segment, or
 * its receiver has ended: then this process may end. Only the thread that runs
 * the work may call it. */
bool host_wire_settled(const host_wire_t *wire);

#endif
