/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a free TCP port for the rendezvous of a test's ranks. */
#ifndef SDG_TESTS_UNIT_FREE_PORT_H
#define SDG_TESTS_UNIT_FREE_PORT_H

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Returns a port that is free now and outside the range of automatic ports, so
 * that no other program gets it before the ranks use it. */
static inline int port_free(void) {
  static unsigned turn;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  unsigned seed = (unsigned)getpid() * 2654435761u + (unsigned)now.tv_nsec;
  for (int i = 0; i < 1000; i++) {
    seed = seed * 1664525u + 1013904223u + turn++;
    int port = 12000 + (int)(seed >> 8) % 20000;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_ANY)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int taken = bind(fd, (const void *)&address, sizeof address);
    close(fd);
    if (taken == 0)
      return port;
  }
  ck_abort_msg("no port is free");
  return 0;
}

#endif
