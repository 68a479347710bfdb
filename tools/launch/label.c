// SPDX-License-Identifier: Apache-2.0
// Puts the rank before each line that a rank writes.
#include "tools/launch/label.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "tools/launch/descendants.h"

enum { CHUNK_BYTES = 1 << 16, WAIT_MS = 10000 };

// The output of one rank to one stream.
typedef struct source {
  int from, to;
  char head[16]; // "3: "
  char *text;    // the head and the incomplete line; owned
  size_t bytes, room;
} source_t;

bool label_write(int to, const char *text, size_t bytes) {
  while (bytes > 0) {
    ssize_t n = write(to, text, bytes);
    if (n < 0 &&
        errno == EAGAIN) { // another program made the terminal non-blocking
      struct pollfd polled = {.fd = to, .events = POLLOUT};
      (void)poll(&polled, 1, -1);
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
    text += n > 0 ? n : 0;
    bytes -= n > 0 ? (size_t)n : 0;
  }
  return true;
}

static bool text_add(source_t *source, const char *text, size_t bytes) {
  if (source->bytes + bytes > source->room) {
    size_t room = 2 * (source->bytes + bytes);
    char *more = realloc(source->text, room);
    if (!more)
      return false;
    source->text = more;
    source->room = room;
  }
  memcpy(source->text + source->bytes, text, bytes);
  source->bytes += bytes;
  return true;
}

// Writes the complete line and begins the next one.
static bool line_write(source_t *source) {
  bool read = label_write(source->to, source->text, source->bytes);
  source->bytes = 0;
  return read;
}

// Appends text and writes complete lines. Returns false if nobody reads them,
// or memory runs out.
static bool text_take(source_t *source, const char *text, size_t bytes) {
  while (bytes > 0) {
    const char *end = memchr(text, '\n', bytes);
    size_t part = end ? (size_t)(end - text) + 1 : bytes;
    if ((source->bytes == 0 &&
         !text_add(source, source->head, strlen(source->head))) ||
        !text_add(source, text, part) || (end && !line_write(source)))
      return false;
    text += part;
    bytes -= part;
  }
  return true;
}

// Reads available output. Returns false at its end, or if nobody reads this
// command's output: then the pipe is closed, and the rank gets SIGPIPE as
// usual.
static bool source_read(source_t *source) {
  static char chunk[CHUNK_BYTES];
  ssize_t n = read(source->from, chunk, sizeof chunk);
  if (n < 0 && errno == EINTR)
    return true;
  if (n > 0 && text_take(source, chunk, (size_t)n))
    return true;
  if (n <= 0 && source->bytes > 0 && text_add(source, "\n", 1))
    (void)line_write(source);
  close(source->from);
  source->from = -1; // poll ignores -1
  return false;
}

static _Noreturn void sources_run(source_t *source, struct pollfd *polled,
                                  int count) {
  for (int open = count; open > 0;) {
    for (int i = 0; i < count; i++)
      polled[i] = (struct pollfd){.fd = source[i].from, .events = POLLIN};
    if (poll(polled, (nfds_t)count, -1) < 0)
      continue;
    for (int i = 0; i < count; i++)
      if (polled[i].revents && !source_read(&source[i]))
        open--;
  }
  _exit(EXIT_SUCCESS);
}

// The main function of the process. It has its own process group, so that no
// signal to the run ends it before it has written the last line.
static _Noreturn void label_become(const label_t *label, source_t *source,
                                   struct pollfd *polled, const int done[2]) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  (void)setpgid(0, 0);
  close(done[0]);
  for (int r = 0; r < label->size; r++)
    for (int i = 0; i < 2; i++)
      close(label->end[r][i]);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0)
    dup2(null, STDIN_FILENO);
  sources_run(source, polled, 2 * label->size);
}

// Makes a pipe. Its descriptors do not get the numbers of standard streams,
// even if these are closed.
static bool pipe_make(int out_end[2]) {
  if (pipe2(out_end, O_CLOEXEC) != 0)
    return false;
  for (int i = 0; i < 2; i++)
    out_end[i] = sdg_fd_raise(out_end[i]);
  return out_end[0] >= 0 && out_end[1] >= 0;
}

sdg_status_t label_start(int size, int messages, label_t *out) {
  label_t label = {.size = size, .done = -1};
  size_t count = 2 * (size_t)size;
  source_t *source = calloc(count, sizeof *source);
  struct pollfd *polled = calloc(count, sizeof *polled);
  label.end = calloc((size_t)size, sizeof *label.end);
  sdg_status_t status = SDG_OK;
  int done[2], end[2], width = snprintf(NULL, 0, "%d", size - 1);
  if (!source || !polled || !label.end)
    status = sdg_fail(SDG_E_NO_MEMORY, "labels of %d ranks", size);
  for (size_t i = 0; i < count && status == SDG_OK; i++) {
    if (!pipe_make(end)) {
      status = sdg_fail(SDG_E_START, "a pipe for --label: %s", strerror(errno));
      break;
    }
    source[i].from = end[0];
    source[i].to = i % 2 ? STDERR_FILENO : STDOUT_FILENO;
    snprintf(source[i].head, sizeof source[i].head, "%*d: ", width,
             (int)(i / 2));
    label.end[i / 2][i % 2] = end[1];
  }
  if (status == SDG_OK && !pipe_make(done))
    status = sdg_fail(SDG_E_START, "a pipe for --label: %s", strerror(errno));
  if (status == SDG_OK) {
    fflush(NULL);
    label.pid = fork();
    if (label.pid == 0 && messages >= 0)
      close(messages);
    if (label.pid == 0)
      label_become(&label, source, polled, done);
    if (label.pid < 0)
      status = sdg_fail(SDG_E_START, "fork: %s", strerror(errno));
    for (size_t i = 0; i < count; i++)
      close(source[i].from);
    close(done[1]);
    label.done = done[0];
  }
  free(source);
  free(polled);
  if (status != SDG_OK)
    return status;         // the command ends, which closes its pipes
  family_spare(label.pid); // it must outlive the ranks
  *out = label;
  return SDG_OK;
}

void label_leave(label_t *label) {
  for (int r = 0; label->end && r < label->size; r++)
    for (int i = 0; i < 2; i++)
      close(label->end[r][i]);
  free(label->end);
  label->end = NULL;
}

bool label_take(const label_t *label, int rank) {
  const int *end = label->end[rank];
  return dup2(end[0], STDOUT_FILENO) == STDOUT_FILENO &&
         dup2(end[1], STDERR_FILENO) == STDERR_FILENO;
}

void label_wait(const label_t *label) {
  struct pollfd polled = {.fd = label->done, .events = POLLIN};
  if (label->done >= 0)
    (void)poll(&polled, 1, WAIT_MS);
}
