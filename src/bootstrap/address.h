/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks on several machines meet: tcp://host:port, and the addresses of
 * its ends. */
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

/* What tcp://host:port means here. */
typedef struct sdg_meeting_point {
  sdg_address_t address[SDG_ADDRESSES_MAX];
  int count;
  bool numeric; /* the host is an address, not a name */
} sdg_meeting_point_t;

/* Whether the text begins with tcp://. */
bool sdg_address_is_tcp(const char *rendezvous);

/* tcp://name:port, tcp://1.2.3.4:port or tcp://[::1]:port; may ask a name
 * server. SDG_E_RENDEZVOUS. */
sdg_status_t sdg_address_find(const char *rendezvous,
                              sdg_meeting_point_t *out_point) SDG_MUST_CHECK;

/* A socket that listens, non-blocking; -1 with errno. */
int sdg_address_listen(const sdg_address_t *address);
/* The same on every address of this machine; port 0: any, told in *out_port.
 */
int sdg_address_listen_any(uint16_t port, uint16_t *out_port);

/* A non-blocking socket that has begun to connect; -1 with errno. */
int sdg_address_connect(const sdg_address_t *address);

/* Makes the kernel give up a connection after `silent_s` seconds without a sign
 * of life of the other machine, and send at once. A process that is merely
 * stopped is not silent: its kernel answers. */
void sdg_address_tune(int fd, double silent_s);

bool sdg_address_is_loopback(const sdg_address_t *address);
uint16_t sdg_address_port(const sdg_address_t *address);
void sdg_address_set_port(sdg_address_t *address, uint16_t port);
/* "1.2.3.4:5" or "[::1]:5". */
const char *sdg_address_text(const sdg_address_t *address, char *out,
                             size_t out_bytes);

#endif
