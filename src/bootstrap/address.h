/* SPDX-License-Identifier: Apache-2.0 */
/* TCP addresses where ranks on several machines meet: reads tcp://host:port,
 * listens and connects. */
#ifndef SDG_SRC_BOOTSTRAP_ADDRESS_H
#define SDG_SRC_BOOTSTRAP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/base/status.h"

typedef union sdg_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} sdg_address_t;

enum { SDG_ADDRESSES_MAX = 8 };

/* The addresses that tcp://host:port resolves to on this machine. */
typedef struct sdg_meeting_point {
  sdg_address_t address[SDG_ADDRESSES_MAX];
  int count;
  bool numeric; /* the host is an address, not a name */
} sdg_meeting_point_t;

/* Resolves tcp://name:port, tcp://1.2.3.4:port or tcp://[::1]:port; may ask a
 * name server. SDG_E_RENDEZVOUS. */
sdg_status_t sdg_address_find(const char *rendezvous,
                              sdg_meeting_point_t *out_point) SDG_MUST_CHECK;

/* Returns a listening, non-blocking socket; -1 with errno. */
int sdg_address_listen(const sdg_address_t *address);
/* The same on every address of this machine. Port 0: the kernel chooses a
 * port; *out_port receives it. */
int sdg_address_listen_any(uint16_t port, uint16_t *out_port);
/* Returns a socket that keeps this port (0: a free one), *out_port, from other
 * programs until it is closed; -1 with errno. Meanwhile the functions above can
 * listen there. */
int sdg_address_reserve(uint16_t port, uint16_t *out_port);

/* Returns a non-blocking socket that has started to connect; -1 with errno. */
int sdg_address_connect(const sdg_address_t *address);

/* Makes the kernel send at once, and end the connection after `silent_s`
 * seconds without a sign of life from the other machine. A stopped process is
 * not silent: its kernel still answers. */
void sdg_address_tune(int fd, double silent_s);

bool sdg_address_is_loopback(const sdg_address_t *address);
uint16_t sdg_address_port(const sdg_address_t *address);
void sdg_address_set_port(sdg_address_t *address, uint16_t port);
/* Writes "1.2.3.4:5" or "[::1]:5". */
const char *sdg_address_text(const sdg_address_t *address, char *out,
                             size_t out_bytes);

#endif
