/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps our descriptors off the low numbers a program expects for itself. */
#ifndef SDG_SRC_FD_H
#define SDG_SRC_FD_H

#include <errno.h>
#include <fcntl.h>
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

#endif
