// SPDX-License-Identifier: Apache-2.0
// Runs sundog-pmix and reads what it prints.
#include "tools/meeting/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/stopwatch.h"

enum {
  // How much longer than the ranks' time limit it may run: to ask who is
  // missing, and to end.
  EXTRA_S = 20,
  LIBRARY_S = 20, // to find the library
};

typedef struct helper {
  client_t *client;
  double limit_s;
  bool met, left, late, waiting;
  char fault[512];
} helper_t;

static void line_take(helper_t *helper, char *line) {
  client_t *client = helper->client;
  char *rest = line + strcspn(line, "\t");
  if (*rest)
    *rest++ = '\0';
  if (strcmp(line, "library") == 0) {
    size_t version = strcspn(rest, "\t");
    snprintf(client->version, sizeof client->version, "%.*s", (int)version,
             rest);
    snprintf(client->library, sizeof client->library, "%s",
             rest[version] ? rest + version + 1 : "");
  } else if (strcmp(line, "job") == 0) {
    if (sscanf(rest, "%d\t%d\t%d\t%d\t%d", &client->rank, &client->size,
               &client->local_rank, &client->local_size,
               &client->machines) != 5)
      client->size = -1;
  } else if (strcmp(line, "waiting") == 0 && !helper->waiting) {
    helper->waiting = true;
    sdg_log("waits for all ranks to start `sundog exec` (PMIx), up to %g s",
            helper->limit_s);
  } else if (strcmp(line, "met") == 0) {
    helper->met = true;
    snprintf(client->text, sizeof client->text, "%s", rest);
  } else if (strcmp(line, "left") == 0) {
    helper->left = true;
  } else if (strcmp(line, "failed") == 0 || strcmp(line, "late") == 0) {
    helper->late = *line == 'l';
    snprintf(helper->fault, sizeof helper->fault, "%s", rest);
  }
}

static _Noreturn void helper_become(const char *program, const char *verb,
                                    double limit_s, int in, int out) {
  char seconds[16];
  snprintf(seconds, sizeof seconds, "%d",
           limit_s < 1     ? 1
           : limit_s > 1e8 ? 100000000
                           : (int)limit_s);
  if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
    execl(program, program, verb, seconds, (char *)NULL);
  _exit(127);
}

// Reads lines until the end or the time limit; false: the time limit.
static bool lines_read(helper_t *helper, int fd, double limit_s) {
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  char line[CLIENT_TEXT_BYTES + PATH_MAX];
  size_t used = 0;
  for (;;) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    if (sdg_stopwatch_read(&watch) > limit_s)
      return false;
    if (poll(&polled, 1, 100) <= 0)
      continue;
    ssize_t n = read(fd, line + used, sizeof line - 1 - used);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return true;
    used += (size_t)n;
    line[used] = '\0';
    for (char *end; (end = strchr(line, '\n'));) {
      *end = '\0';
      line_take(helper, line);
      used -= (size_t)(end + 1 - line);
      memmove(line, end + 1, used + 1);
    }
    if (used == sizeof line - 1)
      used = 0;
  }
}

// Runs the program with `text` on its standard input. SDG_E_PMIX if it could
// not be run, or ended by a signal.
static sdg_status_t helper_run(helper_t *helper, const char *program,
                               const char *verb, const char *text,
                               double limit_s) {
  int in[2], out[2], status = 0;
  client_t *client = helper->client;
  *client = (client_t){.rank = -1,
                       .size = -1,
                       .local_rank = -1,
                       .local_size = -1,
                       .machines = -1};
  if (!*program)
    return sdg_fail(SDG_E_PMIX, "sundog-pmix is not beside libsundog.so");
  if (pipe2(in, O_CLOEXEC) != 0)
    return sdg_fail(SDG_E_PMIX, "pipe: %s", strerror(errno));
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    return sdg_fail(SDG_E_PMIX, "pipe: %s", strerror(errno));
  }
  // An empty pipe takes so few bytes at once.
  bool given = write(in[1], text, strlen(text)) == (ssize_t)strlen(text);
  close(in[1]);
  fflush(NULL);
  pid_t pid = given ? fork() : -1;
  if (pid == 0)
    helper_become(program, verb, helper->limit_s, in[0], out[1]);
  close(in[0]);
  close(out[1]);
  bool ended = pid > 0 && lines_read(helper, out[0], limit_s);
  close(out[0]);
  if (pid > 0 && !ended)
    kill(pid, SIGKILL);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  if (pid < 0)
    return sdg_fail(SDG_E_PMIX, "%s does not start: %s", program,
                    strerror(errno));
  if (!ended)
    return sdg_fail(SDG_E_PMIX, "the PMIx server did not answer within %g s",
                    limit_s);
  if (WIFSIGNALED(status))
    return sdg_fail(SDG_E_PMIX, "%s ended by signal %d in %s", program,
                    WTERMSIG(status), client->library);
  if (WEXITSTATUS(status) == 127)
    return sdg_fail(SDG_E_PMIX, "%s does not start", program);
  return SDG_OK;
}

sdg_status_t client_meet(const char *program, const char *text,
                         double timeout_s, client_t *out_client) {
  helper_t helper = {.client = out_client, .limit_s = timeout_s};
  SDG_TRY(helper_run(&helper, program, "meet", text, timeout_s + EXTRA_S));
  if (helper.late)
    return sdg_fail(SDG_E_JOIN_TIMEOUT, "%s", helper.fault);
  if (!helper.met || !helper.left)
    return sdg_fail(SDG_E_PMIX, "%s",
                    *helper.fault ? helper.fault : "sundog-pmix failed");
  if (out_client->rank < 0 || out_client->rank >= out_client->size)
    return sdg_fail(SDG_E_PMIX, "it says rank %d of %d", out_client->rank,
                    out_client->size);
  return SDG_OK;
}

bool client_library(const char *program, client_t *out_client) {
  helper_t helper = {.client = out_client, .limit_s = LIBRARY_S};
  if (helper_run(&helper, program, "library", "", LIBRARY_S) != SDG_OK)
    snprintf(helper.fault, sizeof helper.fault, "%s", sdg_last_error());
  snprintf(out_client->text, sizeof out_client->text, "%s", helper.fault);
  return !*helper.fault && *out_client->version;
}
