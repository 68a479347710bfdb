/* SPDX-License-Identifier: Apache-2.0 */
/* Between machines each rank has a segment of its own, and a thread with a
 * connection to every other rank makes the segments alike: a slot that this
 * rank has filled appears filled in the receiver's, and one that the receiver
 * has emptied appears free here. What moves messages sees no difference. */
#ifndef SDG_SRC_HOST_NCCL_NET_WIRE_H
#define SDG_SRC_HOST_NCCL_NET_WIRE_H

#include "src/host/nccl/net/shm.h"

/* Starts the thread on `endpoint`, a private segment. sockets[r] is the
 * connection with rank r (guarded, see fork.h), -1 for the rank itself; they
 * are the wire's when successful. */
ncclResult_t host_wire_start(host_endpoint_t *endpoint, const int *sockets);

/* Tells the peers that this rank has left and ends; what they have not fetched
 * by then is lost. */
void host_wire_stop(host_wire_t *wire);

/* The endpoint has something new for the peers. Any thread. */
void host_wire_poke(host_wire_t *wire);

/* True when the connection with `peer` has ended. */
bool host_wire_gone(const host_wire_t *wire, int peer);

/* True when every slot that was filled so far lies in its receiver's segment,
 * or its receiver is gone: then this process may end. Of the thread that runs
 * the work. */
bool host_wire_settled(const host_wire_t *wire);

#endif
