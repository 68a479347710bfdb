/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the ranks of several machines, each with every other: every rank
 * listens, and connects to the ranks below it. */
#ifndef SDG_SRC_HOST_NCCL_NET_MESH_H
#define SDG_SRC_HOST_NCCL_NET_MESH_H

#include "src/host/nccl/net/packet.h"
#include "src/host/nccl/net/wire.h"

typedef struct host_mesh {
  int listener;
  int fd[HOST_RANKS_MAX]; /* connections, -1: none; guarded (fork.h) */
  host_address_t place[HOST_RANKS_MAX];
} host_mesh_t;

void host_mesh_init(host_mesh_t *mesh);
/* Closes the descriptors that the mesh still owns. */
void host_mesh_fini(host_mesh_t *mesh);

/* Listens at an address of this machine, returned in *out_address. */
ncclResult_t host_mesh_listen(host_mesh_t *mesh, host_address_t *out_address);

/* Connects with all other ranks, whose places are known. Drops connections that
 * do not prove the secret of the offer, and the oldest silent ones if there are
 * too many. Returns ncclRemoteError when `maker`, the connection to the id's
 * maker, becomes readable, which means a failure; HOST_STOPPED. */
ncclResult_t host_mesh_connect(host_mesh_t *mesh, const host_offer_t *offer,
                               int rank, int ranks, int maker,
                               const atomic_bool *stop);

/* Waits until a connection that has begun is established. */
ncclResult_t host_mesh_await_connection(int fd, const atomic_bool *stop);

#endif
