// SPDX-License-Identifier: Apache-2.0
// Packets on local sockets, and the process at the other end.
#include "src/host/nccl/net/packet.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"

socklen_t host_packet_address(const host_offer_t *id,
                              struct sockaddr_un *address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                        "host-nccl-");
  for (int i = 0; i < HOST_NAME_BYTES; i++)
    length += snprintf(address->sun_path + 1 + length, 3, "%02x", id->name[i]);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                     (size_t)length);
}

pid_t host_packet_same_user(int fd) {
  struct ucred who;
  socklen_t length = sizeof(who);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 ||
      who.uid != geteuid())
    return -1;
  return who.pid;
}

bool host_packet_random(void *out, size_t bytes) {
  return getrandom(out, bytes, 0) == (ssize_t)bytes;
}

bool host_packet_challenge(int fd, host_nonces_t *out_nonces) {
  host_packet_t packet = {.word = HOST_WORD_CHALLENGE};
  if (!host_packet_random(packet.nonce, sizeof packet.nonce))
    return false;
  memcpy(out_nonces->called, packet.nonce, sizeof packet.nonce);
  return host_packet_send(fd, &packet, -1);
}

static void proof_of(const host_packet_t *packet, const host_offer_t *offer,
                     const host_nonces_t *nonces,
                     unsigned char out[SDG_SHA256_BYTES]) {
  sdg_hmac_t hmac;
  sdg_hmac_init(&hmac, offer->secret, sizeof offer->secret);
  sdg_hmac_add(&hmac, nonces->called, sizeof nonces->called);
  sdg_hmac_add(&hmac, nonces->caller, sizeof nonces->caller);
  sdg_hmac_add(&hmac, packet, offsetof(host_packet_t, proof));
  sdg_hmac_end(&hmac, out);
}

void host_packet_prove(host_packet_t *packet, const host_offer_t *offer,
                       const host_nonces_t *nonces) {
  proof_of(packet, offer, nonces, packet->proof);
}

bool host_packet_proves(const host_packet_t *packet, const host_offer_t *offer,
                        const host_nonces_t *nonces) {
  unsigned char right[SDG_SHA256_BYTES];
  proof_of(packet, offer, nonces, right);
  return sdg_digest_equal(packet->proof, right);
}

bool host_packet_send(int fd, const host_packet_t *packet, int carried) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {{0}};
  struct iovec part = {(void *)packet, sizeof *packet};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (carried >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &carried, sizeof(int));
  }
  ssize_t sent;
  do
    sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == (ssize_t)sizeof *packet;
}

int host_packet_recv(int fd, host_inbox_t *inbox, int *out_carried) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  if (inbox->got == sizeof inbox->packet)
    inbox->got = 0;
  struct iovec part = {(char *)&inbox->packet + inbox->got,
                       sizeof inbox->packet - inbox->got};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  ssize_t got;
  do
    got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return errno == EAGAIN ? 0 : -1;
  int carried = -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET &&
      header->cmsg_type == SCM_RIGHTS)
    memcpy(&carried, CMSG_DATA(header), sizeof(int));
  if (carried >= 0)
    carried = host_fork_guard(carried);
  if (out_carried && carried >= 0)
    *out_carried = carried;
  else
    host_fork_close(carried);
  if (got == 0)
    return -1;
  inbox->got += (size_t)got;
  return inbox->got == sizeof inbox->packet;
}
