/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP protocol between ranks on several machines: first a greeting, in
 * which both ends prove that they know the job's secret, then messages.
 *
 * Greeting: the caller sends hello; the other end answers with a challenge
 * that contains its proof; the caller sends a claim with its own proof. A peer
 * that has proved nothing learns nothing about the job, and no more bytes are
 * read from it than these structures have. Numbers are in the sender's byte
 * order, which must be the reader's; the magic number shows it. */
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
  unsigned char proof[SDG_SHA256_BYTES]; /* role "answers" */
} sdg_frame_challenge_t;

/* The contents of a claim; its proof covers them. */
typedef struct sdg_frame_who {
  uint32_t layout; /* sdg_shm_layout() */
  uint32_t size;
  uint32_t rank;
  uint32_t to;   /* the rank being called */
  uint32_t port; /* the port where this rank listens */
  uint32_t zero;
  sdg_address_t address;         /* of this rank's end of the connection */
  char launch[SDG_LAUNCH_BYTES]; /* sdg_launch_name() */
} sdg_frame_who_t;

typedef struct sdg_frame_claim {
  sdg_frame_who_t who;
  unsigned char proof[SDG_SHA256_BYTES]; /* role "calls" */
} sdg_frame_claim_t;

/* After the greeting come messages: each is a head and `bytes` bytes. */
typedef enum sdg_frame_kind {
  SDG_FRAME_WELCOME = 1, /* no body: the claim is accepted */
  SDG_FRAME_REFUSE,      /* sdg_frame_failure_t: the claim is refused */
  SDG_FRAME_COMING,      /* bit mask of the ranks that have reached rank 0 */
  SDG_FRAME_PLACES,      /* sdg_address_t of every rank; from rank 0 */
  SDG_FRAME_RECORD,
  SDG_FRAME_COUNT,
  SDG_FRAME_STEPS, /* sdg_frame_steps_t and `count` steps */
  SDG_FRAME_END,
  SDG_FRAME_TURNS, /* sdg_frame_turns_t and turns `from` to `given` - 1 */
  SDG_FRAME_ASK,   /* sdg_frame_name_t: asks rank 0 for a channel for a name */
  SDG_FRAME_NAME, /* sdg_frame_name_t: rank 0 has given the channel this name */
  SDG_FRAME_FAILURE,
  SDG_FRAME_LEFT, /* no body */
  SDG_FRAME_SYNC, /* uint32_t: everything before it has been sent */
  SDG_FRAME_ACK,  /* uint32_t: everything before that SYNC has arrived */
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
  /* The largest messages are a record and the addresses of all ranks. */
  SDG_FRAME_BYTES_MAX = SDG_SHM_RANKS * (int)sizeof(sdg_address_t) + 1024,
};
_Static_assert(SDG_FRAME_BYTES_MAX >=
                   SDG_CHANNEL_RECORD_BYTES + sizeof(sdg_frame_record_t),
               "a record is a message");

#endif
