// SPDX-License-Identifier: Apache-2.0
// TCP addresses: parses what the user writes, makes sockets that listen and
// connect.
#include "src/bootstrap/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"

// Splits "host:port" or "[host]:port" into two; false if the text is neither.
static bool text_cut(const char *text, char *host, size_t host_bytes,
                     const char **out_port) {
  const char *end = NULL;
  if (*text == '[') {
    end = strchr(++text, ']');
    if (!end || end[1] != ':')
      return false;
    *out_port = end + 2;
  } else {
    end = strchr(text, ':');
    if (!end)
      return false;
    *out_port = end + 1;
  }
  if (end == text || (size_t)(end - text) >= host_bytes)
    return false;
  memcpy(host, text, (size_t)(end - text));
  host[end - text] = '\0';
  return true;
}

sdg_status_t sdg_address_find(const char *rendezvous,
                              sdg_meeting_point_t *out_point) {
  char host[256], *end;
  const char *port = "";
  long number = 0;
  bool cut = text_cut(rendezvous + strlen("tcp://"), host, sizeof host, &port);
  if (cut && *port >= '0' && *port <= '9')
    number = strtol(port, &end, 10);
  if (number < 1 || number > 65535 || *end)
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "%.300s is not tcp://HOST:PORT, port 1 to 65535",
                    rendezvous);
  struct addrinfo hints = {.ai_family = AF_UNSPEC,
                           .ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  int why = getaddrinfo(host, port, &hints, &found);
  out_point->numeric = why == 0;
  if (why != 0) {
    hints.ai_flags = AI_NUMERICSERV;
    why = getaddrinfo(host, port, &hints, &found);
  }
  if (why != 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "%.300s: %s: %s", rendezvous, host,
                    gai_strerror(why));
  out_point->count = 0;
  for (struct addrinfo *a = found; a && out_point->count < SDG_ADDRESSES_MAX;
       a = a->ai_next) {
    sdg_address_t *to = &out_point->address[out_point->count];
    if (a->ai_addrlen > sizeof *to)
      continue;
    memset(to, 0, sizeof *to);
    memcpy(to, a->ai_addr, a->ai_addrlen);
    out_point->count++;
  }
  freeaddrinfo(found);
  return SDG_OK;
}

static socklen_t bytes_of(const sdg_address_t *address) {
  return address->any.sa_family == AF_INET6 ? sizeof address->v6
                                            : sizeof address->v4;
}

static int socket_open(int family) {
  return sdg_fd_raise(
      socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Binds, and listens unless the port is only reserved.
static int bind_to(int fd, const sdg_address_t *address, bool listens) {
  const int on = 1;
  if (fd >= 0 &&
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(fd, &address->any, bytes_of(address)) == 0 &&
      (!listens || listen(fd, 128) == 0))
    return fd;
  int why = errno;
  if (fd >= 0)
    close(fd);
  errno = why;
  return -1;
}

int sdg_address_listen(const sdg_address_t *address) {
  return bind_to(socket_open(address->any.sa_family), address, true);
}

static int bind_any(uint16_t port, bool listens, uint16_t *out_port) {
  const int off = 0;
  sdg_address_t address = {.v6 = {.sin6_family = AF_INET6,
                                  .sin6_port = htons(port),
                                  .sin6_addr = in6addr_any}};
  int fd = socket_open(AF_INET6);
  // One socket for both IPv4 and IPv6, if the machine has both.
  if (fd >= 0)
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  fd = bind_to(fd, &address, listens);
  if (fd < 0 && errno != EADDRINUSE) {
    address = (sdg_address_t){.v4 = {.sin_family = AF_INET,
                                     .sin_port = htons(port),
                                     .sin_addr = {htonl(INADDR_ANY)}}};
    fd = bind_to(socket_open(AF_INET), &address, listens);
  }
  socklen_t bytes = sizeof address;
  if (fd >= 0 && getsockname(fd, &address.any, &bytes) == 0)
    *out_port = sdg_address_port(&address);
  return fd;
}

int sdg_address_listen_any(uint16_t port, uint16_t *out_port) {
  return bind_any(port, true, out_port);
}

int sdg_address_reserve(uint16_t port, uint16_t *out_port) {
  return bind_any(port, false, out_port);
}

int sdg_address_connect(const sdg_address_t *address) {
  int fd = socket_open(address->any.sa_family);
  if (fd < 0 || connect(fd, &address->any, bytes_of(address)) == 0 ||
      errno == EINPROGRESS)
    return fd;
  int why = errno;
  close(fd);
  errno = why;
  return -1;
}

void sdg_address_tune(int fd, double silent_s) {
  const int on = 1, probes = 2;
  int idle_s = silent_s > 4 ? (int)(silent_s / 2) : 1;
  int each_s = silent_s > 8 ? (int)(silent_s / 4) : 1;
  unsigned limit_ms = (unsigned)(silent_s * 1000);
  // If the kernel refuses one of these options, it detects an unreachable
  // machine later or never; then the timeouts of the waiting ranks apply.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each_s, sizeof each_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms,
                   sizeof limit_ms);
}

bool sdg_address_is_loopback(const sdg_address_t *address) {
  const unsigned char *byte = address->v6.sin6_addr.s6_addr;
  if (address->any.sa_family == AF_INET)
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
  if (IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
    return byte[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

uint16_t sdg_address_port(const sdg_address_t *address) {
  return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port
                                                  : address->v4.sin_port);
}

void sdg_address_set_port(sdg_address_t *address, uint16_t port) {
  if (address->any.sa_family == AF_INET6)
    address->v6.sin6_port = htons(port);
  else
    address->v4.sin_port = htons(port);
}

const char *sdg_address_text(const sdg_address_t *address, char *out,
                             size_t out_bytes) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address->any.sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
    snprintf(out, out_bytes, "[%s]:%u", host, sdg_address_port(address));
  } else {
    inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
    snprintf(out, out_bytes, "%s:%u", host, sdg_address_port(address));
  }
  return out;
}
