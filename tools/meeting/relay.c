// SPDX-License-Identifier: Apache-2.0
// A thread that copies bytes between the program and the launcher's PMI.
#include "tools/meeting/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"

enum { NEAR, SERVER, STOP, POLLS };
// How long the launcher may leave what the program said last.
enum { LAST_MS = 5000 };

// Bytes on their way in one direction.
typedef struct stream {
  int from, to;
  size_t used;
  bool ended; // nothing more comes
  char bytes[4096];
} stream_t;

static bool again(ssize_t n) {
  return n < 0 && (errno == EINTR || errno == EAGAIN);
}

static void stream_fill(stream_t *stream) {
  ssize_t n =
      recv(stream->from, stream->bytes, sizeof stream->bytes, MSG_DONTWAIT);
  if (n > 0)
    stream->used = (size_t)n;
  else if (!again(n))
    stream->ended = true;
}

// Returns false if nobody takes it.
static bool stream_empty(stream_t *stream) {
  ssize_t n = send(stream->to, stream->bytes, stream->used,
                   MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n <= 0)
    return again(n);
  stream->used -= (size_t)n;
  memmove(stream->bytes, stream->bytes + n, stream->used);
  return true;
}

// What is asked of one end: to read if `from` has room, to write what `to`
// holds. An end of which nothing is asked would only report that it is closed.
static struct pollfd poll_for(int fd, const stream_t *from,
                              const stream_t *to) {
  short events = (short)((from->used ? 0 : POLLIN) | (to->used ? POLLOUT : 0));
  return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static void *relay_run(void *data) {
  relay_t *relay = data;
  stream_t out = {.from = relay->near, .to = relay->server};
  stream_t in = {.from = relay->server, .to = relay->near};
  bool stopping = false;
  while (!out.ended && !in.ended) {
    struct pollfd polls[POLLS] = {
        [NEAR] = poll_for(relay->near, &out, &in),
        [SERVER] = poll_for(relay->server, &in, &out),
        [STOP] = {.fd = stopping ? -1 : relay->stop[0]}};
    int ready = poll(polls, POLLS, !stopping ? -1 : out.used ? LAST_MS : 0);
    if (ready < 0)
      continue;
    if (ready == 0)
      break;
    // Once the program has ended, what it sent last is here already.
    stopping = stopping || polls[STOP].revents;
    if (stopping && !polls[NEAR].revents && !out.used)
      break;
    if (!out.used && polls[NEAR].revents)
      stream_fill(&out);
    relay->used = relay->used || out.used;
    if (out.used && !stream_empty(&out))
      break;
    if (!in.used && polls[SERVER].revents)
      stream_fill(&in);
    // The program may end without reading; what it said before still counts.
    if (in.used && !stream_empty(&in))
      in.used = 0;
  }
  shutdown(relay->near, SHUT_RDWR); // the program sees that the server left
  return NULL;
}

sdg_status_t relay_open(int server, relay_t *out_relay) {
  int pair[2];
  *out_relay = (relay_t){.server = -1, .near = -1, .far = -1};
  if (server < 0)
    return SDG_OK;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
      pipe2(out_relay->stop, O_CLOEXEC) != 0)
    return sdg_fail(SDG_E_PMIX, "no connection for the program's PMI: %s",
                    strerror(errno));
  out_relay->near = sdg_fd_raise(pair[0]);
  out_relay->far = pair[1];
  out_relay->server = server;
  return SDG_OK;
}

void relay_attach(const relay_t *relay) {
  if (relay->server >= 0)
    dup2(relay->far, relay->server);
}

sdg_status_t relay_start(relay_t *relay) {
  if (relay->server < 0)
    return SDG_OK;
  close(relay->far);
  int error = pthread_create(&relay->thread, NULL, relay_run, relay);
  relay->running = error == 0;
  return error == 0
             ? SDG_OK
             : sdg_fail(SDG_E_PMIX, "no thread for the program's PMI: %s",
                        strerror(error));
}

bool relay_stop(relay_t *relay) {
  if (!relay->running)
    return true;
  close(relay->stop[1]);
  pthread_join(relay->thread, NULL);
  close(relay->near);
  close(relay->stop[0]);
  relay->running = false;
  return relay->used;
}
