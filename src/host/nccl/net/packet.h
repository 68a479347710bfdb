/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between ranks and the maker of their unique id while they join:
 * the id, its addresses, and packets that may carry a descriptor.
 *
 * The side that accepts a connection begins with CHALLENGE, a random number.
 * Each later packet carries a proof that its sender knows the secret of the id.
 * The secret itself is never sent.
 *
 * On one machine: HELLO from every rank; when all have sent it, SEGMENT with
 * the descriptor to each, then LOCK to each once the maker has closed its own
 * copy (closing any copy drops the locks of the process that announce its
 * rank); READY from each that mapped and locked; GO to each. A process that
 * ends before GO closes its connection, which fails all others.
 *
 * On several machines: in place of SEGMENT and LOCK, one PLACE for every rank.
 * Each rank connects to the ranks with lower numbers; the two ends of a
 * connection exchange MEET. Each rank sends READY once it is connected with all
 * others. If a connection ends before the answer, the rank tries again, because
 * the other end may have closed it to make room for others. */
#ifndef SDG_SRC_HOST_NCCL_NET_PACKET_H
#define SDG_SRC_HOST_NCCL_NET_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <nccl.h>

#include "src/base/sha256.h"
#include "src/host/nccl/net/machine.h"

/* The first bytes of an id of this library. */
#define HOST_OFFER_MAGIC "hostnccl"

enum { HOST_NAME_BYTES = 16, HOST_SECRET_BYTES = 16, HOST_NONCE_BYTES = 16 };

/* The content of a ncclUniqueId. Every user of the machine can list the name,
 * but not the secret. */
typedef struct host_offer {
  char magic[8];
  unsigned char name[HOST_NAME_BYTES];
  unsigned char secret[HOST_SECRET_BYTES];
  uint64_t machine;       /* the maker's */
  host_address_t address; /* for ranks of other machines; all zero: none */
  char zero[NCCL_UNIQUE_ID_BYTES - 8 - HOST_NAME_BYTES - HOST_SECRET_BYTES - 8 -
            sizeof(host_address_t) - 4];
} host_offer_t;
_Static_assert(sizeof(host_offer_t) == sizeof(ncclUniqueId),
               "an id is 128 bytes");

typedef enum host_word {
  HOST_WORD_HELLO = 1,
  HOST_WORD_SEGMENT,
  HOST_WORD_LOCK,
  HOST_WORD_READY,
  HOST_WORD_GO,
  HOST_WORD_FAIL,
  HOST_WORD_PLACE,
  HOST_WORD_MEET,
  HOST_WORD_CHALLENGE,
} host_word_t;

typedef struct host_packet {
  int32_t word;
  int32_t rank;   /* HELLO, MEET: the sender's; PLACE: the described rank */
  int32_t ranks;  /* HELLO */
  int32_t result; /* FAIL: ncclResult_t; MEET: the receiver's rank */
  int32_t pid;    /* HELLO */
  int32_t zero;
  uint64_t machine;       /* HELLO */
  host_address_t address; /* HELLO, PLACE; all zero: none */
  char zero_too[4];
  unsigned char nonce[HOST_NONCE_BYTES]; /* CHALLENGE; in HELLO and MEET of the
                                            connecting side: its own */
  unsigned char proof[SDG_SHA256_BYTES]; /* all but CHALLENGE */
} host_packet_t;

/* The two random numbers of a connection. */
typedef struct host_nonces {
  unsigned char called[HOST_NONCE_BYTES], caller[HOST_NONCE_BYTES];
} host_nonces_t;

bool host_packet_random(void *out, size_t bytes);

/* For the side that accepts: makes its random number and sends it. */
bool host_packet_challenge(int fd, host_nonces_t *out_nonces);

/* host_packet_prove fills in the proof of a complete packet; host_packet_proves
 * checks the proof of a received one. */
void host_packet_prove(host_packet_t *packet, const host_offer_t *offer,
                       const host_nonces_t *nonces);
bool host_packet_proves(const host_packet_t *packet, const host_offer_t *offer,
                        const host_nonces_t *nonces);

/* Gets the abstract address where the maker of the id listens. Returns its
 * length. */
socklen_t host_packet_address(const host_offer_t *offer,
                              struct sockaddr_un *out_address);

/* Returns the pid of the process at the other end if it belongs to the same
 * user (0 if it is not visible from here), else -1. */
pid_t host_packet_same_user(int fd);

/* Sends a packet, with the descriptor `carried` unless it is -1. */
bool host_packet_send(int fd, const host_packet_t *packet, int carried);

/* A packet that may arrive in pieces. */
typedef struct host_inbox {
  host_packet_t packet;
  size_t got;
} host_inbox_t;

/* Reads without waiting. Returns 1 when the packet is complete (the next call
 * begins another), 0 when it is not, -1 at the end of the connection. Sets
 * *out_carried (may be NULL) only if a descriptor arrives, which is guarded. */
int host_packet_recv(int fd, host_inbox_t *inbox, int *out_carried);

#endif
