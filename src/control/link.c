// SPDX-License-Identifier: Apache-2.0
// Reads and writes the bytes of one connection.
#include "src/control/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

sdg_link_t *sdg_link_create(int fd, sdg_link_stage_t stage, int rank,
                            double now_s) {
  sdg_link_t *link = calloc(1, sizeof *link);
  if (!link) {
    close(fd);
    return NULL;
  }
  link->fd = sdg_fd_know(fd);
  link->stage = stage;
  link->rank = rank;
  link->since_s = now_s;
  return link;
}

void sdg_link_destroy(sdg_link_t *link) {
  if (!link)
    return;
  sdg_fd_close(&link->fd);
  free(link);
}

int sdg_link_receive(sdg_link_t *link) {
  if (!sdg_fd_is(&link->fd))
    return EBADF; // the program closed a descriptor that is not its own
  if (link->got == sizeof link->in)
    return 0;
  ssize_t n = recv(link->fd.fd, link->in + link->got,
                   sizeof link->in - link->got, MSG_DONTWAIT);
  if (n < 0)
    return errno == EINTR || errno == EAGAIN ? 0 : errno;
  if (n == 0)
    return ECONNRESET;
  link->got += (size_t)n;
  return 0;
}

int sdg_link_flush(sdg_link_t *link) {
  if (!sdg_link_pending(link))
    return 0;
  if (!sdg_fd_is(&link->fd))
    return EBADF;
  ssize_t n = send(link->fd.fd, link->out + link->out_from,
                   link->out_to - link->out_from, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0)
    return errno == EINTR || errno == EAGAIN ? 0 : errno;
  link->out_from += (size_t)n;
  if (link->out_from == link->out_to)
    link->out_from = link->out_to = 0;
  return 0;
}

bool sdg_link_pending(const sdg_link_t *link) {
  return link->out_from < link->out_to;
}

const void *sdg_link_peek(const sdg_link_t *link, size_t bytes) {
  return link->got >= bytes ? link->in : NULL;
}

void sdg_link_drop(sdg_link_t *link, size_t bytes) {
  link->got -= bytes;
  memmove(link->in, link->in + bytes, link->got);
}

void *sdg_link_room(sdg_link_t *link, size_t bytes) {
  if (sizeof link->out - link->out_to < bytes && link->out_from > 0) {
    memmove(link->out, link->out + link->out_from,
            link->out_to - link->out_from);
    link->out_to -= link->out_from;
    link->out_from = 0;
  }
  if (sizeof link->out - link->out_to < bytes)
    return NULL;
  void *room = link->out + link->out_to;
  link->out_to += bytes;
  return room;
}

void *sdg_link_message(sdg_link_t *link, sdg_frame_kind_t kind, size_t bytes) {
  const sdg_frame_head_t head = {(uint32_t)kind, (uint32_t)bytes};
  char *room = sdg_link_room(link, sizeof head + bytes);
  if (!room)
    return NULL;
  memcpy(room, &head, sizeof head);
  return room + sizeof head;
}
