/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps our descriptors off the low numbers a program expects for itself. */
#ifndef SDG_SRC_BASE_FD_H
#define SDG_SRC_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Moves `fd` to a number >= 64, close-on-exec, and returns it; -1 stays -1.
 * A program that runs with stderr closed would otherwise write its lines (and
 * we ours) into a descriptor of the control channel. Only low numbers are
 * worth a failure: with no high number left, fd >= 3 is kept. */
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

/* A descriptor and the file it is: a program that closes every descriptor may
 * reuse the number. */
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

/* Whether the number still is our file. */
static inline int sdg_fd_is(const sdg_fd_t *known) {
  struct stat file;
  return known->fd >= 0 && fstat(known->fd, &file) == 0 &&
         file.st_dev == known->device && file.st_ino == known->inode;
}

/* Closes it unless it is somebody else's by now. */
static inline void sdg_fd_close(sdg_fd_t *known) {
  if (sdg_fd_is(known))
    close(known->fd);
  known->fd = -1;
}

#endif
