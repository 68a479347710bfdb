/* SPDX-License-Identifier: Apache-2.0 */
/* The network between machines: an identifier of this machine, the address that
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

/* Returns a number that is equal in two processes if they can share memory
 * through a local socket. It is made from the machine's boot (or NCCL_HOSTID)
 * and its network namespace. */
uint64_t host_net_machine(void);

/* Returns true if ranks of other machines may join: NCCL_SOCKET_IFNAME is set,
 * or SUNDOG_RENDEZVOUS is tcp://. */
bool host_net_asked(void);

/* Opens a non-blocking listening socket at any port of the address that
 * NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY select; -1 if no address matches.
 */
int host_net_listen(host_address_t *out_address);

/* Begins a connection. Returns its non-blocking socket; -1 after a failure. */
int host_net_connect_begin(const host_address_t *address);
/* Sends small messages at once, and makes the loss of the other machine an
 * error after some seconds. */
void host_net_tune(int fd);

#endif
