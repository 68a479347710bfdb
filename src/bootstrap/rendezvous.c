// SPDX-License-Identifier: Apache-2.0
// Gets rank 0's segment, and waits until all ranks have joined.
#include "src/bootstrap/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/handshake.h"
#include "src/bootstrap/process.h"

enum { WARNING_SECONDS = 30 };

bool sdg_rendezvous_is_tcp(const char *rendezvous) {
  return rendezvous && strncmp(rendezvous, "tcp://", strlen("tcp://")) == 0;
}

sdg_status_t sdg_rendezvous_path(const char *rendezvous,
                                 const char **out_path) {
  if (!rendezvous || !*rendezvous)
    return sdg_fail(SDG_E_RENDEZVOUS, "no rendezvous is given");
  if (strncmp(rendezvous, "file:/", 6) != 0 ||
      rendezvous[strlen(rendezvous) - 1] == '/')
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "%s is neither file:/path nor tcp://host:port", rendezvous);
  *out_path = rendezvous + strlen("file:");
  return SDG_OK;
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

// Logs once which ranks are missing, after 30 s or half the timeout.
static void warn(sdg_rendezvous_wait_t *wait, const char *missing, int size) {
  double limit_s = wait->timeout_s / 2 < WARNING_SECONDS ? wait->timeout_s / 2
                                                         : WARNING_SECONDS;
  double waited_s = sdg_stopwatch_read(&wait->watch);
  if (wait->warned || waited_s < limit_s)
    return;
  wait->warned = 1;
  sdg_log("has waited %.3g s at %s for %s of %d to join", waited_s, wait->place,
          missing, size);
}

// Reads what `sundog run` has recorded about the process of a rank; false if
// nothing.
static bool note_read(const char *name, int rank, char *out, size_t bytes) {
  const char *folder = sdg_options_get()->report;
  char path[4096];
  if (!*folder)
    return false;
  snprintf(path, sizeof path, "%s/%s-%d", folder, name, rank);
  return sdg_fd_text(path, O_NOFOLLOW, out, bytes);
}

// Writes "it ended with status 0" for a rank that `sundog run` saw end.
static bool rank_ended(int rank, char *out, size_t bytes) {
  return note_read("ended", rank, out, bytes);
}

// Returns " (stopped by a signal)" if `sundog run` started this rank and it is
// stopped.
static const char *stopped_word(int rank) {
  char pid[32];
  return note_read("started", rank, pid, sizeof pid) &&
                 sdg_process_is_stopped((int32_t)atoi(pid))
             ? " (stopped by a signal)"
             : "";
}

// Receives rank 0's answer to one attempt: 0 try again, 1 answered (with
// *out_fd or -1).
static int answer_receive(int fd, sdg_rendezvous_wait_t *wait,
                          const sdg_hello_t *hello, sdg_answer_t *out_answer,
                          int *out_fd) {
  size_t got = 0;
  *out_fd = -1;
  while (got < sizeof *out_answer) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    if (sdg_stopwatch_read(&wait->watch) >= wait->timeout_s)
      return 0;
    warn(wait, "rank 0", (int)hello->size);
    if (poll(&polled, 1, 50) <= 0)
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

// Makes one attempt; sets *out_retry if another one may succeed.
static sdg_status_t connect_once(const sdg_hello_t *hello,
                                 sdg_rendezvous_wait_t *wait,
                                 sdg_shm_view_t *out_view, int *out_retry) {
  const char *path = wait->place;
  struct sockaddr_un address;
  int folder, segment_fd = -1, fd = -1;
  sdg_answer_t answer;
  sdg_status_t status;
  *out_retry = 0;
  SDG_TRY(sdg_handshake_address(path, &address, &folder));
  fd = sdg_handshake_socket();
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
  if (!sdg_handshake_same_user(fd)) {
    status = sdg_fail(SDG_E_RENDEZVOUS, "%s belongs to another user", path);
    goto done;
  }
  if (send(fd, hello, sizeof *hello, MSG_NOSIGNAL) != sizeof *hello ||
      !answer_receive(fd, wait, hello, &answer, &segment_fd)) {
    *out_retry = 1; // rank 0 ended, or its table was full
    goto done;
  }
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.magic != SDG_HELLO_MAGIC || answer.layout != hello->layout)
    status = sdg_fail(SDG_E_RENDEZVOUS,
                      "the process that listens at %s is not rank 0 of this "
                      "version of sundog",
                      path);
  else if (answer.status == SDG_E_RANK_TAKEN)
    status = sdg_fail(SDG_E_RANK_TAKEN,
                      "rank 0 at %s has accepted another process as rank %u",
                      path, hello->rank);
  else if (answer.status != SDG_OK || segment_fd < 0)
    status = sdg_fail(SDG_E_RENDEZVOUS, "%s", answer.text);
  else {
    status = sdg_shm_map(segment_fd, (int)hello->size, out_view);
    segment_fd = -1;
  }
  // The connection closes after the rank has joined. If it closes before that,
  // rank 0 knows that this rank died.
  if (status == SDG_OK) {
    status = sdg_shm_enter(out_view, (int)hello->rank);
    if (status != SDG_OK)
      sdg_shm_fini(out_view);
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

// Lists "rank 0: it ended with status 1; rank 2: ...": one rank's end may be
// the cause of another's.
static void ended_list(int self, int size, char *out, size_t bytes) {
  char end[128];
  size_t used = 0;
  for (int r = 0; r < size && used < bytes; r++)
    if (r != self && rank_ended(r, end, sizeof end))
      used += (size_t)snprintf(out + used, bytes - used, "%srank %d: %s",
                               used ? "; " : "", r, end);
}

sdg_status_t sdg_rendezvous_connect(int rank, int size,
                                    sdg_rendezvous_wait_t *wait,
                                    sdg_shm_view_t *out_view) {
  sdg_hello_t hello = {.magic = SDG_HELLO_MAGIC,
                       .layout = sdg_shm_layout(),
                       .size = (uint32_t)size,
                       .rank = (uint32_t)rank};
  char end[128];
  sdg_launch_name(hello.launch, sizeof hello.launch);
  for (long wait_ms = 1;; wait_ms = wait_ms < 16 ? wait_ms * 2 : 20) {
    int retry;
    bool ended = rank_ended(0, end, sizeof end);
    SDG_TRY(connect_once(&hello, wait, out_view, &retry));
    if (!retry)
      return SDG_OK;
    if (ended) {
      char all[512];
      ended_list(rank, size, all, sizeof all);
      return sdg_fail(
          SDG_E_PEER_LOST,
          "rank 0 of %d ended before it joined, and rank %d waits for it: %s",
          size, rank, all);
    }
    if (sdg_stopwatch_read(&wait->watch) >= wait->timeout_s)
      return sdg_fail(SDG_E_JOIN_TIMEOUT,
                      "rank 0%s of %d did not answer at %s within %g s",
                      stopped_word(0), size, wait->place, wait->timeout_s);
    snprintf(end, sizeof end, "rank 0%s", stopped_word(0));
    warn(wait, end, size);
    pause_ms(wait_ms);
  }
}

// Lists the ranks that have not joined, "1, 3", and counts them.
static int missing_list(const sdg_shm_view_t *view, char *out, size_t bytes,
                        int *out_coming) {
  size_t used = 0;
  int count = 0;
  out[0] = '\0';
  *out_coming = 0;
  for (int r = 0; r < view->ranks; r++) {
    sdg_shm_state_t state = sdg_shm_state(view, r);
    *out_coming += state == SDG_SHM_COMING;
    if (state != SDG_SHM_ABSENT)
      continue;
    count++;
    if (used < bytes - 40)
      used += (size_t)snprintf(out + used, bytes - used, "%s%d%s",
                               used ? ", " : "", r, stopped_word(r));
    else if (out[used - 1] != '.')
      used += (size_t)snprintf(out + used, bytes - used, " ...");
  }
  return count;
}

// Checks for ranks that ended after they joined, or before.
static sdg_status_t ends_look(const sdg_shm_view_t *view, int self,
                              const char *missing, int count) {
  char end[128];
  for (int r = 0; r < view->ranks; r++) {
    sdg_shm_state_t state = sdg_shm_state(view, r);
    if (r == self)
      continue;
    // The order matters: a rank that ends normally has joined before.
    if (state == SDG_SHM_ABSENT && rank_ended(r, end, sizeof end) &&
        sdg_shm_state(view, r) == SDG_SHM_ABSENT)
      return sdg_shm_fail(
          view, self, SDG_E_PEER_LOST,
          "rank %d ended before it joined, and rank %d waits for rank%s %s: %s",
          r, self, count == 1 ? "" : "s", missing, end);
    if (state == SDG_SHM_JOINED && !sdg_shm_alive(view, r) &&
        sdg_shm_state(view, r) == SDG_SHM_JOINED)
      return sdg_shm_fail(view, self, SDG_E_PEER_LOST,
                          "rank %d ended while rank %d waits for rank%s %s "
                          "to join",
                          r, self, count == 1 ? "" : "s",
                          count ? missing : "on other machines");
  }
  return SDG_OK;
}

sdg_status_t sdg_rendezvous_complete(const sdg_shm_view_t *view, int self,
                                     sdg_rendezvous_wait_t *wait,
                                     int *out_all) {
  char missing[256], named[300];
  int coming, count = missing_list(view, missing, sizeof missing, &coming);
  SDG_TRY(sdg_shm_failure(view, self, 1));
  *out_all = count + coming == 0;
  if (*out_all)
    return SDG_OK;
  if (count > 0 && self > 0 && sdg_shm_state(view, 0) == SDG_SHM_ABSENT) {
    count = 1; // nothing is known about the other ranks
    snprintf(missing, sizeof missing, "0%s", stopped_word(0));
  }
  SDG_TRY(ends_look(view, self, missing, count));
  snprintf(named, sizeof named, "rank%s %s", count == 1 ? "" : "s",
           count ? missing : "on other machines");
  warn(wait, named, view->ranks);
  if (sdg_stopwatch_read(&wait->watch) < wait->timeout_s)
    return SDG_OK;
  if (count == 0)
    return sdg_shm_fail(
        view, self, SDG_E_JOIN_TIMEOUT,
        "rank %d could not connect to %d of the %d ranks within %g s: the "
        "network between their machines does not allow it",
        self, coming, view->ranks, wait->timeout_s);
  return sdg_shm_fail(view, self, SDG_E_JOIN_TIMEOUT,
                      "%s of %d did not arrive at %s within %g s", named,
                      view->ranks, wait->place, wait->timeout_s);
}
