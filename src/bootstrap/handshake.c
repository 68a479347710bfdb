// SPDX-License-Identifier: Apache-2.0
// The rendezvous socket: its address, the user at the other end, and rank 0's
// side, which decides which processes may join and sends them the segment's
// descriptor.
#include "src/bootstrap/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/rendezvous.h"

sdg_status_t sdg_handshake_address(const char *path, struct sockaddr_un *out,
                                   int *out_folder) {
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  *out_folder = -1;
  if (strlen(path) < sizeof out->sun_path) {
    memcpy(out->sun_path, path, strlen(path) + 1);
    return SDG_OK;
  }
  const char *name = strrchr(path, '/') + 1;
  char *folder = strndup(path, (size_t)(name - path));
  if (!folder)
    return sdg_fail(SDG_E_NO_MEMORY, "path of the rendezvous");
  int fd = sdg_fd_raise(open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  int why = errno;
  free(folder);
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "folder of %s: %s", path, strerror(why));
  int n = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s",
                   fd, name);
  if (n < 0 || (size_t)n >= sizeof out->sun_path) {
    close(fd);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "the name %s is too long for a socket: at most 80 bytes",
                    name);
  }
  *out_folder = fd;
  return SDG_OK;
}

int sdg_handshake_socket(void) {
  return sdg_fd_raise(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int sdg_handshake_same_user(int fd) {
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         bytes == sizeof peer && peer.uid == geteuid();
}

// ---- rank 0's side ----------------------------------------------------------

enum {
  STRANGERS = 32,       // most connections that have not sent a hello
  STRANGER_SECONDS = 5, // time limit for the hello
};

typedef struct caller {
  int fd;      // -1: free
  nfds_t poll; // its place in the list that is polled
  int rank;    // -1: not yet known
  double since_s;
  size_t got;
  sdg_hello_t hello;
} caller_t;

// Removes a stale socket at `path`.
static sdg_status_t stale_remove(const char *path,
                                 const struct sockaddr_un *address) {
  struct stat found;
  if (lstat(path, &found) != 0)
    return SDG_OK; // if something is wrong, bind reports it
  if (!S_ISSOCK(found.st_mode))
    return sdg_fail(SDG_E_RENDEZVOUS, "%s exists and is not a socket", path);
  int fd = sdg_handshake_socket();
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "socket: %s", strerror(errno));
  int why =
      connect(fd, (const void *)address, sizeof *address) == 0 ? 0 : errno;
  close(fd);
  // Not a rank 0 of this job, because that would hold the lock that we hold.
  if (why == 0 || why == EAGAIN)
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "a process that is not in this job listens at %s", path);
  if (why != ECONNREFUSED && why != ENOENT)
    return sdg_fail(SDG_E_RENDEZVOUS, "%s: %s", path, strerror(why));
  if (unlink(path) != 0 && errno != ENOENT)
    return sdg_fail(SDG_E_RENDEZVOUS, "cannot replace %s: %s", path,
                    strerror(errno));
  return SDG_OK;
}

static sdg_status_t listener_open(const char *path, int *out_fd) {
  struct sockaddr_un address;
  int folder, fd = -1;
  sdg_status_t status;
  SDG_TRY(sdg_handshake_address(path, &address, &folder));
  SDG_TRY_GOTO(stale_remove(path, &address), done);
  fd = sdg_handshake_socket();
  // On Linux a socket's file gets the mode of the socket itself: it is never
  // open to other users, and no umask has to be changed, which would affect
  // other threads.
  if (fd < 0 || fchmod(fd, 0600) != 0 ||
      bind(fd, (const void *)&address, sizeof address) != 0 ||
      listen(fd, 128) != 0) {
    status = sdg_fail(SDG_E_RENDEZVOUS, "socket %s: %s", path, strerror(errno));
    if (fd >= 0)
      close(fd);
    goto done;
  }
  *out_fd = fd;
done:
  if (folder >= 0)
    close(folder);
  return status;
}

static void answer_send(int fd, sdg_status_t verdict, const char *text,
                        int segment_fd) {
  sdg_answer_t answer = {.magic = SDG_HELLO_MAGIC,
                         .layout = sdg_shm_layout(),
                         .status = (uint32_t)verdict};
  snprintf(answer.text, sizeof answer.text, "%s", text);
  struct iovec bytes = {.iov_base = &answer, .iov_len = sizeof answer};
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
  if (verdict == SDG_OK) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &segment_fd, sizeof(int));
  }
  // An answer fits into an empty socket buffer. If the caller has ended, the
  // next poll shows it.
  while (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
         errno == EINTR)
    ;
}

static void caller_drop(caller_t *caller) {
  close(caller->fd);
  caller->fd = -1;
}

// Checks a complete hello. If a rank of this job cannot take part, the job
// fails; any other caller gets an answer and is dropped.
static sdg_status_t caller_judge(const sdg_shm_view_t *view, caller_t *callers,
                                 int count, caller_t *c) {
  char text[SDG_ANSWER_TEXT_BYTES], launch[SDG_LAUNCH_BYTES];
  const sdg_hello_t *hello = &c->hello;
  int rank = (int)hello->rank, taken = 0;
  if (hello->magic != SDG_HELLO_MAGIC) {
    caller_drop(c);
    return SDG_OK;
  }
  if (hello->layout != sdg_shm_layout()) {
    answer_send(c->fd, SDG_E_RENDEZVOUS,
                "rank 0 runs another version of sundog", -1);
    caller_drop(c);
    return SDG_OK;
  }
  if (sdg_launch_differs(c->hello.launch, launch, sizeof launch)) {
    // This job's own rank of that number may still arrive.
    snprintf(text, sizeof text,
             "rank %u belongs to another launch (%.120s) than rank 0 (%.120s)",
             hello->rank, hello->launch, launch);
    answer_send(c->fd, SDG_E_RENDEZVOUS, text, -1);
    sdg_log("%s", text);
    caller_drop(c);
    return SDG_OK;
  }
  if (hello->size != (uint32_t)view->ranks) {
    snprintf(text, sizeof text, "rank %u has size %u, rank 0 has size %d",
             hello->rank, hello->size, view->ranks);
    answer_send(c->fd, SDG_E_RENDEZVOUS, text, -1);
    caller_drop(c);
    return sdg_shm_fail(view, 0, SDG_E_RENDEZVOUS, "%s", text);
  }
  if (rank > 0 && rank < view->ranks) {
    taken = sdg_shm_state(view, rank) != SDG_SHM_ABSENT;
    for (int i = 0; i < count; i++)
      taken = taken || (callers[i].fd >= 0 && callers[i].rank == rank);
  }
  if (rank <= 0 || rank >= view->ranks || taken) {
    snprintf(text, sizeof text, "rank 0 waits for ranks 1 to %d, not rank %u",
             view->ranks - 1, hello->rank);
    answer_send(c->fd, taken ? SDG_E_RANK_TAKEN : SDG_E_RENDEZVOUS, text, -1);
    caller_drop(c);
    return SDG_OK;
  }
  c->rank = rank;
  answer_send(c->fd, SDG_OK, "", view->fd.fd);
  return SDG_OK;
}

static sdg_status_t caller_receive(const sdg_shm_view_t *view,
                                   caller_t *callers, int count, caller_t *c) {
  char more[64];
  int known = c->rank >= 0;
  ssize_t n = known ? recv(c->fd, more, sizeof more, MSG_DONTWAIT)
                    : recv(c->fd, (char *)&c->hello + c->got,
                           sizeof c->hello - c->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return SDG_OK;
  if (n <= 0) {
    // A rank closes the connection after it has joined; if it closes earlier,
    // it has died.
    int rank = c->rank;
    caller_drop(c);
    if (known && sdg_shm_state(view, rank) == SDG_SHM_ABSENT)
      return sdg_shm_fail(view, 0, SDG_E_PEER_LOST,
                          "rank %d ended while joining", rank);
    return SDG_OK;
  }
  if (known)
    return SDG_OK;
  c->got += (size_t)n;
  return c->got == sizeof c->hello ? caller_judge(view, callers, count, c)
                                   : SDG_OK;
}

static sdg_status_t callers_accept(const sdg_shm_view_t *view, int listener,
                                   caller_t *callers, int count, double now_s) {
  int fd;
  while ((fd = sdg_fd_raise(accept4(listener, NULL, NULL,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK))) >= 0) {
    int i = 0;
    while (i < count && callers[i].fd >= 0)
      i++;
    if (i == count || !sdg_handshake_same_user(fd)) {
      close(fd); // a rank of this job tries again
      continue;
    }
    callers[i] = (caller_t){.fd = fd, .rank = -1, .since_s = now_s};
  }
  return errno == EMFILE
             ? sdg_shm_fail(view, 0, SDG_E_RENDEZVOUS,
                            "rank 0 may not open the descriptors that %d ranks "
                            "take (ulimit -n)",
                            view->ranks)
             : SDG_OK;
}

// Asks for those in use alone: poll() refuses more than `ulimit -n`.
static void callers_poll(int listener, caller_t *callers, int count,
                         struct pollfd *polls) {
  nfds_t used = 0;
  polls[used++] = (struct pollfd){.fd = listener, .events = POLLIN};
  for (int i = 0; i < count; i++)
    if (callers[i].fd >= 0) {
      callers[i].poll = used;
      polls[used++] = (struct pollfd){.fd = callers[i].fd, .events = POLLIN};
    }
  if (poll(polls, used, 50) < 0) {
    if (errno != EINTR) // the kernel is out of memory: until the timeout
      nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    for (nfds_t i = 0; i < used; i++)
      polls[i].revents = 0;
  }
}

static sdg_status_t callers_serve(int listener, const sdg_shm_view_t *view,
                                  sdg_rendezvous_wait_t *wait) {
  int count = view->ranks + STRANGERS, all = 0;
  caller_t *callers = calloc((size_t)count, sizeof *callers);
  struct pollfd *polls = calloc((size_t)count + 1, sizeof *polls);
  sdg_status_t status = SDG_OK;
  if (!callers || !polls) {
    status = sdg_shm_fail(view, 0, SDG_E_NO_MEMORY, "%d connections", count);
    count = 0;
    goto done;
  }
  for (int i = 0; i < count; i++)
    callers[i].fd = -1;
  for (;;) {
    double now_s = sdg_stopwatch_read(&wait->watch);
    SDG_TRY_GOTO(sdg_rendezvous_complete(view, 0, wait, &all), done);
    if (all)
      break;
    callers_poll(listener, callers, count, polls);
    for (int i = 0; i < count; i++) {
      if (callers[i].fd >= 0 && polls[callers[i].poll].revents)
        SDG_TRY_GOTO(caller_receive(view, callers, count, &callers[i]), done);
      if (callers[i].fd >= 0 && callers[i].rank < 0 &&
          now_s - callers[i].since_s > STRANGER_SECONDS)
        caller_drop(&callers[i]);
    }
    if (polls[0].revents)
      SDG_TRY_GOTO(callers_accept(view, listener, callers, count, now_s), done);
  }
done:
  for (int i = 0; i < count; i++)
    if (callers[i].fd >= 0)
      close(callers[i].fd);
  free(callers);
  free(polls);
  return status;
}

sdg_status_t sdg_rendezvous_serve(const sdg_shm_view_t *view,
                                  sdg_rendezvous_wait_t *wait) {
  int listener = -1;
  SDG_TRY(listener_open(wait->place, &listener));
  sdg_status_t status = callers_serve(listener, view, wait);
  unlink(wait->place);
  close(listener);
  return status;
}
