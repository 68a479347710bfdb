/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks on several machines say to each other over TCP: the greeting, in
 * which both ends prove that they know the job's secret, and then messages.
 *
 * Greeting: hello from who connects; challenge from the other, with its proof;
 * claim from who connects, with its own. Nothing of the job is said to who has
 * proved nothing, and no more is read than these structures have bytes.
 * Numbers are in the sender's byte order, which has to be the reader's: the
 * magic number shows it. */
#ifndef SDG_SRC_CONTROL_FRAME_H
#define SDG_SRC_CONTROL_FRAME_H

#include <stdint.h>

#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/secret.h"
#include "src/bootstrap/shm.h"

#define SDG_FRAME_MAGIC UINT64_C(0x7364672d74637031) /* "sdg-tcp1" */

typedef struct sdg_frame_hello {
  uint64_t magic;
  unsigned char nonce[SDG_NONCE_BYTES];
} sdg_frame_hello_t;

typedef struct sdg_frame_challenge {
  uint64_t magic;
  unsigned char nonce[SDG_NONCE_BYTES];
  unsigned char proof[SDG_SHA256_BYTES]; /* as "answers" */
} sdg_frame_challenge_t;

/* What is said in a claim, and proved with it. */
typedef struct sdg_frame_who {
  uint32_t layout; /* sdg_shm_layout() */
  uint32_t size;
  uint32_t rank;
  uint32_t to;   /* the rank that is called */
  uint32_t port; /* at which this rank can be called */
  uint32_t zero;
  sdg_address_t address;         /* of this rank, as it called */
  char launch[SDG_LAUNCH_BYTES]; /* sdg_launch_name() */
} sdg_frame_who_t;

typedef struct sdg_frame_claim {
  sdg_frame_who_t who;
  unsigned char proof[SDG_SHA256_BYTES]; /* as "calls" */
} sdg_frame_claim_t;

/* After the greeting: messages, each a head and `bytes` bytes. */
typedef enum sdg_frame_kind {
  SDG_FRAME_WELCOME = 1, /* nothing: the claim is accepted */
  SDG_FRAME_REFUSE,      /* sdg_frame_failure_t: it is not */
  SDG_FRAME_COMING,      /* mask of the ranks that rank 0 has */
  SDG_FRAME_PLACES,      /* sdg_address_t of every rank; from rank 0 */
  SDG_FRAME_RECORD,
  SDG_FRAME_COUNT,
  SDG_FRAME_STEPS, /* sdg_frame_steps_t and `count` steps */
  SDG_FRAME_END,
  SDG_FRAME_TURNS, /* sdg_frame_turns_t and the turns from `from` to `given` */
  SDG_FRAME_ASK,   /* sdg_frame_name_t: a channel for this name; to rank 0 */
  SDG_FRAME_NAME, /* sdg_frame_name_t: the channel has this name; from rank 0 */
  SDG_FRAME_FAILURE,
  SDG_FRAME_LEFT, /* nothing */
  SDG_FRAME_SYNC, /* uint32_t: all before it has been said */
  SDG_FRAME_ACK,  /* uint32_t: all before that has been heard */
} sdg_frame_kind_t;

typedef struct sdg_frame_head {
  uint32_t kind;
  uint32_t bytes;
} sdg_frame_head_t;

typedef struct sdg_frame_record {
  uint64_t group;
  uint32_t channel, lane, number, bytes;
  /* `bytes` bytes follow */
} sdg_frame_record_t;

typedef struct sdg_frame_count {
  uint32_t channel, zero;
  uint64_t calls;
  char what[SDG_SHM_WHAT_BYTES];
} sdg_frame_count_t;

enum { SDG_FRAME_STEPS_MAX = 256 };
typedef struct sdg_frame_steps {
  uint32_t channel, count;
} sdg_frame_steps_t;

typedef struct sdg_frame_end {
  uint32_t channel, zero;
  uint64_t end;
} sdg_frame_end_t;

typedef struct sdg_frame_turns {
  uint64_t from, given, taken;
} sdg_frame_turns_t;

typedef struct sdg_frame_name {
  uint32_t channel, zero;
  char name[SDG_SHM_NAME_BYTES];
} sdg_frame_name_t;

typedef struct sdg_frame_failure {
  uint32_t rank, status;
  char text[SDG_SHM_TEXT_BYTES];
} sdg_frame_failure_t;

enum {
  /* The largest messages are a record and the places of all ranks. */
  SDG_FRAME_BYTES_MAX = SDG_SHM_RANKS * (int)sizeof(sdg_address_t) + 1024,
};
_Static_assert(SDG_FRAME_BYTES_MAX >=
                   SDG_CHANNEL_RECORD_BYTES + sizeof(sdg_frame_record_t),
               "a record is a message");

#endif
