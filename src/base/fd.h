/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sundog's file descriptors from disturbing the program: off the low
 * numbers that it expects for itself, and without signals of failing writes. */
#ifndef SDG_SRC_BASE_FD_H
#define SDG_SRC_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Moves `fd` to a number >= 64, close-on-exec, and returns it; -1 stays -1.
 * Otherwise a program that runs with stderr closed would write its lines (and
 * sundog its own) into a descriptor of the control channel. If no high number
 * is free, fd >= 3 is kept; fd < 3 is then a failure. */
static inline int sdg_fd_raise(int fd) {
  if (fd < 0)
    return -1;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, 64);
  if (high < 0 && fd > 2)
    return fd;
  int why = errno;
  close(fd);
  errno = why;
  return high;
}

/* Reads the start of a small file as text. `flags`: further ones for open(2).
 * Returns false if there is nothing to read. */
static inline bool sdg_fd_text(const char *path, int flags, char *out,
                               size_t bytes) {
  int fd = sdg_fd_raise(open(path, O_RDONLY | O_CLOEXEC | flags));
  ssize_t n = fd < 0 ? 0 : read(fd, out, bytes - 1);
  if (fd >= 0)
    close(fd);
  out[n > 0 ? n : 0] = '\0';
  return n > 0;
}

/* A descriptor, and the file that it refers to: a program that closes every
 * descriptor may reuse the number. */
typedef struct sdg_fd {
  int fd;
  dev_t device;
  ino_t inode;
} sdg_fd_t;

static inline sdg_fd_t sdg_fd_know(int fd) {
  struct stat file;
  if (fd < 0 || fstat(fd, &file) != 0)
    return (sdg_fd_t){.fd = fd};
  return (sdg_fd_t){fd, file.st_dev, file.st_ino};
}

/* Returns true if the number still refers to our file. */
static inline int sdg_fd_is(const sdg_fd_t *known) {
  struct stat file;
  return known->fd >= 0 && fstat(known->fd, &file) == 0 &&
         file.st_dev == known->device && file.st_ino == known->inode;
}

/* Closes it unless the number refers to another file by now. */
static inline void sdg_fd_close(sdg_fd_t *known) {
  if (sdg_fd_is(known))
    close(known->fd);
  known->fd = -1;
}

/* ---- signals of failing writes: SIGPIPE, SIGXFSZ ------------------------- */

typedef struct sdg_signal_guard {
  sigset_t before, pending;
} sdg_signal_guard_t;

static inline void sdg_signal_guard_set(sigset_t *out) {
  sigemptyset(out);
  sigaddset(out, SIGPIPE);
  sigaddset(out, SIGXFSZ);
}

/* From here on, failing writes of this thread return an error but raise no
 * signal. */
static inline sdg_signal_guard_t sdg_signal_guard_begin(void) {
  sdg_signal_guard_t guard;
  sigset_t held;
  sdg_signal_guard_set(&held);
  sigpending(&guard.pending);
  pthread_sigmask(SIG_BLOCK, &held, &guard.before);
  return guard;
}

/* Removes signals raised since begin, but not those that were already
 * pending. */
static inline void sdg_signal_guard_end(const sdg_signal_guard_t *guard) {
  sigset_t raised;
  sdg_signal_guard_set(&raised);
  if (sigismember(&guard->pending, SIGPIPE))
    sigdelset(&raised, SIGPIPE);
  if (sigismember(&guard->pending, SIGXFSZ))
    sigdelset(&raised, SIGXFSZ);
  const struct timespec now = {0, 0};
  while (sigtimedwait(&raised, NULL, &now) > 0)
    ;
  pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

#endif
