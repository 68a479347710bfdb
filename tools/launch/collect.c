// SPDX-License-Identifier: Apache-2.0
// Gathers equal messages of the ranks of a run.
#include "tools/launch/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/geometry/mesh.h"
#include "tools/launch/descendants.h"
#include "tools/launch/label.h"

enum {
  MESSAGE_BYTES =
      4096, // PIPE_BUF: the most bytes that one write sends without splitting
  ROOM_BYTES = 1 << 20, // size of the pipe; each message takes a page of it
  PENDING_MAX = 256,
  WAIT_MS = 3000,
};
static const char HEAD[] = "sundog: ";

typedef struct said {
  char *code, *text; // "SDG-401 " or "", and the text after the rank; owned
  bool by[SDG_RANKS_MAX];
  int ranks; // number of ranks that sent this message
  int64_t first_ns;
} said_t;

// Messages that wait for equal ones, in the order of their first arrival.
typedef struct pending {
  int size, count;
  said_t *said[PENDING_MAX];
} pending_t;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void collect_who(FILE *out, const bool *by, int size) {
  const char *before = "";
  int count = 0;
  for (int r = 0; r < size; r++)
    count += by[r];
  if (count == size && size > 1) {
    fprintf(out, "all %d ranks", size);
    return;
  }
  fputs(count == 1 ? "rank " : "ranks ", out);
  for (int r = 0; r < size; r++) {
    int last = r;
    if (!by[r])
      continue;
    while (last + 1 < size && by[last + 1])
      last++;
    fprintf(out, "%s%d", before, r);
    if (last > r)
      fprintf(out, "%s%d", last > r + 1 ? "-" : ", ", last);
    before = ", ";
    r = last;
  }
}

static void said_free(said_t *said) {
  if (!said)
    return;
  free(said->code);
  free(said->text);
  free(said);
}

static int rank_of(const said_t *said) {
  int r = 0;
  while (!said->by[r])
    r++;
  return r;
}

static void said_write(const said_t *said, int size) {
  char *line = NULL;
  size_t bytes;
  FILE *out = open_memstream(&line, &bytes);
  if (!out)
    return;
  if (said->ranks == 1) {
    fprintf(out, "%s%s[rank %d] %s", HEAD, said->code, rank_of(said),
            said->text);
  } else {
    fputs(HEAD, out);
    collect_who(out, said->by, size);
    fprintf(out, ": %s%s", said->code, said->text);
  }
  if (fclose(out) == 0)
    (void)label_write(STDERR_FILENO, line, bytes);
  free(line);
}

static void take_out(pending_t *pending, int i) {
  said_write(pending->said[i], pending->size);
  said_free(pending->said[i]);
  pending->count--;
  memmove(&pending->said[i], &pending->said[i + 1],
          (size_t)(pending->count - i) * sizeof pending->said[0]);
}

// Returns whether some rank of the i-th message has an earlier message that
// still waits.
static bool is_behind(const pending_t *pending, int i) {
  for (int before = 0; before < i; before++)
    for (int r = 0; r < pending->size; r++)
      if (pending->said[before]->by[r] && pending->said[i]->by[r])
        return true;
  return false;
}

// Writes the messages that are due; at the end, all messages.
static void due_write(pending_t *pending, bool end) {
  int64_t now = now_ns();
  for (int i = 0; i < pending->count;) {
    const said_t *said = pending->said[i];
    bool due = end || said->ranks == pending->size ||
               now - said->first_ns >= COLLECT_WINDOW_NS;
    if (due && !is_behind(pending, i))
      take_out(pending, i);
    else
      i++;
  }
}

// Returns the milliseconds until the next message is due; -1: no message waits.
static int due_in(const pending_t *pending) {
  if (pending->count == 0)
    return -1;
  // The oldest message is first.
  int64_t left = pending->said[0]->first_ns + COLLECT_WINDOW_NS - now_ns();
  return left > 0 ? (int)(left / 1000000) + 1 : 0;
}

// Parses "SDG-401 [rank 3] text", which follows the head. Returns NULL if the
// line names no rank, or memory runs out.
static said_t *said_parse(const char *line, int size) {
  int rank = -1, used = 0;
  const char *at = line;
  if (strncmp(at, "SDG-", 4) == 0)
    at += strcspn(at, " ") + (strchr(at, ' ') != NULL);
  if (sscanf(at, "[rank %d]%n", &rank, &used) != 1 || used == 0 ||
      at[used] != ' ' || rank < 0 || rank >= size)
    return NULL;
  said_t *said = calloc(1, sizeof *said);
  if (!said)
    return NULL;
  said->code = strndup(line, (size_t)(at - line));
  said->text = strdup(at + used + 1);
  said->by[rank] = true;
  said->ranks = 1;
  said->first_ns = now_ns();
  if (said->code && said->text)
    return said;
  said_free(said);
  return NULL;
}

// Finds an equal message that waits and is not older than other messages of
// this rank.
static said_t *equal_find(const pending_t *pending, const said_t *said) {
  int rank = rank_of(said);
  for (int i = pending->count; i-- > 0;) {
    said_t *other = pending->said[i];
    if (other->by[rank])
      return NULL;
    if (strcmp(other->code, said->code) == 0 &&
        strcmp(other->text, said->text) == 0)
      return other;
  }
  return NULL;
}

static void message_take(pending_t *pending, const char *message,
                         size_t bytes) {
  size_t head = strlen(HEAD);
  said_t *said = strncmp(message, HEAD, head) == 0
                     ? said_parse(message + head, pending->size)
                     : NULL;
  if (!said) {
    (void)label_write(STDERR_FILENO, message, bytes);
    return;
  }
  said_t *equal = equal_find(pending, said);
  if (equal) {
    equal->by[rank_of(said)] = true;
    equal->ranks++;
    said_free(said);
    return;
  }
  if (pending->count == PENDING_MAX)
    take_out(pending, 0);
  pending->said[pending->count++] = said;
}

static _Noreturn void collect_run(int messages, int size) {
  static char message[MESSAGE_BYTES + 1];
  static pending_t pending;
  pending.size = size;
  for (;;) {
    struct pollfd polled = {.fd = messages, .events = POLLIN};
    ssize_t n = -1;
    if (poll(&polled, 1, due_in(&pending)) > 0) {
      n = read(messages, message, MESSAGE_BYTES);
      if (n == 0)
        break;
    }
    if (n > 0) {
      message[n] = '\0';
      message_take(&pending, message, (size_t)n);
    }
    due_write(&pending, false);
  }
  due_write(&pending, true);
  _exit(EXIT_SUCCESS);
}

// The main function of the process. It has its own process group, so that no
// signal to the run ends it before it has written the last message.
static _Noreturn void collect_become(const int messages[2], const int done[2],
                                     int size) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  (void)setpgid(0, 0);
  close(messages[1]);
  close(done[0]);
  // Other processes must not wait for this process to close them.
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = STDIN_FILENO; null >= 0 && i <= STDOUT_FILENO; i++)
    dup2(null, i);
  collect_run(messages[0], size);
}

static void ends_close(const int end[2]) {
  for (int i = 0; i < 2; i++)
    if (end[i] >= 0)
      close(end[i]);
}

// Makes a pipe. Its descriptors do not get the numbers of closed standard
// streams.
static bool ends_make(int flags, int out_end[2]) {
  if (pipe2(out_end, flags | O_CLOEXEC) != 0)
    return false;
  for (int i = 0; i < 2; i++)
    out_end[i] = sdg_fd_raise(out_end[i]);
  return out_end[0] >= 0 && out_end[1] >= 0;
}

void collect_start(int size, collect_t *out) {
  int messages[2] = {-1, -1}, done[2] = {-1, -1};
  pid_t pid = -1;
  *out = (collect_t){.messages = -1, .done = -1};
  if (size < 2)
    return;
  // Each write is one packet, and no write blocks.
  if (ends_make(O_NONBLOCK | O_DIRECT, messages) && ends_make(0, done)) {
    (void)fcntl(messages[1], F_SETPIPE_SZ, ROOM_BYTES);
    fflush(NULL);
    pid = fork();
  }
  if (pid == 0)
    collect_become(messages, done, size);
  if (pid < 0) {
    ends_close(messages);
    ends_close(done);
    return;
  }
  close(messages[0]);
  close(done[1]);
  family_spare(pid); // it must outlive the ranks
  *out = (collect_t){.messages = messages[1], .done = done[0], .pid = pid};
}

void collect_leave(collect_t *collect) {
  if (collect->messages >= 0)
    close(collect->messages);
  collect->messages = -1;
}

void collect_wait(const collect_t *collect) {
  struct pollfd polled = {.fd = collect->done, .events = POLLIN};
  if (collect->done >= 0)
    (void)poll(&polled, 1, WAIT_MS);
}

void collect_reap(const collect_t *collect) {
  // Does not wait longer if nobody reads its output.
  struct pollfd polled = {.fd = collect->done, .events = POLLIN};
  if (collect->done >= 0 && poll(&polled, 1, 0) > 0)
    (void)waitpid(collect->pid, NULL, 0);
}
