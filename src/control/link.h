/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP connection of a rank: its stage, and its messages in input and
 * output buffers of fixed size. Only the TCP thread may call these
 * functions. */
#ifndef SDG_SRC_CONTROL_LINK_H
#define SDG_SRC_CONTROL_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/fd.h"
#include "src/control/frame.h"

typedef enum sdg_link_stage {
  SDG_LINK_CONNECTING, /* ours: connect() has begun */
  SDG_LINK_CHALLENGE,  /* ours: waits for the challenge */
  SDG_LINK_WELCOME,    /* ours: waits for the answer to our claim */
  SDG_LINK_HELLO,      /* theirs: waits for the hello */
  SDG_LINK_CLAIM,      /* theirs: waits for the claim */
  SDG_LINK_OPEN,
  SDG_LINK_REFUSED, /* theirs: closes when all data is sent */
} sdg_link_stage_t;

/* The parts of this rank's own row that the other end has already received
 * from it. */
typedef struct sdg_link_sent {
  uint32_t number[SDG_CHANNELS][SDG_SHM_LANES];
  uint32_t version[SDG_CHANNELS];
  uint32_t steps[SDG_CHANNELS];
  uint64_t end[SDG_CHANNELS];
  uint64_t given, taken;           /* turns of the launch order */
  uint32_t asked;                  /* thread names asked of rank 0 */
  bool named[SDG_CHANNEL_THREADS]; /* channels whose name rank 0 has sent */
  bool failure, left, places;
  uint64_t coming[SDG_SHM_MASK_WORDS];
  uint32_t sync;
} sdg_link_sent_t;

typedef struct sdg_link {
  sdg_fd_t fd;
  sdg_link_stage_t stage;
  int rank; /* the rank at the other end; -1: unknown */
  double since_s;
  unsigned char own_nonce[SDG_NONCE_BYTES], other_nonce[SDG_NONCE_BYTES];
  sdg_address_t place; /* where the other end listens; port 0: unknown */
  sdg_link_sent_t sent;
  uint32_t
      acknowledged; /* the last of our SYNCs that the other end acknowledged */
  size_t got, out_from, out_to;
  /* A message starts at the start of the buffer, so its body is aligned. */
  _Alignas(8) char in[SDG_FRAME_BYTES_MAX + sizeof(sdg_frame_head_t)];
  char out[2 * SDG_FRAME_BYTES_MAX];
} sdg_link_t;

/* Takes over `fd`. Returns NULL, and closes `fd`, if memory runs out. */
sdg_link_t *sdg_link_create(int fd, sdg_link_stage_t stage, int rank,
                            double now_s);
void sdg_link_destroy(sdg_link_t *link); /* closes the socket; NULL is fine */

/* Reads all available bytes. Returns 0, or the errno that ended the
 * connection: ECONNRESET if the other end closed it. */
int sdg_link_receive(sdg_link_t *link);
/* Sends as much as can be sent without waiting. Returns 0 or an errno. */
int sdg_link_flush(sdg_link_t *link);
bool sdg_link_pending(const sdg_link_t *link);

/* Returns the first `bytes` bytes received, or NULL if fewer have arrived;
 * valid until they are dropped. */
const void *sdg_link_peek(const sdg_link_t *link, size_t bytes);
void sdg_link_drop(sdg_link_t *link, size_t bytes);

/* Reserves `bytes` bytes to send; the caller fills them at once. NULL: no room
 * now. */
void *sdg_link_room(sdg_link_t *link, size_t bytes);
/* The same for a message: writes its head and returns its body. */
void *sdg_link_message(sdg_link_t *link, sdg_frame_kind_t kind, size_t bytes);

#endif
