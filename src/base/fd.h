/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sundog's descriptors off the low numbers that a program expects for
 * itself. */
#ifndef SDG_SRC_BASE_FD_H
#define SDG_SRC_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
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

#endif
