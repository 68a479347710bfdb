// SPDX-License-Identifier: Apache-2.0
// Lines from and to the launcher's PMI.
#include "tools/meeting/pmi.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "src/base/log.h"
#include "src/base/stopwatch.h"

enum {
  LINE_BYTES = 2048,
  NAME_BYTES = 256,
  ANSWER_S = 20, // for all answers but that to the wait
  END_S = 5,
  STREAMS_NS = 100000000,
  WARNING_S = 30,
};
#define KEY "sundog-meeting"

typedef struct pmi {
  int fd;
  char line[LINE_BYTES]; // the answer, without the newline
} pmi_t;

static sdg_status_t fault(const char *what) {
  return sdg_fail(SDG_E_PMIX,
                  "the launcher's PMI (PMI_FD) %s; only one `sundog exec` or "
                  "program with MPI can use it in a rank",
                  what);
}

// Returns 0, or why the launcher did not take the whole line.
static int line_give(int fd, const char *line, double limit_s) {
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  for (size_t left = strlen(line); left > 0;) {
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    if (sdg_stopwatch_read(&watch) >= limit_s)
      return ETIMEDOUT;
    if (poll(&polled, 1, 50) <= 0)
      continue;
    ssize_t n = send(fd, line, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return errno;
    line += n;
    left -= (size_t)n;
  }
  return 0;
}

static sdg_status_t line_send(const pmi_t *pmi, const char *line) {
  switch (line_give(pmi->fd, line, ANSWER_S)) {
  case 0:
    return SDG_OK;
  case ETIMEDOUT:
    return fault("takes nothing");
  default:
    return fault("is closed");
  }
}

// Reads byte by byte: what follows the line may be for the program. *out_late:
// the time limit has passed; the result is SDG_OK then.
static sdg_status_t line_read(pmi_t *pmi, double limit_s, double warn_s,
                              bool *out_late) {
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  *out_late = false;
  for (size_t used = 0;;) {
    struct pollfd polled = {.fd = pmi->fd, .events = POLLIN};
    double now_s = sdg_stopwatch_read(&watch);
    if (now_s >= limit_s) {
      *out_late = true;
      return SDG_OK;
    }
    if (warn_s > 0 && now_s >= warn_s) {
      warn_s = 0;
      sdg_log("waits for all ranks to start `sundog exec` (PMI), up to %g s",
              limit_s);
    }
    if (poll(&polled, 1, 50) <= 0)
      continue;
    ssize_t n = recv(pmi->fd, pmi->line + used, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n <= 0)
      return fault("has closed");
    if (pmi->line[used] == '\n') {
      pmi->line[used] = '\0';
      return SDG_OK;
    }
    if (++used == sizeof pmi->line)
      return fault("sends a line that is too long");
  }
}

// Copies the word after " NAME=" in the answer; false: it is not there, or does
// not fit.
static bool word_find(const pmi_t *pmi, const char *name, char *out,
                      size_t bytes) {
  const char *at = pmi->line;
  size_t length = strlen(name);
  while (*at) {
    size_t word = strcspn(at, " ");
    if (word > length && strncmp(at, name, length) == 0 && at[length] == '=') {
      word -= length + 1;
      if (word >= bytes)
        return false;
      memcpy(out, at + length + 1, word);
      out[word] = '\0';
      return true;
    }
    at += word;
    at += strspn(at, " ");
  }
  return false;
}

// Sends a request and reads its answer, which must be `answer`. Messages have
// the first words alone: values hold the job's secret.
static sdg_status_t ask(pmi_t *pmi, const char *request, const char *answer) {
  char word[NAME_BYTES], text[NAME_BYTES];
  bool late;
  SDG_TRY(line_send(pmi, request));
  SDG_TRY(line_read(pmi, ANSWER_S, 0, &late));
  const int shown = (int)strcspn(request, " \n");
  const char *value = strstr(pmi->line, "value=");
  snprintf(text, sizeof text, "does not answer %.*s", shown, request);
  if (late)
    return fault(text);
  snprintf(text, sizeof text, "answers \"%.*s\" to %.*s",
           value && value - pmi->line < 100 ? (int)(value - pmi->line) : 100,
           pmi->line, shown, request);
  if (!word_find(pmi, "cmd", word, sizeof word) || strcmp(word, answer) != 0 ||
      (word_find(pmi, "rc", word, sizeof word) && strcmp(word, "0") != 0))
    return fault(text);
  return SDG_OK;
}

// PMI takes no blanks.
static void blanks_swap(char *text, char from, char to) {
  for (; *text; text++)
    if (*text == from)
      *text = to;
}

// Copies the text, or as many of its words as fit; false: none does.
static bool text_fit(const char *text, char *out, size_t bytes) {
  size_t length = strlen(text);
  if (length >= bytes)
    for (length = bytes; length > 0 && text[--length] != ' ';)
      continue;
  memcpy(out, text, length);
  out[length] = '\0';
  return length > 0;
}

static sdg_status_t publish_text(pmi_t *pmi, const char *space,
                                 const char *publish) {
  char word[NAME_BYTES], value[LINE_BYTES / 2], request[LINE_BYTES];
  SDG_TRY(ask(pmi, "cmd=get_maxes\n", "maxes"));
  if (!word_find(pmi, "vallen_max", word, sizeof word))
    return fault("does not say how long a value may be");
  size_t most = strtoul(word, 0, 10);
  if (!text_fit(publish, value, most < sizeof value ? most : sizeof value))
    return sdg_fail(SDG_E_PMIX,
                    "the launcher's PMI allows values of %zu bytes, in which "
                    "no address fits",
                    most);
  blanks_swap(value, ' ', ',');
  snprintf(request, sizeof request, "cmd=put kvsname=%s key=" KEY " value=%s\n",
           space, value);
  return ask(pmi, request, "put_result");
}

static sdg_status_t all_wait(pmi_t *pmi, double timeout_s) {
  bool late;
  SDG_TRY(line_send(pmi, "cmd=barrier_in\n"));
  SDG_TRY(line_read(pmi, timeout_s,
                    timeout_s / 2 < WARNING_S ? timeout_s / 2 : WARNING_S,
                    &late));
  if (late)
    return sdg_fail(SDG_E_JOIN_TIMEOUT,
                    "not all ranks started `sundog exec` within %g s (PMI, "
                    "which does not say which ranks)",
                    timeout_s);
  char word[NAME_BYTES];
  return word_find(pmi, "cmd", word, sizeof word) &&
                 strcmp(word, "barrier_out") == 0 &&
                 !(word_find(pmi, "rc", word, sizeof word) &&
                   strcmp(word, "0") != 0)
             ? SDG_OK
             : fault("cannot wait for all ranks");
}

sdg_status_t pmi_meet(int fd, const char *publish, double timeout_s, char *out,
                      size_t bytes) {
  pmi_t pmi = {.fd = fd};
  char space[NAME_BYTES], request[LINE_BYTES];
  SDG_TRY(ask(&pmi, "cmd=init pmi_version=1 pmi_subversion=1\n",
              "response_to_init"));
  SDG_TRY(ask(&pmi, "cmd=get_my_kvsname\n", "my_kvsname"));
  if (!word_find(&pmi, "kvsname", space, sizeof space))
    return fault("names no key-value space");
  if (publish)
    SDG_TRY(publish_text(&pmi, space, publish));
  SDG_TRY(all_wait(&pmi, timeout_s));
  snprintf(request, sizeof request, "cmd=get kvsname=%s key=" KEY "\n", space);
  SDG_TRY(ask(&pmi, request, "get_result"));
  if (!word_find(&pmi, "value", out, bytes))
    return fault("does not have what rank 0 published");
  blanks_swap(out, ',', ' ');
  return SDG_OK;
}

void pmi_end(int fd, int status) {
  char line[LINE_BYTES] = "cmd=finalize\n";
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  if (status != 0) {
    // hydra forgets what it has not yet read from this rank's streams.
    nanosleep(&(struct timespec){.tv_nsec = STREAMS_NS}, NULL);
    snprintf(line, sizeof line, "cmd=abort exitcode=%d\n", status);
  }
  if (line_give(fd, line, END_S) == 0 && poll(&polled, 1, END_S * 1000) > 0)
    (void)!recv(fd, line, sizeof line, MSG_DONTWAIT);
}
