/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 and another rank say to each other at the barrier. */
#ifndef SDG_TOOLS_MEETING_NOTE_H
#define SDG_TOOLS_MEETING_NOTE_H

#include <stdint.h>

#include "src/bootstrap/secret.h"

#define NOTE_MAGIC "sdgmeet1"

/* Rank 0's first words; the proof is over its nonce alone. */
typedef struct note_greeting {
  char magic[8];
  unsigned char nonce[SDG_NONCE_BYTES], proof[SDG_SHA256_BYTES];
} note_greeting_t;

typedef struct note_arrival {
  unsigned char nonce[SDG_NONCE_BYTES];
  uint32_t rank, reached; /* the index of rank 0's address */
  uint32_t local; /* 1: on rank 0's machine, which reaches all of them */
  unsigned char proof[SDG_SHA256_BYTES];
} note_arrival_t;

typedef struct note_release {
  uint32_t status; /* an sdg_status_t */
  uint32_t place;  /* the index for ranks on rank 0's machine */
  char text[248];
  unsigned char proof[SDG_SHA256_BYTES];
} note_release_t;

#define NOTE_GREETING "rank 0 greets"
#define NOTE_ARRIVAL  "a rank arrives"
#define NOTE_RELEASE  "rank 0 releases"

#endif
