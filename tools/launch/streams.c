// SPDX-License-Identifier: Apache-2.0
// Copies standard input to every rank, and separates the output of ranks.
#include "tools/launch/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/launch/launch.h"
#include "tools/program/setting.h"

// Above the descriptors that programs open and close by number.
enum { MESSAGES_MIN = 200, CHUNK_BYTES = 1 << 14 };

static sdg_status_t pipes_make(streams_t *streams, int size) {
  streams->pipe = calloc((size_t)size, sizeof *streams->pipe);
  if (!streams->pipe)
    return sdg_fail(SDG_E_NO_MEMORY, "pipes to %d ranks", size);
  for (int r = 0; r < size; r++)
    if (pipe2(streams->pipe[r], O_CLOEXEC) != 0)
      return sdg_fail(SDG_E_START, "a pipe to rank %d: %s", r, strerror(errno));
  return SDG_OK;
}

sdg_status_t streams_open(streams_t *streams, int size) {
  struct stat file;
  if (streams->output && mkdir(streams->output, 0777) != 0 && errno != EEXIST)
    return sdg_fail(SDG_E_FOLDER, "%s: %s", streams->output, strerror(errno));
  if (!streams->whole || size == 1 || fstat(STDIN_FILENO, &file) != 0)
    return SDG_OK;
  streams->regular = S_ISREG(file.st_mode);
  if (!streams->regular)
    return pipes_make(streams, size);
  streams->at = lseek(STDIN_FILENO, 0, SEEK_CUR);
  return SDG_OK;
}

static bool file_put(int target, int flags, const char *path) {
  int file = open(path, flags | O_CLOEXEC, 0666);
  if (file < 0)
    return false;
  bool done = dup2(file, target) == target;
  close(file);
  return done;
}

static bool input_take(const streams_t *streams, int rank) {
  if (streams->pipe)
    return dup2(streams->pipe[rank][0], STDIN_FILENO) == STDIN_FILENO;
  if (rank == 0)
    return true;
  if (!streams->regular || !streams->whole)
    return file_put(STDIN_FILENO, O_RDONLY, "/dev/null");
  // Opens the file again, so that each rank has its own position.
  return file_put(STDIN_FILENO, O_RDONLY, "/proc/self/fd/0") &&
         lseek(STDIN_FILENO, streams->at, SEEK_SET) == streams->at;
}

// Keeps `file` open in the program. The environment variable `variable` has its
// number.
static void messages_give(int file, const char *variable) {
  char number[16];
  int kept = file < 0 ? -1 : fcntl(file, F_DUPFD, MESSAGES_MIN);
  if (kept < 0)
    return;
  snprintf(number, sizeof number, "%d", kept);
  (void)!setting_make(variable, number, SDG_ORIGIN_COMMAND);
}

static bool output_take(const streams_t *streams, int rank) {
  char path[2][PATH_MAX];
  messages_give(STDERR_FILENO, "SUNDOG_MESSAGES_ELSE");
  for (int i = 0; i < 2; i++)
    if (streams->output)
      snprintf(path[i], sizeof path[i], "%s/rank-%d.%s", streams->output, rank,
               i == 0 ? "out" : "err");
    else
      snprintf(path[i], sizeof path[i], "/dev/null");
  int flags = O_WRONLY | O_CREAT | O_TRUNC;
  return file_put(STDOUT_FILENO, flags, path[0]) &&
         file_put(STDERR_FILENO, flags, path[1]);
}

static bool folder_take(const streams_t *streams, int rank, int size) {
  char *words[] = {(char *)(uintptr_t)streams->folder, NULL};
  char **filled = launch_arguments(words, rank, size, rank);
  if (!filled) {
    errno = ENOMEM;
    return false;
  }
  if (mkdir(filled[0], 0777) != 0 && errno != EEXIST)
    return false;
  return chdir(filled[0]) == 0;
}

bool streams_take(const streams_t *streams, int rank, int size) {
  if (!input_take(streams, rank))
    return false;
  messages_give(streams->messages, "SUNDOG_MESSAGES");
  // Before the folder changes, because the path of the output may be relative.
  bool apart = rank > 0 && streams->output;
  if (streams->label && !apart && !label_take(streams->label, rank))
    return false;
  if ((apart || (rank > 0 && streams->whole && !streams->label)) &&
      !output_take(streams, rank))
    return false;
  return !streams->folder || folder_take(streams, rank, size);
}

// Writes a chunk to one rank. A rank that has ended or closed its input gets no
// more.
static bool chunk_write(int *file, const char *data, size_t bytes) {
  while (*file >= 0 && bytes > 0) {
    ssize_t n = write(*file, data, bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      close(*file);
      *file = -1;
      break;
    }
    data += n;
    bytes -= (size_t)n;
  }
  return *file >= 0;
}

static _Noreturn void feeder_run(const streams_t *streams, int size,
                                 pid_t parent, pid_t group) {
  char data[CHUNK_BYTES];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(EXIT_FAILURE);
  // With the command's signal mask, signals would not end it.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_IGN);
  (void)setpgid(0, group);
  for (int r = 0; r < size; r++)
    close(streams->pipe[r][0]);
  for (bool wanted = true; wanted;) {
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    wanted = false;
    for (int r = 0; r < size; r++)
      wanted |= chunk_write(&streams->pipe[r][1], data, (size_t)n);
  }
  _exit(EXIT_SUCCESS);
}

sdg_status_t streams_feed(streams_t *streams, int size, pid_t group) {
  if (!streams->pipe)
    return SDG_OK;
  pid_t self = getpid(), pid = fork();
  if (pid == 0)
    feeder_run(streams, size, self, group);
  for (int r = 0; r < size; r++) {
    close(streams->pipe[r][0]);
    close(streams->pipe[r][1]);
  }
  free(streams->pipe);
  streams->pipe = NULL;
  return pid > 0 ? SDG_OK
                 : sdg_fail(SDG_E_START, "copying standard input: %s",
                            strerror(errno));
}
