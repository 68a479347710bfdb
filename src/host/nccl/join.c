/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting of the ranks: the maker of the unique id listens on an abstract
 * socket, which leaves no name behind, and hands out the segment to processes
 * of the same user that know the secret in the id.
 *
 * Conversation, one packet each: HELLO from every rank; when all have come,
 * SEGMENT with the descriptor to each, then LOCK to each once this process has
 * closed its own copy (closing any copy drops the locks of the process that
 * announce its rank); READY from each that mapped and locked; GO to each.
 * Whoever ends before GO closes its connection, which fails all others. */
#include "src/host/nccl/join.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/host/nccl/fork.h"

enum { NAME_BYTES = 16, SECRET_BYTES = 16, STOP_POLL_MS = 20 };

static const char id_magic[8] = "hostnccl";

/* What a ncclUniqueId holds. The name can be listed by every user of the
 * machine, the secret cannot. */
typedef struct id {
  char magic[8];
  unsigned char name[NAME_BYTES];
  unsigned char secret[SECRET_BYTES];
  char zero[NCCL_UNIQUE_ID_BYTES - 8 - NAME_BYTES - SECRET_BYTES];
} offer_t;
_Static_assert(sizeof(offer_t) == sizeof(ncclUniqueId), "an id is 128 bytes");

typedef enum word {
  WORD_HELLO = 1,
  WORD_SEGMENT,
  WORD_LOCK,
  WORD_READY,
  WORD_GO,
  WORD_FAIL,
} word_t;

typedef struct packet {
  int32_t word;
  int32_t rank;   /* HELLO */
  int32_t ranks;  /* HELLO */
  int32_t result; /* FAIL: ncclResult_t */
  unsigned char secret[SECRET_BYTES];
} packet_t;

static socklen_t id_address(const offer_t *id, struct sockaddr_un *address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                        "host-nccl-");
  for (int i = 0; i < NAME_BYTES; i++)
    length += snprintf(address->sun_path + 1 + length, 3, "%02x", id->name[i]);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                     (size_t)length);
}

/* The process at the other end, if it is of our user; otherwise -1. */
static pid_t same_user(int fd) {
  struct ucred who;
  socklen_t length = sizeof(who);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 ||
      who.uid != geteuid())
    return -1;
  return who.pid;
}

static bool packet_send(int fd, const packet_t *packet, int carried) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {{0}};
  struct iovec part = {(void *)packet, sizeof(*packet)};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (carried >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
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
  return sent == (ssize_t)sizeof(*packet);
}

/* Reads what is there; false for the end of the connection or a malformed
 * packet. *out_carried is a guarded descriptor or -1. */
static bool packet_recv(int fd, packet_t *packet, int *out_carried) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec part = {packet, sizeof(*packet)};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof(control.bytes)};
  ssize_t got;
  do
    got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  int carried = -1;
  if (got >= 0) {
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS)
      memcpy(&carried, CMSG_DATA(header), sizeof(int));
  }
  if (carried >= 0)
    carried = host_fork_guard(carried);
  if (out_carried != NULL)
    *out_carried = carried;
  else
    host_fork_close(carried);
  return got == (ssize_t)sizeof(*packet);
}

/* The maker's side. */
typedef struct guest {
  int fd;
  int rank; /* -1: has not said HELLO */
  pid_t pid;
  bool ready;
} guest_t;

typedef struct host {
  offer_t id;
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
static void host_tell(host_t *host, const packet_t *packet, int carried) {
  for (int own = 0; own < 2; own++)
    for (int i = 0; i < host->guests_count; i++)
      if (host->guests[i].rank >= 0 &&
          (host->guests[i].pid == getpid()) == (own == 1))
        packet_send(host->guests[i].fd, packet, carried);
}

static ncclResult_t host_accept(host_t *host) {
  int fd = host_fork_guard(accept4(host->listener, NULL, NULL, SOCK_CLOEXEC));
  if (fd < 0) /* the guest gave up; but without descriptors it would go on */
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM
               ? ncclSystemError
               : ncclSuccess;
  pid_t pid = same_user(fd);
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
                               const packet_t *packet) {
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
  host_tell(host, &(packet_t){.word = WORD_SEGMENT}, segment);
  host_fork_close(segment);
  host_tell(host, &(packet_t){.word = WORD_LOCK}, -1);
  host->locked = true;
  return ncclSuccess;
}

/* One packet, or the end, of guest i. */
static ncclResult_t host_hear(host_t *host, int i) {
  guest_t *guest = &host->guests[i];
  packet_t packet;
  bool ended = !packet_recv(guest->fd, &packet, NULL);
  bool known = !ended && memcmp(packet.secret, host->id.secret,
                                sizeof(packet.secret)) == 0;
  if (guest->rank < 0 && known && packet.word == WORD_HELLO)
    return host_hello(host, guest, &packet);
  if (guest->rank >= 0 && known && packet.word == WORD_READY && host->locked &&
      !guest->ready) {
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
            result == ncclSuccess
                ? &(packet_t){.word = WORD_GO}
                : &(packet_t){.word = WORD_FAIL, .result = (int32_t)result},
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
  memcpy(host->id.magic, id_magic, sizeof(id_magic));
  struct sockaddr_un address;
  pthread_attr_t detached;
  sigset_t all, old;
  pthread_t thread;
  host->listener =
      host_fork_guard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (host->listener < 0 || !random_fill(host->id.name, NAME_BYTES) ||
      !random_fill(host->id.secret, SECRET_BYTES))
    goto failed;
  socklen_t length = id_address(&host->id, &address);
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

/* The ranks' side. Waits for a packet with word `expected`. */
static ncclResult_t await_word(int fd, word_t expected, int *out_carried,
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
  packet_t packet;
  if (!packet_recv(fd, &packet, out_carried))
    return ncclRemoteError;
  if (packet.word == WORD_FAIL)
    return packet.result > 0 && packet.result < ncclNumResults
               ? (ncclResult_t)packet.result
               : ncclInternalError;
  return packet.word == (int32_t)expected ? ncclSuccess : ncclInternalError;
}

/* From SEGMENT to GO, on a connection that has said HELLO. */
static ncclResult_t join_segment(host_endpoint_t *endpoint, int fd,
                                 packet_t packet, const atomic_bool *stop) {
  int segment = -1;
  ncclResult_t result = await_word(fd, WORD_SEGMENT, &segment, stop);
  if (result == ncclSuccess && segment < 0)
    result = ncclSystemError;
  if (result == ncclSuccess)
    result = host_endpoint_open(endpoint, segment, packet.rank, packet.ranks);
  if (result != ncclSuccess) {
    host_fork_close(segment);
    return result;
  }
  result = await_word(fd, WORD_LOCK, NULL, stop);
  if (result == ncclSuccess)
    result = host_endpoint_announce(endpoint);
  packet.word = WORD_READY;
  if (result == ncclSuccess && !packet_send(fd, &packet, -1))
    result = ncclRemoteError;
  if (result == ncclSuccess)
    result = await_word(fd, WORD_GO, NULL, stop);
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
  offer_t offer;
  memcpy(&offer, id, sizeof(offer));
  if (memcmp(offer.magic, id_magic, sizeof(id_magic)) != 0)
    return ncclInvalidArgument;
  struct sockaddr_un address;
  socklen_t length = id_address(&offer, &address);
  int fd = host_fork_guard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0)
    return ncclSystemError;
  packet_t hello = {.word = WORD_HELLO, .rank = rank, .ranks = ranks};
  memcpy(hello.secret, offer.secret, sizeof(hello.secret));
  ncclResult_t result = ncclRemoteError;
  /* The name may belong to a stranger once its maker is gone. */
  if (connect(fd, (struct sockaddr *)&address, length) == 0 &&
      same_user(fd) >= 0 && packet_send(fd, &hello, -1))
    result = join_segment(endpoint, fd, hello, stop);
  host_fork_close(fd);
  return result;
}
