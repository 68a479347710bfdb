/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks on several machines come to have a connection each with each:
 * everybody listens, and calls those below it. */
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
/* Closes what is still the mesh's. */
void host_mesh_fini(host_mesh_t *mesh);

/* Listens at an address of this machine, told in *out_address. */
ncclResult_t host_mesh_listen(host_mesh_t *mesh, host_address_t *out_address);

/* Connects with all other ranks, whose places are known. Who does not know the
 * secret of the offer is dropped; who says nothing gives way to others. Ends
 * early with ncclRemoteError when `maker`, the connection to the id's maker,
 * has something to say, which can only be a failure; HOST_STOPPED. */
ncclResult_t host_mesh_connect(host_mesh_t *mesh, const host_offer_t *offer,
                               int rank, int ranks, int maker,
                               const atomic_bool *stop);

/* Waits until a connection that has begun is there. */
ncclResult_t host_mesh_await_connection(int fd, const atomic_bool *stop);

#endif
