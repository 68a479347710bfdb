// SPDX-License-Identifier: Apache-2.0
// The rendezvous socket: its address, and the user at the other end.
#include "src/bootstrap/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fd.h"

sdg_status_t sdg_handshake_address(const char *path, struct sockaddr_un *out,
                                   int *out_folder) {
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  *out_folder = -1;
  if (strlen(path) < sizeof out->sun_path) {
    memcpy(out->sun_path, path, strlen(path) + 1);
    return SDG_OK;
  }
  const char *name = strrchr(path, '/') + 1;
  char *folder = strndup(path, (size_t)(name - path));
  if (!folder)
    return sdg_fail(SDG_E_NO_MEMORY, "path of the rendezvous");
  int fd = sdg_fd_raise(open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  int why = errno;
  free(folder);
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "folder of %s: %s", path, strerror(why));
  int n = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s",
                   fd, name);
  if (n < 0 || (size_t)n >= sizeof out->sun_path) {
    close(fd);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "the name %s is too long for a socket: at most 80 bytes",
                    name);
  }
  *out_folder = fd;
  return SDG_OK;
}

int sdg_handshake_socket(void) {
  return sdg_fd_raise(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int sdg_handshake_same_user(int fd) {
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         bytes == sizeof peer && peer.uid == geteuid();
}
