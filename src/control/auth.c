// SPDX-License-Identifier: Apache-2.0
// The greeting of two ranks: caller and callee prove to each other that they
// know the job's secret, and check that they belong to the same job.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/control/tcp_state.h"

static const char answers[] = "answers", calls[] = "calls";

void sdg_auth_accept(sdg_tcp_t *tcp, double now_s) {
  for (;;) {
    int fd = sdg_fd_raise(
        accept4(tcp->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd < 0)
      return;
    // Drop the oldest guest: a rank proves itself within moments, so
    // connections that stay silent cannot keep it out.
    int at = 0;
    for (int i = 0; i < SDG_TCP_GUESTS && tcp->guest[at]; i++)
      if (!tcp->guest[i] || tcp->guest[i]->since_s < tcp->guest[at]->since_s)
        at = i;
    sdg_link_t *oldest = tcp->guest[at];
    tcp->guest[at] = NULL;
    sdg_link_destroy(oldest);
    sdg_address_tune(fd, tcp->silent_s);
    tcp->guest[at] = sdg_link_create(fd, SDG_LINK_HELLO, -1, now_s);
  }
}

void sdg_auth_call(sdg_tcp_t *tcp, int rank, const sdg_address_t *address,
                   double now_s) {
  int fd = sdg_address_connect(address);
  if (fd < 0)
    return; // tried again later, until the join times out
  sdg_address_tune(fd, tcp->silent_s);
  tcp->link[rank] = sdg_link_create(fd, SDG_LINK_CONNECTING, rank, now_s);
}

bool sdg_auth_connected(sdg_tcp_t *tcp, sdg_link_t *link) {
  (void)tcp;
  sdg_address_t self, other;
  socklen_t self_bytes = sizeof self, other_bytes = sizeof other;
  int error = 0;
  socklen_t bytes = sizeof error;
  memset(&self, 0, sizeof self);
  memset(&other, 0, sizeof other);
  if (!sdg_fd_is(&link->fd) ||
      getsockopt(link->fd.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ||
      error != 0 || getsockname(link->fd.fd, &self.any, &self_bytes) != 0 ||
      getpeername(link->fd.fd, &other.any, &other_bytes) != 0)
    return false;
  // If nobody listens at a port, the kernel may connect the caller to itself.
  if (self_bytes == other_bytes && memcmp(&self, &other, self_bytes) == 0)
    return false;
  sdg_frame_hello_t hello = {.magic = SDG_FRAME_MAGIC};
  if (sdg_secret_random(link->own_nonce, sizeof link->own_nonce) != SDG_OK)
    return false;
  memcpy(hello.nonce, link->own_nonce, sizeof hello.nonce);
  memcpy(sdg_link_room(link, sizeof hello), &hello, sizeof hello);
  link->stage = SDG_LINK_CHALLENGE;
  return true;
}

static bool hello_receive(sdg_tcp_t *tcp, sdg_link_t *link) {
  const sdg_frame_hello_t *hello = sdg_link_peek(link, sizeof *hello);
  sdg_frame_challenge_t challenge = {.magic = SDG_FRAME_MAGIC};
  // A stranger is dropped at its first wrong bytes.
  if (link->got >= sizeof hello->magic &&
      ((const sdg_frame_hello_t *)(const void *)link->in)->magic !=
          SDG_FRAME_MAGIC)
    return false;
  if (!hello)
    return true;
  if (sdg_secret_random(link->own_nonce, sizeof link->own_nonce) != SDG_OK)
    return false;
  memcpy(link->other_nonce, hello->nonce, sizeof link->other_nonce);
  memcpy(challenge.nonce, link->own_nonce, sizeof challenge.nonce);
  sdg_secret_prove(&tcp->secret, answers, link->own_nonce, link->other_nonce,
                   NULL, 0, challenge.proof);
  memcpy(sdg_link_room(link, sizeof challenge), &challenge, sizeof challenge);
  sdg_link_drop(link, sizeof *hello);
  link->stage = SDG_LINK_CLAIM;
  return true;
}

static bool challenge_receive(sdg_tcp_t *tcp, sdg_link_t *link) {
  const sdg_frame_challenge_t *challenge =
      sdg_link_peek(link, sizeof *challenge);
  unsigned char expected[SDG_SHA256_BYTES];
  sdg_frame_claim_t claim;
  char text[512];
  if (!challenge)
    return true;
  memcpy(link->other_nonce, challenge->nonce, sizeof link->other_nonce);
  sdg_secret_prove(&tcp->secret, answers, link->other_nonce, link->own_nonce,
                   NULL, 0, expected);
  if (challenge->magic != SDG_FRAME_MAGIC ||
      !sdg_digest_equal(challenge->proof, expected)) {
    if (link->rank == 0)
      snprintf(
          text, sizeof text,
          "the process that answers at %s does not know the secret of rank %d",
          tcp->rendezvous, tcp->rank);
    else
      snprintf(text, sizeof text,
               "the process that answers in place of rank %d does not know the "
               "secret of rank %d",
               link->rank, tcp->rank);
    sdg_shm_post(tcp->view, tcp->rank, SDG_E_SECRET, text);
    return false;
  }
  sdg_link_drop(link, sizeof *challenge);
  memset(&claim, 0, sizeof claim);
  claim.who.layout = sdg_shm_layout();
  claim.who.size = (uint32_t)tcp->size;
  claim.who.rank = (uint32_t)tcp->rank;
  claim.who.to = (uint32_t)link->rank;
  sdg_launch_name(claim.who.launch, sizeof claim.who.launch);
  socklen_t bytes = sizeof claim.who.address;
  if (getsockname(link->fd.fd, &claim.who.address.any, &bytes) != 0 ||
      (link->rank == 0 && !sdg_tcp_listen(tcp, &claim.who.address)))
    return false;
  claim.who.port = tcp->port;
  sdg_secret_prove(&tcp->secret, calls, link->own_nonce, link->other_nonce,
                   &claim.who, sizeof claim.who, claim.proof);
  memcpy(sdg_link_room(link, sizeof claim), &claim, sizeof claim);
  link->stage = SDG_LINK_WELCOME;
  return true;
}

static bool refuse(sdg_tcp_t *tcp, sdg_link_t *link, bool fails_all,
                   const char *text) {
  sdg_frame_failure_t frame = {.rank = (uint32_t)tcp->rank,
                               .status = SDG_E_RENDEZVOUS};
  snprintf(frame.text, sizeof frame.text, "%s", text);
  void *room = sdg_link_message(link, SDG_FRAME_REFUSE, sizeof frame);
  if (room)
    memcpy(room, &frame, sizeof frame);
  if (fails_all)
    sdg_shm_post(tcp->view, tcp->rank, SDG_E_RENDEZVOUS, text);
  link->stage = SDG_LINK_REFUSED;
  return room != NULL;
}

// Checks the claim of a caller that knows the secret.
static bool claim_judge(sdg_tcp_t *tcp, sdg_link_t *link,
                        const sdg_frame_who_t *who) {
  char text[512], one[64], two[64];
  char launch[SDG_LAUNCH_BYTES], other[SDG_LAUNCH_BYTES];
  memcpy(other, who->launch, sizeof other);
  if (who->layout != sdg_shm_layout())
    return refuse(tcp, link, true,
                  "the ranks run different versions of sundog");
  if (sdg_launch_differs(other, launch, sizeof launch)) {
    snprintf(text, sizeof text,
             "rank %u belongs to another launch (%s) than rank %d (%s)",
             who->rank, other, tcp->rank, launch);
    sdg_log("%s", text);
    return refuse(tcp, link, false, text); // our own rank may still arrive
  }
  if (who->size != (uint32_t)tcp->size) {
    snprintf(text, sizeof text, "rank %u has size %u, rank %d has size %d",
             who->rank, who->size, tcp->rank, tcp->size);
    return refuse(tcp, link, true, text);
  }
  if (who->rank >= who->size || (int)who->rank <= tcp->rank ||
      who->to != (uint32_t)tcp->rank) {
    snprintf(text, sizeof text,
             "rank %d waits for ranks above it, not for rank %u that calls "
             "rank %u",
             tcp->rank, who->rank, who->to);
    return refuse(tcp, link, false, text);
  }
  int rank = (int)who->rank;
  link->place = who->address;
  sdg_address_set_port(&link->place, (uint16_t)who->port);
  if (tcp->link[rank]) {
    // A second process of this rank on the same machine finds the lock taken
    // and never calls; this one is on another machine.
    snprintf(text, sizeof text,
             "two processes claim to be rank %d: one from %s, one from %s",
             rank, sdg_address_text(&tcp->link[rank]->place, one, sizeof one),
             sdg_address_text(&link->place, two, sizeof two));
    return refuse(tcp, link, true, text);
  }
  for (int i = 0; i < SDG_TCP_GUESTS; i++)
    if (tcp->guest[i] == link)
      tcp->guest[i] = NULL;
  tcp->link[rank] = link;
  link->rank = rank;
  link->stage = SDG_LINK_OPEN;
  (void)sdg_link_message(link, SDG_FRAME_WELCOME, 0);
  sdg_tcp_joined(tcp, rank);
  return true;
}

static bool claim_receive(sdg_tcp_t *tcp, sdg_link_t *link) {
  const sdg_frame_claim_t *claim = sdg_link_peek(link, sizeof *claim);
  unsigned char expected[SDG_SHA256_BYTES];
  if (!claim)
    return true;
  sdg_secret_prove(&tcp->secret, calls, link->other_nonce, link->own_nonce,
                   &claim->who, sizeof claim->who, expected);
  if (!sdg_digest_equal(claim->proof, expected)) {
    if (!tcp->mistrusted)
      sdg_log("a process without the job's secret connected to %s",
              tcp->rendezvous);
    tcp->mistrusted = true;
    return false;
  }
  const sdg_frame_who_t who = claim->who;
  sdg_link_drop(link, sizeof *claim);
  return claim_judge(tcp, link, &who);
}

static bool welcome_receive(sdg_tcp_t *tcp, sdg_link_t *link) {
  const sdg_frame_head_t *head = sdg_link_peek(link, sizeof *head);
  sdg_frame_failure_t frame;
  if (!head)
    return true;
  if (head->kind == SDG_FRAME_WELCOME && head->bytes == 0) {
    sdg_link_drop(link, sizeof *head);
    link->stage = SDG_LINK_OPEN;
    sdg_tcp_joined(tcp, link->rank);
    return true;
  }
  if (head->kind != SDG_FRAME_REFUSE || head->bytes != sizeof frame)
    return false;
  const char *all = sdg_link_peek(link, sizeof *head + sizeof frame);
  if (!all)
    return true;
  memcpy(&frame, all + sizeof *head, sizeof frame);
  frame.text[sizeof frame.text - 1] = '\0';
  sdg_shm_post(tcp->view, link->rank, SDG_E_RENDEZVOUS, frame.text);
  return false;
}

bool sdg_auth_go_on(sdg_tcp_t *tcp, sdg_link_t *link) {
  for (;;) {
    sdg_link_stage_t stage = link->stage;
    bool good = true;
    switch (stage) {
    case SDG_LINK_HELLO:
      good = hello_receive(tcp, link);
      break;
    case SDG_LINK_CHALLENGE:
      good = challenge_receive(tcp, link);
      break;
    case SDG_LINK_CLAIM:
      good = claim_receive(tcp, link);
      break;
    case SDG_LINK_WELCOME:
      good = welcome_receive(tcp, link);
      break;
    default:
      return true;
    }
    if (!good || link->stage == stage)
      return good;
  }
}
