// SPDX-License-Identifier: Apache-2.0
// Connects every rank with every other.
#include "src/host/nccl/net/mesh.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "src/host/nccl/net/fork.h"

enum { POLL_MS = 20, GUESTS = 32, GUEST_MS = 5000 };

// A connection from another process that has not sent a complete MEET.
typedef struct guest {
  int fd; // -1: unused
  int64_t since_ms;
  host_inbox_t inbox;
  host_nonces_t nonces;
} guest_t;

// The state of a connection that this rank opened.
typedef enum stage {
  STAGE_CALLING,
  STAGE_CALLED, // waits for CHALLENGE
  STAGE_SAID,   // has sent MEET; waits for the answer
} stage_t;

typedef struct joining {
  host_mesh_t *mesh;
  const host_offer_t *offer;
  int rank, ranks;
  stage_t stage[HOST_RANKS_MAX]; // of the connections that this rank opened
  host_nonces_t nonces[HOST_RANKS_MAX]; // of the same connections
  bool met[HOST_RANKS_MAX];             // has sent MEET
  host_inbox_t inbox;                   // for answers
  guest_t guest[GUESTS];
  struct pollfd polls[HOST_RANKS_MAX + GUESTS + 2];
} joining_t;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void host_mesh_init(host_mesh_t *mesh) {
  memset(mesh, 0, sizeof *mesh);
  mesh->listener = -1;
  for (int i = 0; i < HOST_RANKS_MAX; i++)
    mesh->fd[i] = -1;
}

void host_mesh_fini(host_mesh_t *mesh) {
  host_fork_close(mesh->listener);
  for (int i = 0; i < HOST_RANKS_MAX; i++)
    host_fork_close(mesh->fd[i]);
}

ncclResult_t host_mesh_listen(host_mesh_t *mesh, host_address_t *out_address) {
  mesh->listener = host_net_listen(out_address);
  return mesh->listener < 0 ? ncclSystemError : ncclSuccess;
}

static int connection_error(int fd) {
  int error = 0;
  socklen_t bytes = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ? errno
                                                                   : error;
}

ncclResult_t host_mesh_await_connection(int fd, const atomic_bool *stop) {
  struct pollfd wait = {.fd = fd, .events = POLLOUT};
  while (!atomic_load(stop))
    if (poll(&wait, 1, POLL_MS) > 0)
      return connection_error(fd) == 0 ? ncclSuccess : ncclRemoteError;
  return HOST_STOPPED;
}

static void guest_drop(guest_t *guest) {
  host_fork_close(guest->fd);
  *guest = (guest_t){.fd = -1};
}

static bool meet_say(const joining_t *joining, int fd, int peer,
                     const host_nonces_t *nonces) {
  host_packet_t packet = {
      .word = HOST_WORD_MEET, .rank = joining->rank, .result = peer};
  memcpy(packet.nonce, nonces->caller, sizeof packet.nonce);
  host_packet_prove(&packet, joining->offer, nonces);
  return host_packet_send(fd, &packet, -1);
}

static bool meet_is(const joining_t *joining, const host_packet_t *packet,
                    const host_nonces_t *nonces) {
  return packet->word == HOST_WORD_MEET && packet->result == joining->rank &&
         host_packet_proves(packet, joining->offer, nonces);
}

static void guest_hear(joining_t *joining, guest_t *guest) {
  const host_packet_t *packet = &guest->inbox.packet;
  int got = host_packet_recv(guest->fd, &guest->inbox, NULL);
  if (got == 0)
    return;
  memcpy(guest->nonces.caller, packet->nonce, sizeof packet->nonce);
  if (got < 0 || !meet_is(joining, packet, &guest->nonces) ||
      packet->rank <= joining->rank || packet->rank >= joining->ranks ||
      joining->met[packet->rank] ||
      !meet_say(joining, guest->fd, packet->rank, &guest->nonces)) {
    guest_drop(guest);
    return;
  }
  joining->mesh->fd[packet->rank] = guest->fd;
  joining->met[packet->rank] = true;
  *guest = (guest_t){.fd = -1};
}

static void guests_accept(joining_t *joining) {
  for (;;) {
    int fd = host_fork_guard(accept4(joining->mesh->listener, NULL, NULL,
                                     SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd < 0)
      return;
    // The oldest connection is closed, so that nobody can block the others.
    guest_t *at = &joining->guest[0];
    for (int i = 0; i < GUESTS && at->fd >= 0; i++)
      if (joining->guest[i].fd < 0 || joining->guest[i].since_ms < at->since_ms)
        at = &joining->guest[i];
    guest_drop(at);
    *at = (guest_t){.fd = fd, .since_ms = now_ms()};
    if (!host_packet_challenge(fd, &at->nonces))
      guest_drop(at);
  }
}

// Reads the answer of a rank below this one: one small packet, which arrives
// whole.
static bool peer_hear(joining_t *joining, int peer) {
  int fd = joining->mesh->fd[peer];
  const host_packet_t *packet = &joining->inbox.packet;
  host_nonces_t *nonces = &joining->nonces[peer];
  joining->inbox.got = 0;
  int got = host_packet_recv(fd, &joining->inbox, NULL);
  if (got <= 0)
    return got == 0;
  if (joining->stage[peer] == STAGE_SAID)
    return joining->met[peer] =
               meet_is(joining, packet, nonces) && packet->rank == peer;
  memcpy(nonces->called, packet->nonce, sizeof packet->nonce);
  if (packet->word != HOST_WORD_CHALLENGE ||
      !host_packet_random(nonces->caller, sizeof nonces->caller) ||
      !meet_say(joining, fd, peer, nonces))
    return false;
  joining->stage[peer] = STAGE_SAID;
  return true;
}

// Serves a rank below this one: starts or continues the connection.
static void peer_serve(joining_t *joining, int peer) {
  int *fd = &joining->mesh->fd[peer];
  bool calling = joining->stage[peer] == STAGE_CALLING;
  if (calling ? connection_error(*fd) == 0 : peer_hear(joining, peer)) {
    if (calling)
      joining->stage[peer] = STAGE_CALLED;
    return;
  }
  host_fork_close(*fd);
  *fd = -1;
  joining->stage[peer] = STAGE_CALLING;
  nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static bool complete(const joining_t *joining) {
  for (int peer = 0; peer < joining->ranks; peer++)
    if (peer != joining->rank && !joining->met[peer])
      return false;
  return true;
}

static ncclResult_t step(joining_t *joining, int maker) {
  struct pollfd *polls = joining->polls;
  int guests = joining->rank, count = guests + GUESTS;
  for (int peer = 0; peer < joining->rank; peer++) {
    if (joining->mesh->fd[peer] < 0)
      joining->mesh->fd[peer] =
          host_net_connect_begin(&joining->mesh->place[peer]);
    polls[peer] = (struct pollfd){
        .fd = joining->met[peer] ? -1 : joining->mesh->fd[peer],
        .events = joining->stage[peer] == STAGE_CALLING ? POLLOUT : POLLIN};
  }
  for (int i = 0; i < GUESTS; i++)
    polls[guests + i] =
        (struct pollfd){.fd = joining->guest[i].fd, .events = POLLIN};
  polls[count] =
      (struct pollfd){.fd = joining->mesh->listener, .events = POLLIN};
  polls[count + 1] = (struct pollfd){.fd = maker, .events = POLLIN};
  if (poll(polls, (nfds_t)count + 2, POLL_MS) < 0)
    return errno == EINTR ? ncclSuccess : ncclSystemError;
  if (polls[count + 1].revents != 0)
    return ncclRemoteError;
  for (int peer = 0; peer < joining->rank; peer++)
    if (polls[peer].fd >= 0 && polls[peer].revents != 0)
      peer_serve(joining, peer);
  int64_t now = now_ms();
  for (int i = 0; i < GUESTS; i++) {
    guest_t *guest = &joining->guest[i];
    if (guest->fd >= 0 && polls[guests + i].revents != 0)
      guest_hear(joining, guest);
    else if (guest->fd >= 0 && now - guest->since_ms > GUEST_MS)
      guest_drop(guest);
  }
  if (polls[count].revents != 0)
    guests_accept(joining);
  return ncclSuccess;
}

ncclResult_t host_mesh_connect(host_mesh_t *mesh, const host_offer_t *offer,
                               int rank, int ranks, int maker,
                               const atomic_bool *stop) {
  joining_t joining = {
      .mesh = mesh, .offer = offer, .rank = rank, .ranks = ranks};
  for (int i = 0; i < GUESTS; i++)
    joining.guest[i].fd = -1;
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess && !complete(&joining))
    result = atomic_load(stop) ? HOST_STOPPED : step(&joining, maker);
  for (int i = 0; i < GUESTS; i++)
    guest_drop(&joining.guest[i]);
  return result;
}
