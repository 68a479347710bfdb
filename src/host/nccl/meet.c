/* SPDX-License-Identifier: Apache-2.0 */
/* The maker's side of the meeting: a thread that answers to a unique id until
 * all ranks share a segment or one of them has failed. */
#include "src/host/nccl/join.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/host/nccl/fork.h"
#include "src/host/nccl/packet.h"

typedef struct guest {
  int fd;
  int rank; /* -1: has not said HELLO */
  pid_t pid;
  bool ready;
} guest_t;

typedef struct host {
  host_offer_t id;
  int listener;
  guest_t *guests;
  int guests_count;
  int guests_room;
  int ranks; /* 0: unknown */
  int hellos;
  int ready;
  bool locked; /* SEGMENT and LOCK are out */
} host_t;

/* This process's own rank comes last: told to go, it may end the process. */
static void host_tell(host_t *host, const host_packet_t *packet, int carried) {
  for (int own = 0; own < 2; own++)
    for (int i = 0; i < host->guests_count; i++)
      if (host->guests[i].rank >= 0 &&
          (host->guests[i].pid == getpid()) == (own == 1))
        host_packet_send(host->guests[i].fd, packet, carried);
}

static ncclResult_t host_accept(host_t *host) {
  int fd = host_fork_guard(accept4(host->listener, NULL, NULL, SOCK_CLOEXEC));
  if (fd < 0) /* the guest gave up; but without descriptors it would go on */
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM
               ? ncclSystemError
               : ncclSuccess;
  pid_t pid = host_packet_same_user(fd);
  if (pid < 0) {
    host_fork_close(fd);
    return ncclSuccess;
  }
  if (host->guests_count == host->guests_room) {
    int room = 2 * host->guests_room + 8;
    guest_t *grown = realloc(host->guests, (size_t)room * sizeof(*grown));
    if (grown == NULL) {
      host_fork_close(fd);
      return ncclSystemError;
    }
    host->guests = grown;
    host->guests_room = room;
  }
  host->guests[host->guests_count++] = (guest_t){fd, -1, pid, false};
  return ncclSuccess;
}

static ncclResult_t host_hello(host_t *host, guest_t *guest,
                               const host_packet_t *packet) {
  if (host->locked || packet->ranks < 1 || packet->ranks > HOST_RANKS_MAX ||
      packet->rank < 0 || packet->rank >= packet->ranks)
    return ncclInvalidUsage;
  guest->rank = packet->rank;
  if (host->ranks == 0)
    host->ranks = packet->ranks;
  if (host->ranks != packet->ranks)
    return ncclInvalidArgument;
  for (int i = 0; i < host->guests_count; i++) {
    const guest_t *other = &host->guests[i];
    if (other != guest && other->rank >= 0 &&
        (other->rank == guest->rank ||
         /* 0: a process that this one cannot see */
         (other->pid == guest->pid && guest->pid > 0)))
      return ncclInvalidUsage;
  }
  host->hellos++;
  return ncclSuccess;
}

static ncclResult_t host_hand_out(host_t *host) {
  int segment = host_fork_guard(host_segment_create(host->ranks));
  if (segment < 0)
    return ncclSystemError;
  host_tell(host, &(host_packet_t){.word = HOST_WORD_SEGMENT}, segment);
  host_fork_close(segment);
  host_tell(host, &(host_packet_t){.word = HOST_WORD_LOCK}, -1);
  host->locked = true;
  return ncclSuccess;
}

/* One packet, or the end, of guest i. */
static ncclResult_t host_hear(host_t *host, int i) {
  guest_t *guest = &host->guests[i];
  host_packet_t packet;
  bool ended = !host_packet_recv(guest->fd, &packet, NULL);
  bool known = !ended && memcmp(packet.secret, host->id.secret,
                                sizeof(packet.secret)) == 0;
  if (guest->rank < 0 && known && packet.word == HOST_WORD_HELLO)
    return host_hello(host, guest, &packet);
  if (guest->rank >= 0 && known && packet.word == HOST_WORD_READY &&
      host->locked && !guest->ready) {
    guest->ready = true;
    host->ready++;
    return ncclSuccess;
  }
  bool was_rank = guest->rank >= 0;
  host_fork_close(guest->fd);
  *guest = host->guests[--host->guests_count];
  return was_rank ? ncclRemoteError : ncclSuccess;
}

static ncclResult_t host_step(host_t *host) {
  int count = host->guests_count + 1;
  struct pollfd *wait = calloc((size_t)count, sizeof(*wait));
  if (wait == NULL)
    return ncclSystemError;
  wait[0] = (struct pollfd){.fd = host->listener, .events = POLLIN};
  for (int i = 1; i < count; i++)
    wait[i] = (struct pollfd){.fd = host->guests[i - 1].fd, .events = POLLIN};
  ncclResult_t result = ncclSuccess;
  if (poll(wait, (nfds_t)count, -1) < 0 && errno != EINTR)
    result = ncclSystemError;
  /* Backwards: an ended guest is replaced by the last one. */
  for (int i = count - 1; i >= 1 && result == ncclSuccess; i--)
    if (wait[i].revents != 0)
      result = host_hear(host, i - 1);
  if (result == ncclSuccess && wait[0].revents != 0)
    result = host_accept(host);
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
  free(host->guests);
  free(host);
  return NULL;
}

static bool random_fill(void *bytes, size_t count) {
  return getrandom(bytes, count, 0) == (ssize_t)count;
}

ncclResult_t host_join_offer(ncclUniqueId *out_id) {
  host_t *host = calloc(1, sizeof(*host));
  if (host == NULL)
    return ncclSystemError;
  memcpy(host->id.magic, HOST_OFFER_MAGIC, sizeof(host->id.magic));
  struct sockaddr_un address;
  pthread_attr_t detached;
  sigset_t all, old;
  pthread_t thread;
  host->listener =
      host_fork_guard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (host->listener < 0 || !random_fill(host->id.name, HOST_NAME_BYTES) ||
      !random_fill(host->id.secret, HOST_SECRET_BYTES))
    goto failed;
  socklen_t length = host_packet_address(&host->id, &address);
  if (bind(host->listener, (struct sockaddr *)&address, length) != 0 ||
      listen(host->listener, HOST_RANKS_MAX) != 0)
    goto failed;
  ncclUniqueId id;
  memcpy(&id, &host->id, sizeof(id));
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  /* The program's signals are for the program's threads. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = pthread_create(&thread, &detached, host_main, host);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&detached);
  if (error != 0)
    goto failed;
  *out_id = id;
  return ncclSuccess;
failed:
  host_fork_close(host->listener);
  free(host);
  return ncclSystemError;
}
