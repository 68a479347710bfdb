// SPDX-License-Identifier: Apache-2.0
// The handshake over a Unix socket: who may enter, and the passing of the
// segment's descriptor.
#include "src/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/fd.h"
#include "src/stopwatch.h"

#define MAGIC UINT64_C(0x7364672d68656c6f) // "sdg-helo"

enum {
  STRANGERS = 32,       // connections that have not said who they are
  STRANGER_SECONDS = 5, // how long one may take to
  ANSWER_TEXT_BYTES = 232,
};

// One machine, so the byte order is that of both.
typedef struct hello {
  uint64_t magic;
  uint32_t layout;
  uint32_t size;
  uint32_t rank;
  uint32_t reserved;
} hello_t;

typedef struct answer {
  uint64_t magic;
  uint32_t layout;
  uint32_t status; // SDG_OK comes with the segment
  char text[ANSWER_TEXT_BYTES];
} answer_t;

typedef struct caller {
  int fd;   // -1: free
  int rank; // -1: has not said
  double since_s;
  size_t got;
  hello_t hello;
} caller_t;

sdg_status_t sdg_rendezvous_path(const char *rendezvous,
                                 const char **out_path) {
  if (!rendezvous || !*rendezvous)
    return sdg_fail(SDG_E_RENDEZVOUS, "none is given");
  if (strncmp(rendezvous, "tcp://", 6) == 0)
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "%s: ranks on several machines are not supported in this "
                    "version; give file:/path",
                    rendezvous);
  if (strncmp(rendezvous, "file:/", 6) != 0 ||
      rendezvous[strlen(rendezvous) - 1] == '/')
    return sdg_fail(SDG_E_RENDEZVOUS, "%s is not file:/path", rendezvous);
  *out_path = rendezvous + strlen("file:");
  return SDG_OK;
}

// The address of `path`. One that is too long is named through its folder,
// opened as *out_folder (otherwise -1) until the address has been used.
static sdg_status_t address_of(const char *path, struct sockaddr_un *out,
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

static int socket_make(void) {
  return sdg_fd_raise(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static int same_user(int fd) {
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         bytes == sizeof peer && peer.uid == geteuid();
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

// ---- rank 0 ---------------------------------------------------------------

// Makes room at `path` for our socket.
static sdg_status_t stale_remove(const char *path,
                                 const struct sockaddr_un *address) {
  struct stat found;
  if (lstat(path, &found) != 0)
    return SDG_OK; // bind says what is wrong, if anything is
  if (!S_ISSOCK(found.st_mode))
    return sdg_fail(SDG_E_RENDEZVOUS, "%s exists and is not a socket", path);
  int fd = socket_make();
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "socket: %s", strerror(errno));
  int why =
      connect(fd, (const void *)address, sizeof *address) == 0 ? 0 : errno;
  close(fd);
  if (why == 0 || why == EAGAIN)
    return SDG_E_RANK_TAKEN;
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
  SDG_TRY(address_of(path, &address, &folder));
  SDG_TRY_GOTO(stale_remove(path, &address), done);
  fd = socket_make();
  // On Linux a socket's file gets the mode of the socket itself: no moment in
  // which it is open to others, and no umask to change under other threads.
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
  answer_t answer = {.magic = MAGIC,
                     .layout = sdg_segment_layout(),
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
  // 256 bytes fit an empty socket buffer. A caller that is gone is seen at
  // the next poll.
  while (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
         errno == EINTR)
    ;
}

static void caller_drop(caller_t *caller) {
  close(caller->fd);
  caller->fd = -1;
}

// Judges a complete hello. A rank of this job that cannot take part fails the
// job; anybody else is told and forgotten.
static sdg_status_t caller_judge(const sdg_segment_view_t *view,
                                 caller_t *callers, int count, caller_t *c) {
  char text[ANSWER_TEXT_BYTES];
  const hello_t *hello = &c->hello;
  int rank = (int)hello->rank, taken = 0;
  if (hello->magic != MAGIC) {
    caller_drop(c);
    return SDG_OK;
  }
  if (hello->layout != sdg_segment_layout()) {
    answer_send(c->fd, SDG_E_RENDEZVOUS, "rank 0 runs another sundog", -1);
    caller_drop(c);
    return SDG_OK;
  }
  if (hello->size != (uint32_t)view->ranks) {
    snprintf(text, sizeof text, "rank %u has size %u, rank 0 has size %d",
             hello->rank, hello->size, view->ranks);
    answer_send(c->fd, SDG_E_RENDEZVOUS, text, -1);
    caller_drop(c);
    return sdg_segment_fail(view, 0, SDG_E_RENDEZVOUS, "%s", text);
  }
  if (rank > 0 && rank < view->ranks) {
    taken = sdg_segment_state(view, rank) != SDG_SEGMENT_ABSENT;
    for (int i = 0; i < count; i++)
      taken = taken || (callers[i].fd >= 0 && callers[i].rank == rank);
  }
  if (rank <= 0 || rank >= view->ranks || taken) {
    answer_send(c->fd, taken ? SDG_E_RANK_TAKEN : SDG_E_RENDEZVOUS,
                "not a rank that rank 0 waits for", -1);
    caller_drop(c);
    return SDG_OK;
  }
  c->rank = rank;
  answer_send(c->fd, SDG_OK, "", view->fd);
  return SDG_OK;
}

static sdg_status_t caller_hear(const sdg_segment_view_t *view,
                                caller_t *callers, int count, caller_t *c) {
  char more[64];
  int known = c->rank >= 0;
  ssize_t n = known ? recv(c->fd, more, sizeof more, MSG_DONTWAIT)
                    : recv(c->fd, (char *)&c->hello + c->got,
                           sizeof c->hello - c->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return SDG_OK;
  if (n <= 0) {
    // A rank closes once it has entered; before that, it is dead.
    int rank = c->rank;
    caller_drop(c);
    if (known && sdg_segment_state(view, rank) == SDG_SEGMENT_ABSENT)
      return sdg_segment_fail(view, 0, SDG_E_PEER_LOST,
                              "rank %d ended while it joined", rank);
    return SDG_OK;
  }
  if (known)
    return SDG_OK;
  c->got += (size_t)n;
  return c->got == sizeof c->hello ? caller_judge(view, callers, count, c)
                                   : SDG_OK;
}

static void callers_accept(int listener, caller_t *callers, int count,
                           double now_s) {
  int fd;
  while ((fd = sdg_fd_raise(accept4(listener, NULL, NULL,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK))) >= 0) {
    int i = 0;
    while (i < count && callers[i].fd >= 0)
      i++;
    if (i == count || !same_user(fd)) {
      close(fd); // one of ours comes again
      continue;
    }
    callers[i] = (caller_t){.fd = fd, .rank = -1, .since_s = now_s};
  }
}

static sdg_status_t callers_serve(int listener, const sdg_segment_view_t *view,
                                  const char *path, double timeout_s,
                                  sdg_stopwatch_t *watch) {
  int count = view->ranks + STRANGERS, all = 0;
  caller_t *callers = calloc((size_t)count, sizeof *callers);
  struct pollfd *polls = calloc((size_t)count + 1, sizeof *polls);
  sdg_status_t status = SDG_OK;
  if (!callers || !polls) {
    status =
        sdg_segment_fail(view, 0, SDG_E_NO_MEMORY, "%d connections", count);
    count = 0;
    goto done;
  }
  for (int i = 0; i < count; i++)
    callers[i].fd = -1;
  for (;;) {
    double now_s = sdg_stopwatch_read(watch);
    SDG_TRY_GOTO(sdg_rendezvous_complete(view, 0, now_s, timeout_s, path, &all),
                 done);
    if (all)
      break;
    for (int i = 0; i < count; i++)
      polls[i] = (struct pollfd){.fd = callers[i].fd, .events = POLLIN};
    polls[count] = (struct pollfd){.fd = listener, .events = POLLIN};
    if (poll(polls, (nfds_t)count + 1, 50) < 0 && errno != EINTR)
      pause_ms(10); // out of kernel memory: try again until the timeout
    for (int i = 0; i < count; i++) {
      if (callers[i].fd >= 0 && polls[i].revents)
        SDG_TRY_GOTO(caller_hear(view, callers, count, &callers[i]), done);
      if (callers[i].fd >= 0 && callers[i].rank < 0 &&
          now_s - callers[i].since_s > STRANGER_SECONDS)
        caller_drop(&callers[i]);
    }
    if (polls[count].revents)
      callers_accept(listener, callers, count, now_s);
  }
done:
  for (int i = 0; i < count; i++)
    if (callers[i].fd >= 0)
      close(callers[i].fd);
  free(callers);
  free(polls);
  return status;
}

sdg_status_t sdg_rendezvous_serve(const char *path,
                                  const sdg_segment_view_t *view,
                                  double timeout_s, sdg_stopwatch_t *watch) {
  int listener = -1;
  SDG_TRY(listener_open(path, &listener));
  sdg_status_t status = callers_serve(listener, view, path, timeout_s, watch);
  unlink(path);
  close(listener);
  return status;
}

// ---- the others -----------------------------------------------------------

// One attempt's end: 0 come again, 1 answered (with *out_fd or -1).
static int answer_receive(int fd, sdg_stopwatch_t *watch, double timeout_s,
                          answer_t *out_answer, int *out_fd) {
  size_t got = 0;
  *out_fd = -1;
  while (got < sizeof *out_answer) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (sdg_stopwatch_read(watch) >= timeout_s)
      return 0;
    if (poll(&wait, 1, 50) <= 0)
      continue;
    union {
      struct cmsghdr head;
      char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec bytes = {.iov_base = (char *)out_answer + got,
                          .iov_len = sizeof *out_answer - got};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n <= 0)
      return 0;
    got += (size_t)n;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET &&
        head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int))) {
      if (*out_fd >= 0)
        close(*out_fd);
      memcpy(out_fd, CMSG_DATA(head), sizeof(int));
      *out_fd = sdg_fd_raise(*out_fd);
    }
  }
  return 1;
}

// One attempt; *out_retry is set when the next may succeed.
static sdg_status_t connect_once(const char *path, const hello_t *hello,
                                 sdg_stopwatch_t *watch, double timeout_s,
                                 sdg_segment_view_t *out_view, int *out_retry) {
  struct sockaddr_un address;
  int folder, segment_fd = -1, fd = -1;
  answer_t answer;
  sdg_status_t status;
  *out_retry = 0;
  SDG_TRY(address_of(path, &address, &folder));
  fd = socket_make();
  if (fd < 0) {
    status = sdg_fail(SDG_E_RENDEZVOUS, "socket: %s", strerror(errno));
    goto done;
  }
  status = SDG_OK;
  if (connect(fd, (const void *)&address, sizeof address) != 0) {
    *out_retry = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN ||
                 errno == EINTR;
    if (!*out_retry)
      status = sdg_fail(SDG_E_RENDEZVOUS, "cannot connect to %s: %s", path,
                        strerror(errno));
    goto done;
  }
  if (!same_user(fd)) {
    status = sdg_fail(SDG_E_RENDEZVOUS, "%s is another user's", path);
    goto done;
  }
  if (send(fd, hello, sizeof *hello, MSG_NOSIGNAL) != sizeof *hello ||
      !answer_receive(fd, watch, timeout_s, &answer, &segment_fd)) {
    *out_retry = 1; // that rank 0 ended, or its table was full
    goto done;
  }
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.magic != MAGIC || answer.layout != hello->layout)
    status = sdg_fail(SDG_E_RENDEZVOUS,
                      "who listens at %s is not rank 0 of this sundog", path);
  else if (answer.status == SDG_E_RANK_TAKEN)
    status = SDG_E_RANK_TAKEN;
  else if (answer.status != SDG_OK || segment_fd < 0)
    status = sdg_fail(SDG_E_RENDEZVOUS, "%s", answer.text);
  else {
    status = sdg_segment_map(segment_fd, (int)hello->size, out_view);
    segment_fd = -1;
  }
  // The connection closes when the rank has entered: its end before that
  // tells rank 0 of our death.
  if (status == SDG_OK) {
    status = sdg_segment_enter(out_view, (int)hello->rank);
    if (status != SDG_OK)
      sdg_segment_fini(out_view);
  }
done:
  if (segment_fd >= 0)
    close(segment_fd);
  if (fd >= 0)
    close(fd);
  if (folder >= 0)
    close(folder);
  return status;
}

sdg_status_t sdg_rendezvous_connect(const char *path, int rank, int size,
                                    double timeout_s, sdg_stopwatch_t *watch,
                                    sdg_segment_view_t *out_view) {
  hello_t hello = {.magic = MAGIC,
                   .layout = sdg_segment_layout(),
                   .size = (uint32_t)size,
                   .rank = (uint32_t)rank};
  for (long wait_ms = 1;; wait_ms = wait_ms < 16 ? wait_ms * 2 : 20) {
    int retry;
    SDG_TRY(connect_once(path, &hello, watch, timeout_s, out_view, &retry));
    if (!retry)
      return SDG_OK;
    if (sdg_stopwatch_read(watch) >= timeout_s)
      return sdg_fail(SDG_E_JOIN_TIMEOUT,
                      "rank 0 of %d did not answer at %s within %g s", size,
                      path, timeout_s);
    pause_ms(wait_ms);
  }
}

sdg_status_t sdg_rendezvous_complete(const sdg_segment_view_t *view, int self,
                                     double waited_s, double timeout_s,
                                     const char *path, int *out_all) {
  char missing[256];
  size_t used = 0;
  int count = 0;
  missing[0] = '\0';
  for (int r = 0; r < view->ranks; r++) {
    if (sdg_segment_state(view, r) != SDG_SEGMENT_ABSENT)
      continue;
    count++;
    if (used < sizeof missing - 16)
      used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%d",
                               used ? ", " : "", r);
    else if (missing[used - 1] != '.')
      used += (size_t)snprintf(missing + used, sizeof missing - used, " ...");
  }
  SDG_TRY(sdg_segment_failure(view, self, 1));
  *out_all = count == 0;
  if (count == 0)
    return SDG_OK;
  sdg_status_t status = SDG_OK;
  for (int r = 0; r < view->ranks && status == SDG_OK; r++)
    if (r != self && sdg_segment_state(view, r) == SDG_SEGMENT_JOINED &&
        !sdg_segment_alive(view, r) &&
        sdg_segment_state(view, r) == SDG_SEGMENT_JOINED)
      status =
          sdg_segment_fail(view, self, SDG_E_PEER_LOST,
                           "rank %d ended while rank %d waits for rank%s %s to "
                           "join",
                           r, self, count > 1 ? "s" : "", missing);
  if (status == SDG_OK && waited_s >= timeout_s)
    status = sdg_segment_fail(view, self, SDG_E_JOIN_TIMEOUT,
                              "rank%s %s of %d did not come to %s within %g s",
                              count > 1 ? "s" : "", missing, view->ranks, path,
                              timeout_s);
  return status;
}
