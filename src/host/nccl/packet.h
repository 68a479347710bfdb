/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks and the maker of their unique id say to each other while they
 * meet: the id, its address, and packets that may carry a descriptor.
 *
 * Conversation, one packet each: HELLO from every rank; when all have come,
 * SEGMENT with the descriptor to each, then LOCK to each once the maker has
 * closed its own copy (closing any copy drops the locks of the process that
 * announce its rank); READY from each that mapped and locked; GO to each.
 * Whoever ends before GO closes its connection, which fails all others. */
#ifndef SDG_SRC_HOST_NCCL_PACKET_H
#define SDG_SRC_HOST_NCCL_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <nccl.h>

/* First bytes of an id of this library. */
#define HOST_OFFER_MAGIC "hostnccl"

enum { HOST_NAME_BYTES = 16, HOST_SECRET_BYTES = 16 };

/* What a ncclUniqueId holds. The name can be listed by every user of the
 * machine, the secret cannot. */
typedef struct host_offer {
  char magic[8];
  unsigned char name[HOST_NAME_BYTES];
  unsigned char secret[HOST_SECRET_BYTES];
  char zero[NCCL_UNIQUE_ID_BYTES - 8 - HOST_NAME_BYTES - HOST_SECRET_BYTES];
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
} host_word_t;

typedef struct host_packet {
  int32_t word;
  int32_t rank;   /* HELLO */
  int32_t ranks;  /* HELLO */
  int32_t result; /* FAIL: ncclResult_t */
  unsigned char secret[HOST_SECRET_BYTES];
} host_packet_t;

/* Where the maker of the id listens: an abstract address. */
socklen_t host_packet_address(const host_offer_t *offer,
                              struct sockaddr_un *out_address);

/* The process at the other end, if it is of our user (0 if it is not visible
 * from here); otherwise -1. */
pid_t host_packet_same_user(int fd);

/* Sends a packet, with the descriptor `carried` unless it is -1. */
bool host_packet_send(int fd, const host_packet_t *packet, int carried);

/* Reads what is there; false for the end of the connection or a malformed
 * packet. *out_carried (may be NULL) is a guarded descriptor or -1. */
bool host_packet_recv(int fd, host_packet_t *out_packet, int *out_carried);

#endif
