/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP connection of a rank: its stage, and messages in and out of buffers
 * of fixed size. Of the carrier's thread alone. */
#ifndef SDG_SRC_CONTROL_LINK_H
#define SDG_SRC_CONTROL_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/fd.h"
#include "src/control/frame.h"

typedef enum sdg_link_stage {
  SDG_LINK_CONNECTING, /* ours: connect() has begun */
  SDG_LINK_CHALLENGE,  /* ours: waits for the challenge */
  SDG_LINK_WELCOME,    /* ours: waits for the word on our claim */
  SDG_LINK_HELLO,      /* theirs: waits for the hello */
  SDG_LINK_CLAIM,      /* theirs: waits for the claim */
  SDG_LINK_OPEN,
  SDG_LINK_REFUSED, /* theirs: closes when all is sent */
} sdg_link_stage_t;

/* What the other end has been told of this rank's row. */
typedef struct sdg_link_told {
  uint32_t number[SDG_CHANNELS][SDG_SHM_LANES];
  uint32_t version[SDG_CHANNELS];
  uint32_t steps[SDG_CHANNELS];
  uint64_t end[SDG_CHANNELS];
  uint64_t given, taken;           /* turns */
  uint32_t asked;                  /* names of threads, of rank 0 */
  bool named[SDG_CHANNEL_THREADS]; /* by rank 0 */
  bool failure, left, places;
  uint64_t coming[SDG_SHM_MASK_WORDS];
  uint32_t sync;
} sdg_link_told_t;

typedef struct sdg_link {
  sdg_fd_t fd;
  sdg_link_stage_t stage;
  int rank; /* at the other end, -1: not known */
  double since_s;
  unsigned char own_nonce[SDG_NONCE_BYTES], other_nonce[SDG_NONCE_BYTES];
  sdg_address_t place; /* where the other end can be called; port 0: unknown */
  sdg_link_told_t told;
  uint32_t heard; /* the last of our SYNC that it acknowledged */
  size_t got, out_from, out_to;
  /* Messages begin at its beginning: their bodies are aligned. */
  _Alignas(8) char in[SDG_FRAME_BYTES_MAX + sizeof(sdg_frame_head_t)];
  char out[2 * SDG_FRAME_BYTES_MAX];
} sdg_link_t;

/* NULL without memory; then fd is closed. */
sdg_link_t *sdg_link_create(int fd, sdg_link_stage_t stage, int rank,
                            double now_s);
void sdg_link_destroy(sdg_link_t *link); /* closes; NULL is fine */

/* Reads what is there. 0, or why the connection has ended: an errno, ECONNRESET
 * for its orderly end. */
int sdg_link_receive(sdg_link_t *link);
/* Sends what can be sent at once. 0 or an errno. */
int sdg_link_flush(sdg_link_t *link);
bool sdg_link_pending(const sdg_link_t *link);

/* The first `bytes` bytes received, NULL while there are fewer; valid until
 * they are dropped. */
const void *sdg_link_peek(const sdg_link_t *link, size_t bytes);
void sdg_link_drop(sdg_link_t *link, size_t bytes);

/* Room for `bytes` bytes to send, to be filled at once; NULL: not now. */
void *sdg_link_room(sdg_link_t *link, size_t bytes);
/* The same for the body of a message. */
void *sdg_link_message(sdg_link_t *link, sdg_frame_kind_t kind, size_t bytes);

#endif
