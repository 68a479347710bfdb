/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of one node say to each other over the rendezvous socket. */
#ifndef SDG_SRC_BOOTSTRAP_HANDSHAKE_H
#define SDG_SRC_BOOTSTRAP_HANDSHAKE_H

#include <stdint.h>
#include <sys/un.h>

#include "src/base/status.h"
#include "src/bootstrap/launcher.h"

#define SDG_HELLO_MAGIC UINT64_C(0x7364672d68656c6f) /* "sdg-helo" */

enum { SDG_ANSWER_TEXT_BYTES = 488 };

/* The first words of a rank to rank 0. One machine, so the byte order is that
 * of both. */
typedef struct sdg_hello {
  uint64_t magic;
  uint32_t layout; /* sdg_shm_layout() */
  uint32_t size;
  uint32_t rank;
  uint32_t reserved;
  char launch[SDG_LAUNCH_BYTES]; /* sdg_launch_name() */
} sdg_hello_t;

/* Rank 0's answer; with SDG_OK comes the descriptor of the segment. */
typedef struct sdg_answer {
  uint64_t magic;
  uint32_t layout;
  uint32_t status;
  char text[SDG_ANSWER_TEXT_BYTES];
} sdg_answer_t;

/* The socket address of `path`, which is absolute. One that is too long is
 * named through its folder, opened as *out_folder (otherwise -1), which the
 * caller closes after the address has been used. SDG_E_RENDEZVOUS. */
sdg_status_t sdg_handshake_address(const char *path, struct sockaddr_un *out,
                                   int *out_folder) SDG_MUST_CHECK;
/* A non-blocking stream socket, or -1 with errno. */
int sdg_handshake_socket(void);
/* 1 when the process at the other end was this user when it connected. */
int sdg_handshake_same_user(int fd);

#endif
