/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that the ranks of one node exchange over the rendezvous
 * socket. */
#ifndef SDG_SRC_BOOTSTRAP_HANDSHAKE_H
#define SDG_SRC_BOOTSTRAP_HANDSHAKE_H

#include <stdint.h>
#include <sys/un.h>

#include "src/base/status.h"
#include "src/bootstrap/launcher.h"

#define SDG_HELLO_MAGIC UINT64_C(0x7364672d68656c6f) /* "sdg-helo" */

enum { SDG_ANSWER_TEXT_BYTES = 488 };

/* The first message from a rank to rank 0. Both are on one machine, so they
 * have the same byte order. */
typedef struct sdg_hello {
  uint64_t magic;
  uint32_t layout; /* sdg_shm_layout() */
  uint32_t size;
  uint32_t rank;
  uint32_t reserved;
  char launch[SDG_LAUNCH_BYTES]; /* sdg_launch_name() */
} sdg_hello_t;

/* Rank 0's answer; if status is SDG_OK, the segment's descriptor is
 * attached. */
typedef struct sdg_answer {
  uint64_t magic;
  uint32_t layout;
  uint32_t status;
  char text[SDG_ANSWER_TEXT_BYTES];
} sdg_answer_t;

/* Makes the socket address of `path`, which is absolute. If the path is too
 * long for an address, its folder is opened as *out_folder (otherwise -1) and
 * the address goes through that; the caller closes it after it has used the
 * address. SDG_E_RENDEZVOUS. */
sdg_status_t sdg_handshake_address(const char *path, struct sockaddr_un *out,
                                   int *out_folder) SDG_MUST_CHECK;
/* Returns a non-blocking stream socket, or -1 with errno. */
int sdg_handshake_socket(void);
/* Returns 1 if the process at the other end belonged to this user when it
 * connected. */
int sdg_handshake_same_user(int fd);

#endif
