/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks' side of the meeting: finds the maker of the id, and ends with the
 * segment open and every rank announced. */
#include "src/host/nccl/join.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "src/host/nccl/fork.h"
#include "src/host/nccl/packet.h"

enum { STOP_POLL_MS = 20 };

/* Waits for a packet with word `expected`. */
static ncclResult_t await_word(int fd, host_word_t expected, int *out_carried,
                               const atomic_bool *stop) {
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  for (;;) {
    if (atomic_load(stop))
      return HOST_STOPPED;
    int ready = poll(&wait, 1, STOP_POLL_MS);
    if (ready < 0 && errno != EINTR)
      return ncclSystemError;
    if (ready > 0)
      break;
  }
  host_packet_t packet;
  if (!host_packet_recv(fd, &packet, out_carried))
    return ncclRemoteError;
  if (packet.word == HOST_WORD_FAIL)
    return packet.result > 0 && packet.result < ncclNumResults
               ? (ncclResult_t)packet.result
               : ncclInternalError;
  return packet.word == (int32_t)expected ? ncclSuccess : ncclInternalError;
}

/* From SEGMENT to GO, on a connection that has said HELLO. */
static ncclResult_t join_segment(host_endpoint_t *endpoint, int fd,
                                 host_packet_t packet,
                                 const atomic_bool *stop) {
  int segment = -1;
  ncclResult_t result = await_word(fd, HOST_WORD_SEGMENT, &segment, stop);
  if (result == ncclSuccess && segment < 0)
    result = ncclSystemError;
  if (result == ncclSuccess)
    result = host_endpoint_open(endpoint, segment, packet.rank, packet.ranks);
  if (result != ncclSuccess) {
    host_fork_close(segment);
    return result;
  }
  result = await_word(fd, HOST_WORD_LOCK, NULL, stop);
  if (result == ncclSuccess)
    result = host_endpoint_announce(endpoint);
  packet.word = HOST_WORD_READY;
  if (result == ncclSuccess && !host_packet_send(fd, &packet, -1))
    result = ncclRemoteError;
  if (result == ncclSuccess)
    result = await_word(fd, HOST_WORD_GO, NULL, stop);
  if (result != ncclSuccess) {
    /* Others may already have been told to go. */
    host_fault_set(endpoint,
                   (host_fault_t){HOST_FAULT_INIT, packet.rank, packet.rank});
    host_endpoint_close(endpoint);
  }
  return result;
}

ncclResult_t host_join(host_endpoint_t *endpoint, const ncclUniqueId *id,
                       int rank, int ranks, const atomic_bool *stop) {
  host_offer_t offer;
  memcpy(&offer, id, sizeof(offer));
  if (memcmp(offer.magic, HOST_OFFER_MAGIC, sizeof(offer.magic)) != 0)
    return ncclInvalidArgument;
  struct sockaddr_un address;
  socklen_t length = host_packet_address(&offer, &address);
  int fd = host_fork_guard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0)
    return ncclSystemError;
  host_packet_t hello = {.word = HOST_WORD_HELLO, .rank = rank, .ranks = ranks};
  memcpy(hello.secret, offer.secret, sizeof(hello.secret));
  ncclResult_t result = ncclRemoteError;
  /* The name may belong to a stranger once its maker is gone. */
  if (connect(fd, (struct sockaddr *)&address, length) == 0 &&
      host_packet_same_user(fd) >= 0 && host_packet_send(fd, &hello, -1))
    result = join_segment(endpoint, fd, hello, stop);
  host_fork_close(fd);
  return result;
}
