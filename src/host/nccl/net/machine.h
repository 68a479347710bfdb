/* SPDX-License-Identifier: Apache-2.0 */
/* The network between machines: which machine this is, which of its addresses
 * others should use, and TCP sockets. */
#ifndef SDG_SRC_HOST_NCCL_NET_MACHINE_H
#define SDG_SRC_HOST_NCCL_NET_MACHINE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

typedef union host_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} host_address_t;

/* Equal in two processes that can share memory through a local socket: the
 * machine's boot and its network namespace, or NCCL_HOSTID in place of the
 * boot. */
uint64_t host_net_machine(void);

/* True where ranks of other machines may come: NCCL_SOCKET_IFNAME is set, or
 * SUNDOG_RENDEZVOUS is tcp://. */
bool host_net_asked(void);

/* Listens, non-blocking, at this machine's address as NCCL_SOCKET_IFNAME and
 * NCCL_SOCKET_FAMILY choose it, at any port; -1 if there is none. */
int host_net_listen(host_address_t *out_address);

/* A non-blocking socket that has begun to connect; -1 if it cannot. */
int host_net_connect_begin(const host_address_t *address);
/* Makes small messages leave at once, and the loss of the other machine an
 * error after some seconds. */
void host_net_tune(int fd);

#endif
