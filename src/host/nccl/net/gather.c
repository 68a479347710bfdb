// SPDX-License-Identifier: Apache-2.0
// The maker's side of joining: a thread that answers for a unique id until all
// ranks share a segment or one of them has failed.
#include "src/host/nccl/net/join.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"
#include "src/host/nccl/net/packet.h"
#include "src/host/thread.h"

// Limits for connections that have not sent HELLO: their number, and the time
// each may take.
enum { STRANGERS = 64, STRANGER_MS = 5000 };

typedef struct guest {
  int fd;
  int rank; // -1 before HELLO
  pid_t pid;
  bool local; // a process of this machine; pid is from the system
  bool ready;
  int64_t since_ms;
  uint64_t machine;
  host_address_t address;
  host_inbox_t inbox;
  host_nonces_t nonces;
} guest_t;

typedef struct host {
  host_offer_t id;
  int listener;
  int distant; // socket for ranks of other machines; -1: not used
  guest_t *guests;
  int guests_count;
  int guests_room;
  int ranks; // 0: unknown
  int hellos;
  int ready;
  bool locked; // SEGMENT and LOCK have been sent
} host_t;

static void guest_tell(const host_t *host, const guest_t *guest,
                       host_packet_t packet, int carried) {
  host_packet_prove(&packet, &host->id, &guest->nonces);
  host_packet_send(guest->fd, &packet, carried);
}

// Sends a packet to all. This process's own rank gets it last, because GO may
// let it end the process.
static void host_tell(host_t *host, const host_packet_t *packet, int carried) {
  for (int own = 0; own < 2; own++)
    for (int i = 0; i < host->guests_count; i++)
      if (host->guests[i].rank >= 0 &&
          (host->guests[i].pid == getpid() &&
           host->guests[i].machine == host->id.machine) == (own == 1))
        guest_tell(host, &host->guests[i], *packet, carried);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void guest_drop(host_t *host, int i) {
  host_fork_close(host->guests[i].fd);
  host->guests[i] = host->guests[--host->guests_count];
}

// Closes connections that have not sent HELLO: all that are too old, and the
// oldest one if there are too many, so that nobody can block the others.
static void strangers_limit(host_t *host) {
  int64_t now = now_ms();
  for (;;) {
    int oldest = -1, count = 0;
    for (int i = 0; i < host->guests_count; i++) {
      const guest_t *guest = &host->guests[i];
      if (guest->rank >= 0)
        continue;
      count++;
      if (oldest < 0 || guest->since_ms < host->guests[oldest].since_ms)
        oldest = i;
    }
    if (oldest < 0 || (count < STRANGERS &&
                       now - host->guests[oldest].since_ms < STRANGER_MS))
      return;
    guest_drop(host, oldest);
  }
}

static ncclResult_t host_hello(host_t *host, guest_t *guest,
                               const host_packet_t *packet) {
  if (host->locked || packet->ranks < 1 || packet->ranks > HOST_RANKS_MAX ||
      packet->rank < 0 || packet->rank >= packet->ranks)
    return ncclInvalidUsage;
  guest->rank = packet->rank;
  guest->machine = packet->machine;
  guest->address = packet->address;
  if (!guest->local)
    guest->pid = packet->pid;
  if (host->ranks == 0)
    host->ranks = packet->ranks;
  if (host->ranks != packet->ranks)
    return ncclInvalidArgument;
  for (int i = 0; i < host->guests_count; i++) {
    const guest_t *other = &host->guests[i];
    if (other != guest && other->rank >= 0 &&
        (other->rank == guest->rank ||
         // 0: a process that this process cannot see
         (other->pid == guest->pid && other->machine == guest->machine &&
          guest->pid > 0)))
      return ncclInvalidUsage;
  }
  host->hellos++;
  return ncclSuccess;
}

// Returns whether all ranks can share memory.
static bool host_has_one_machine(const host_t *host) {
  for (int i = 0; i < host->guests_count; i++)
    if (host->guests[i].rank >= 0 &&
        host->guests[i].machine != host->id.machine)
      return false;
  return true;
}

static ncclResult_t host_tell_places(host_t *host) {
  for (int rank = 0; rank < host->ranks; rank++)
    for (int i = 0; i < host->guests_count; i++)
      if (host->guests[i].rank == rank) {
        host_packet_t place = {.word = HOST_WORD_PLACE,
                               .rank = rank,
                               .address = host->guests[i].address};
        host_tell(host, &place, -1);
        break;
      }
  host->locked = true;
  return ncclSuccess;
}

static ncclResult_t host_hand_out(host_t *host) {
  if (!host_has_one_machine(host))
    return host_tell_places(host);
  int segment = host_fork_guard(host_segment_create(host->ranks));
  if (segment < 0)
    return ncclSystemError;
  host_tell(host, &(host_packet_t){.word = HOST_WORD_SEGMENT}, segment);
  host_fork_close(segment);
  host_tell(host, &(host_packet_t){.word = HOST_WORD_LOCK}, -1);
  host->locked = true;
  return ncclSuccess;
}

// Reads one packet, or the end of the connection, of guest i.
static ncclResult_t host_hear(host_t *host, int i) {
  guest_t *guest = &host->guests[i];
  const host_packet_t *packet = &guest->inbox.packet;
  int got = host_packet_recv(guest->fd, &guest->inbox, NULL);
  if (got == 0)
    return ncclSuccess;
  if (guest->rank < 0)
    memcpy(guest->nonces.caller, packet->nonce, sizeof packet->nonce);
  bool known = got > 0 && host_packet_proves(packet, &host->id, &guest->nonces);
  if (guest->rank < 0 && known && packet->word == HOST_WORD_HELLO)
    return host_hello(host, guest, packet);
  if (guest->rank >= 0 && known && packet->word == HOST_WORD_READY &&
      host->locked && !guest->ready) {
    guest->ready = true;
    host->ready++;
    return ncclSuccess;
  }
  bool was_rank = guest->rank >= 0;
  guest_drop(host, i);
  return was_rank ? ncclRemoteError : ncclSuccess;
}

static ncclResult_t host_accept(host_t *host, int listener) {
  int fd = host_fork_guard(
      accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd <
      0) // the guest gave up, because without descriptors it would continue
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM
               ? ncclSystemError
               : ncclSuccess;
  bool local = listener == host->listener;
  pid_t pid = local ? host_packet_same_user(fd) : 0;
  if (pid < 0) {
    host_fork_close(fd);
    return ncclSuccess;
  }
  host_nonces_t nonces;
  if (!host_packet_challenge(fd, &nonces)) {
    host_fork_close(fd);
    return ncclSuccess;
  }
  if (!local)
    host_net_tune(fd);
  strangers_limit(host);
  if (host->guests_count == host->guests_room) {
    int room = 2 * host->guests_room + 8;
    guest_t *grown = realloc(host->guests, (size_t)room * sizeof *grown);
    if (!grown) {
      host_fork_close(fd);
      return ncclSystemError;
    }
    host->guests = grown;
    host->guests_room = room;
  }
  host->guests[host->guests_count++] = (guest_t){.fd = fd,
                                                 .rank = -1,
                                                 .pid = pid,
                                                 .local = local,
                                                 .since_ms = now_ms(),
                                                 .nonces = nonces};
  return ncclSuccess;
}

static ncclResult_t host_step(host_t *host) {
  strangers_limit(host);
  int guests = host->guests_count, count = guests + 2, strangers = 0;
  struct pollfd *wait = calloc((size_t)count, sizeof *wait);
  if (!wait)
    return ncclSystemError;
  for (int i = 0; i < guests; i++) {
    wait[i] = (struct pollfd){.fd = host->guests[i].fd, .events = POLLIN};
    strangers += host->guests[i].rank < 0;
  }
  wait[guests] = (struct pollfd){.fd = host->listener, .events = POLLIN};
  wait[guests + 1] = (struct pollfd){.fd = host->distant, .events = POLLIN};
  ncclResult_t result = ncclSuccess;
  if (poll(wait, (nfds_t)count, strangers > 0 ? STRANGER_MS : -1) < 0 &&
      errno != EINTR)
    result = ncclSystemError;
  // Backwards, because the last guest replaces one that ended.
  for (int i = guests - 1; i >= 0 && result == ncclSuccess; i--)
    if (wait[i].revents != 0)
      result = host_hear(host, i);
  if (result == ncclSuccess && wait[guests].revents != 0)
    result = host_accept(host, host->listener);
  if (result == ncclSuccess && wait[guests + 1].revents != 0)
    result = host_accept(host, host->distant);
  free(wait);
  return result;
}

static void *host_main(void *argument) {
  host_t *host = argument;
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess &&
         (host->ranks == 0 || host->ready < host->ranks)) {
    result = host_step(host);
    if (result == ncclSuccess && !host->locked && host->ranks > 0 &&
        host->hellos == host->ranks)
      result = host_hand_out(host);
  }
  host_tell(host,
            result == ncclSuccess ? &(host_packet_t){.word = HOST_WORD_GO}
                                  : &(host_packet_t){.word = HOST_WORD_FAIL,
                                                     .result = (int32_t)result},
            -1);
  for (int i = 0; i < host->guests_count; i++)
    host_fork_close(host->guests[i].fd);
  host_fork_close(host->listener);
  host_fork_close(host->distant);
  free(host->guests);
  free(host);
  return NULL;
}

ncclResult_t host_join_offer(ncclUniqueId *out_id) {
  host_t *host = calloc(1, sizeof *host);
  if (!host)
    return ncclSystemError;
  memcpy(host->id.magic, HOST_OFFER_MAGIC, sizeof host->id.magic);
  host->id.machine = host_net_machine();
  host->distant = -1;
  struct sockaddr_un address;
  host->listener =
      host_fork_guard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (host->listener < 0 ||
      !host_packet_random(host->id.name, HOST_NAME_BYTES) ||
      !host_packet_random(host->id.secret, HOST_SECRET_BYTES))
    goto failed;
  socklen_t length = host_packet_address(&host->id, &address);
  if (bind(host->listener, (struct sockaddr *)&address, length) != 0 ||
      listen(host->listener, HOST_RANKS_MAX) != 0)
    goto failed;
  if (host_net_asked() &&
      (host->distant = host_net_listen(&host->id.address)) < 0)
    goto failed;
  ncclUniqueId id;
  memcpy(&id, &host->id, sizeof id);
  if (host_thread_start(NULL, host_main, host) != 0)
    goto failed;
  *out_id = id;
  return ncclSuccess;
failed:
  host_fork_close(host->listener);
  host_fork_close(host->distant);
  free(host);
  return ncclSystemError;
}
