// SPDX-License-Identifier: Apache-2.0
// The ranks' side of joining: finds the maker of the id. Ends when the segment
// is open and every rank announced or, between machines, connected.
#include "src/host/nccl/net/join.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"
#include "src/host/nccl/net/mesh.h"
#include "src/host/nccl/net/packet.h"

enum { STOP_POLL_MS = 20 };

// A rank that is joining.
typedef struct joiner {
  int fd; // the connection to the maker
  host_inbox_t inbox;
  host_packet_t hello;
  const host_offer_t *offer;
  host_mesh_t mesh;
  const atomic_bool *stop;
  host_nonces_t nonces;
  bool challenged; // the nonces are known
  bool heard;      // the maker has answered HELLO
} joiner_t;

// Waits for the maker's next packet.
static ncclResult_t await_packet(joiner_t *joiner, int *out_carried) {
  struct pollfd wait = {.fd = joiner->fd, .events = POLLIN};
  for (;;) {
    if (atomic_load(joiner->stop))
      return HOST_STOPPED;
    int ready = poll(&wait, 1, STOP_POLL_MS);
    if (ready < 0 && errno != EINTR)
      return ncclSystemError;
    if (ready <= 0)
      continue;
    int got = host_packet_recv(joiner->fd, &joiner->inbox, out_carried);
    if (got < 0)
      return ncclRemoteError;
    if (got > 0)
      break;
  }
  const host_packet_t *packet = &joiner->inbox.packet;
  if (!joiner->challenged)
    return ncclSuccess;
  if (!host_packet_proves(packet, joiner->offer, &joiner->nonces))
    return ncclRemoteError;
  joiner->heard = true;
  if (packet->word == HOST_WORD_FAIL)
    return packet->result > 0 && packet->result < ncclNumResults
               ? (ncclResult_t)packet->result
               : ncclInternalError;
  return ncclSuccess;
}

static ncclResult_t await_word(joiner_t *joiner, host_word_t expected) {
  ncclResult_t result = await_packet(joiner, NULL);
  if (result == ncclSuccess && joiner->inbox.packet.word != (int32_t)expected)
    result = ncclInternalError;
  return result;
}

static bool say(const joiner_t *joiner, host_packet_t packet) {
  memcpy(packet.nonce, joiner->nonces.caller, sizeof packet.nonce);
  host_packet_prove(&packet, joiner->offer, &joiner->nonces);
  return host_packet_send(joiner->fd, &packet, -1);
}

// From CHALLENGE to HELLO.
static ncclResult_t greet(joiner_t *joiner) {
  joiner->challenged = false;
  ncclResult_t result = await_word(joiner, HOST_WORD_CHALLENGE);
  if (result != ncclSuccess)
    return result == ncclInternalError ? ncclRemoteError : result;
  memcpy(joiner->nonces.called, joiner->inbox.packet.nonce, HOST_NONCE_BYTES);
  if (!host_packet_random(joiner->nonces.caller, HOST_NONCE_BYTES))
    return ncclSystemError;
  joiner->challenged = true;
  return say(joiner, joiner->hello) ? ncclSuccess : ncclRemoteError;
}

// From SEGMENT on: opens the shared memory.
static ncclResult_t open_shared(joiner_t *joiner, host_endpoint_t *endpoint,
                                int segment) {
  ncclResult_t result = segment < 0 ? ncclSystemError : ncclSuccess;
  if (result == ncclSuccess)
    result = host_endpoint_open(endpoint, segment, joiner->hello.rank,
                                joiner->hello.ranks);
  if (result != ncclSuccess) {
    host_fork_close(segment);
    return result;
  }
  result = await_word(joiner, HOST_WORD_LOCK);
  if (result == ncclSuccess)
    result = host_endpoint_announce(endpoint);
  if (result != ncclSuccess)
    host_endpoint_close(endpoint);
  return result;
}

// From the first PLACE on: connects with all ranks.
static ncclResult_t open_mesh(joiner_t *joiner, host_endpoint_t *endpoint) {
  int rank = joiner->hello.rank, ranks = joiner->hello.ranks;
  for (int i = 0; i < ranks; i++) {
    ncclResult_t result =
        i == 0 ? ncclSuccess : await_word(joiner, HOST_WORD_PLACE);
    if (result != ncclSuccess)
      return result;
    joiner->mesh.place[i] = joiner->inbox.packet.address;
  }
  ncclResult_t result = host_mesh_connect(&joiner->mesh, joiner->offer, rank,
                                          ranks, joiner->fd, joiner->stop);
  if (result == ncclSuccess)
    result = host_endpoint_mirror(endpoint, rank, ranks);
  if (result != ncclSuccess)
    return result;
  result = host_wire_start(endpoint, joiner->mesh.fd);
  if (result != ncclSuccess) {
    host_endpoint_close(endpoint);
    return result;
  }
  for (int i = 0; i < ranks; i++)
    joiner->mesh.fd[i] = -1; // the wire owns it now
  return ncclSuccess;
}

// From HELLO to GO.
static ncclResult_t join(joiner_t *joiner, host_endpoint_t *endpoint) {
  int segment = -1;
  ncclResult_t result = await_packet(joiner, &segment);
  int32_t word = joiner->inbox.packet.word;
  if (result == ncclSuccess && word == HOST_WORD_SEGMENT)
    result = open_shared(joiner, endpoint, segment);
  else if (result == ncclSuccess && word == HOST_WORD_PLACE)
    result = open_mesh(joiner, endpoint);
  else if (result == ncclSuccess)
    result = ncclInternalError;
  if (result != ncclSuccess)
    return result;
  host_packet_t packet = joiner->hello;
  packet.word = HOST_WORD_READY;
  if (!say(joiner, packet))
    result = ncclRemoteError;
  if (result == ncclSuccess)
    result = await_word(joiner, HOST_WORD_GO);
  if (result != ncclSuccess) {
    // Other ranks may have received GO.
    host_fault_set(endpoint,
                   (host_fault_t){HOST_FAULT_INIT, packet.rank, packet.rank});
    host_endpoint_close(endpoint);
  }
  return result;
}

// Connects to the maker of the id; on its own machine by a local socket.
static ncclResult_t maker_call(joiner_t *joiner) {
  const host_offer_t *offer = joiner->offer;
  struct sockaddr_un address;
  if (offer->machine == joiner->hello.machine) {
    socklen_t length = host_packet_address(offer, &address);
    joiner->fd =
        host_fork_guard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (joiner->fd < 0)
      return ncclSystemError;
    // After its maker has ended, another process may use the name.
    return connect(joiner->fd, (struct sockaddr *)&address, length) == 0 &&
                   host_packet_same_user(joiner->fd) >= 0
               ? ncclSuccess
               : ncclRemoteError;
  }
  joiner->fd = host_net_connect_begin(&offer->address);
  if (joiner->fd < 0)
    return ncclRemoteError;
  host_net_tune(joiner->fd);
  return host_mesh_await_connection(joiner->fd, joiner->stop);
}

ncclResult_t host_join(host_endpoint_t *endpoint, const ncclUniqueId *id,
                       int rank, int ranks, const atomic_bool *stop) {
  host_offer_t offer;
  memcpy(&offer, id, sizeof offer);
  if (memcmp(offer.magic, HOST_OFFER_MAGIC, sizeof offer.magic) != 0)
    return ncclInvalidArgument;
  joiner_t joiner = {.fd = -1,
                     .hello = {.word = HOST_WORD_HELLO,
                               .rank = rank,
                               .ranks = ranks,
                               .pid = (int32_t)getpid(),
                               .machine = host_net_machine()},
                     .offer = &offer,
                     .stop = stop};
  // A rank of another machine can join only if the id holds the maker's
  // address.
  bool distant = offer.address.any.sa_family != 0;
  if (!distant && offer.machine != joiner.hello.machine)
    return ncclInvalidUsage;
  host_mesh_init(&joiner.mesh);
  ncclResult_t result = ncclSuccess;
  if (distant)
    result = host_mesh_listen(&joiner.mesh, &joiner.hello.address);
  for (bool again = result == ncclSuccess; again;) {
    result = maker_call(&joiner);
    bool called = result == ncclSuccess;
    if (called)
      result = greet(&joiner);
    if (result == ncclSuccess)
      result = join(&joiner, endpoint);
    // A maker on another machine may have closed the connection to make room
    // for others.
    again = called && result == ncclRemoteError && !joiner.heard &&
            offer.machine != joiner.hello.machine;
    if (again) {
      host_fork_close(joiner.fd);
      joiner.fd = -1;
      joiner.inbox.got = 0;
      nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
  }
  host_mesh_fini(&joiner.mesh);
  host_fork_close(joiner.fd);
  return result;
}
