// SPDX-License-Identifier: Apache-2.0
// The thread that sends this rank's row to the other ranks and receives
// theirs.
#include "src/control/tcp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/stopwatch.h"
#include "src/control/replica.h"
#include "src/control/tcp_state.h"

enum {
  TICK_MS = 50,         // longest delay of a published count
  JOINING_TICK_MS = 10, // longest delay until a rank that now listens is called
};

// ---- messages -------------------------------------------------------------

// Handles one message. Returns false if the other end breaks the protocol;
// sets *out_waits if the message is incomplete or cannot be handled now.
static bool message_receive(sdg_tcp_t *tcp, sdg_link_t *link, bool *out_waits) {
  sdg_frame_head_t head;
  const char *all = sdg_link_peek(link, sizeof head);
  *out_waits = true;
  if (!all)
    return true;
  memcpy(&head, all, sizeof head);
  if (head.bytes > SDG_FRAME_BYTES_MAX)
    return false;
  if (!sdg_link_peek(link, sizeof head + head.bytes))
    return true;
  const char *body = all + sizeof head;
  bool good;
  void *room;
  switch (head.kind) {
  case SDG_FRAME_COMING:
    good = link->rank == 0 && sdg_tcp_coming(tcp, body, head.bytes);
    break;
  case SDG_FRAME_PLACES:
    good = link->rank == 0 && sdg_tcp_places(tcp, body, head.bytes);
    break;
  case SDG_FRAME_SYNC:
    good = head.bytes == sizeof(uint32_t);
    if (!good)
      break;
    room = sdg_link_message(link, SDG_FRAME_ACK, head.bytes);
    if (!room)
      return true;
    memcpy(room, body, head.bytes);
    break;
  case SDG_FRAME_ACK:
    good = head.bytes == sizeof link->acknowledged;
    if (good)
      memcpy(&link->acknowledged, body, sizeof link->acknowledged);
    break;
  default:
    good = sdg_replica_receive(tcp->view, tcp->rank, link->rank, &head, body);
  }
  sdg_link_drop(link, sizeof head + head.bytes);
  *out_waits = false;
  return good;
}

// Handles all data received on an open link; false: close it.
static bool messages_receive(sdg_tcp_t *tcp, sdg_link_t *link) {
  bool waits = false;
  while (!waits)
    if (!message_receive(tcp, link, &waits))
      return false;
  return true;
}

// Sends the changes that an open link has not carried yet, as far as its buffer
// has room.
static void link_send(sdg_tcp_t *tcp, sdg_link_t *link) {
  uint32_t wanted = atomic_load(&tcp->sync_wanted);
  if (link->stage != SDG_LINK_OPEN ||
      !sdg_replica_send(tcp->view, tcp->rank, link) ||
      link->sent.sync == wanted)
    return;
  void *room = sdg_link_message(link, SDG_FRAME_SYNC, sizeof wanted);
  if (!room)
    return;
  memcpy(room, &wanted, sizeof wanted);
  link->sent.sync = wanted;
}

static void links_send(sdg_tcp_t *tcp) {
  uint32_t synced = atomic_load(&tcp->sync_wanted);
  for (int r = 0; r < tcp->size; r++) {
    if (!tcp->link[r])
      continue;
    link_send(tcp, tcp->link[r]);
    int why = sdg_link_flush(tcp->link[r]);
    if (why != 0)
      sdg_tcp_end(tcp, r, why);
    else if (tcp->link[r]->stage == SDG_LINK_OPEN &&
             tcp->link[r]->acknowledged < synced)
      synced = tcp->link[r]->acknowledged;
  }
  pthread_mutex_lock(&tcp->lock);
  if (tcp->synced != synced) {
    tcp->synced = synced;
    pthread_cond_broadcast(&tcp->synced_changed);
  }
  pthread_mutex_unlock(&tcp->lock);
}

// ---- the thread -----------------------------------------------------------

static void link_serve(sdg_tcp_t *tcp, int rank, short events) {
  sdg_link_t *link = tcp->link[rank];
  int why = 0;
  bool good = true;
  if (link->stage == SDG_LINK_CONNECTING) {
    good = sdg_auth_connected(tcp, link);
  } else if (events & (POLLIN | POLLHUP | POLLERR)) {
    why = sdg_link_receive(link);
    // Data that arrived before the end is still handled.
    good = sdg_auth_go_on(tcp, link);
    if (good && link->stage == SDG_LINK_OPEN)
      good = messages_receive(tcp, link);
  }
  if (why != 0 || !good)
    sdg_tcp_end(tcp, rank, why);
}

static void guest_serve(sdg_tcp_t *tcp, int i) {
  sdg_link_t *guest = tcp->guest[i];
  bool refused = guest->stage == SDG_LINK_REFUSED;
  bool good = sdg_link_receive(guest) == 0;
  if (refused)
    guest->got = 0; // its data is ignored from now on
  else if (good)
    good = sdg_auth_go_on(tcp, guest);
  if (tcp->guest[i] != guest) {
    (void)messages_receive(tcp, guest); // the guest has become a rank's link
    return;
  }
  if (good && sdg_link_flush(guest) == 0)
    return;
  sdg_tcp_drop(tcp, i);
}

static short events_of(const sdg_link_t *link) {
  if (link->stage == SDG_LINK_CONNECTING)
    return POLLOUT;
  return (short)((link->got < sizeof link->in ? POLLIN : 0) |
                 (sdg_link_pending(link) ? POLLOUT : 0));
}

enum { WHOSE_BELL = -1, WHOSE_LISTENER = -2, WHOSE_GUEST = 1 << 16 };

static void poll_add(sdg_tcp_polls_t *polls, const sdg_fd_t *fd, short events,
                     int whose) {
  if (!sdg_fd_is(fd))
    return;
  polls->fd[polls->count] = (struct pollfd){.fd = fd->fd, .events = events};
  polls->whose[polls->count++] = whose;
}

static void polls_fill(sdg_tcp_t *tcp) {
  sdg_tcp_polls_t *polls = &tcp->polls;
  polls->count = 0;
  poll_add(polls, &tcp->view->bell[0], POLLIN, WHOSE_BELL);
  if (tcp->joining)
    poll_add(polls, &tcp->listener, POLLIN, WHOSE_LISTENER);
  for (int i = 0; i < SDG_TCP_GUESTS; i++)
    if (tcp->guest[i])
      poll_add(polls, &tcp->guest[i]->fd, events_of(tcp->guest[i]),
               WHOSE_GUEST + i);
  for (int r = 0; r < tcp->size; r++)
    if (tcp->link[r])
      poll_add(polls, &tcp->link[r]->fd, events_of(tcp->link[r]), r);
}

static void polls_serve(sdg_tcp_t *tcp, double now_s) {
  const sdg_tcp_polls_t *polls = &tcp->polls;
  char rung[64];
  for (int i = 0; i < polls->count; i++) {
    int whose = polls->whose[i];
    if (!polls->fd[i].revents)
      continue;
    if (whose == WHOSE_BELL)
      while (read(polls->fd[i].fd, rung, sizeof rung) == sizeof rung)
        ;
    else if (whose == WHOSE_LISTENER)
      sdg_auth_accept(tcp, now_s);
    else if (whose >= WHOSE_GUEST && tcp->guest[whose - WHOSE_GUEST])
      guest_serve(tcp, whose - WHOSE_GUEST);
    else if (whose >= 0 && whose < WHOSE_GUEST && tcp->link[whose])
      link_serve(tcp, whose, polls->fd[i].revents);
  }
}

static void *tcp_main(void *argument) {
  sdg_tcp_t *tcp = argument;
  while (!atomic_load(&tcp->stop)) {
    double now_s = (double)sdg_monotonic_ns() * 1e-9;
    if (tcp->joining)
      sdg_tcp_join(tcp, now_s);
    links_send(tcp);
    polls_fill(tcp);
    // The kernel is out of memory, or the program closed our descriptors: try
    // again later.
    if (poll(tcp->polls.fd, (nfds_t)tcp->polls.count,
             tcp->joining ? JOINING_TICK_MS : TICK_MS) < 0)
      nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    else
      polls_serve(tcp, now_s);
    for (int r = 0; r < tcp->size; r++)
      if (tcp->link[r] && !sdg_fd_is(&tcp->link[r]->fd))
        sdg_tcp_end(tcp, r, EBADF);
  }
  return NULL;
}

// ---- its life -------------------------------------------------------------

// Rank 0 only; the other ranks listen after they have called rank 0.
static sdg_status_t listener_open(sdg_tcp_t *tcp) {
  const sdg_meeting_point_t *point = &tcp->point;
  int fd = -1;
  // A machine's own name may resolve to the loopback in its hosts file.
  if (point->numeric)
    fd = sdg_address_listen(&point->address[0]);
  else
    fd = sdg_address_listen_any(sdg_address_port(&point->address[0]),
                                &tcp->port);
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "rank 0 cannot listen at %s: %s",
                    tcp->rendezvous, strerror(errno));
  tcp->listener = sdg_fd_know(fd);
  return SDG_OK;
}

bool sdg_tcp_listen(sdg_tcp_t *tcp, const sdg_address_t *here) {
  sdg_address_t address = *here, bound;
  socklen_t bytes = sizeof bound;
  int fd;
  sdg_address_set_port(&address, 0);
  if (sdg_fd_is(&tcp->listener) &&
      memcmp(&tcp->address, &address, sizeof address) == 0)
    return true;
  // Ranks on rank 0's machine may reach it by name through the loopback. Ranks
  // on other machines must be able to call them, so they listen on every
  // address.
  if (sdg_address_is_loopback(&address) && !tcp->point.numeric) {
    fd = sdg_address_listen_any(0, &tcp->port);
  } else {
    fd = sdg_address_listen(&address);
    memset(&bound, 0, sizeof bound);
    if (fd >= 0 && getsockname(fd, &bound.any, &bytes) == 0)
      tcp->port = sdg_address_port(&bound);
  }
  if (fd < 0) {
    char text[256], at[64];
    snprintf(text, sizeof text, "rank %d cannot listen at %s: %s", tcp->rank,
             sdg_address_text(here, at, sizeof at), strerror(errno));
    sdg_shm_post(tcp->view, tcp->rank, SDG_E_RENDEZVOUS, text);
    return false;
  }
  sdg_fd_close(&tcp->listener);
  tcp->listener = sdg_fd_know(fd);
  tcp->address = address;
  return true;
}

static sdg_status_t thread_start(sdg_tcp_t *tcp) {
  sigset_t all, before;
  // Signals belong to the program: its handlers must not run on sundog's
  // thread.
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  tcp->started = pthread_create(&tcp->thread, NULL, tcp_main, tcp) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return tcp->started
             ? SDG_OK
             : sdg_fail(SDG_E_NO_MEMORY,
                        "cannot start the thread that carries messages");
}

sdg_status_t sdg_tcp_start(const char *rendezvous, const sdg_secret_t *secret,
                           int rank, int size, double timeout_s,
                           const sdg_shm_view_t *view, sdg_tcp_t **out_tcp) {
  sdg_tcp_t *tcp;
  SDG_TRY(SDG_ALLOCATE(tcp, 1, "connections"));
  tcp->view = view;
  tcp->rank = rank;
  tcp->size = size;
  // An unreachable machine is reported before a waiting rank times out.
  tcp->silent_s = timeout_s / 3 < 20 ? timeout_s / 3 : 20;
  if (tcp->silent_s < 1)
    tcp->silent_s = 1;
  tcp->secret = *secret;
  tcp->joining = true;
  tcp->listener.fd = -1;
  snprintf(tcp->rendezvous, sizeof tcp->rendezvous, "%s", rendezvous);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&tcp->synced_changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&tcp->lock, NULL);
  sdg_status_t status;
  SDG_TRY_GOTO(sdg_address_find(rendezvous, &tcp->point), failed);
  if (rank == 0)
    SDG_TRY_GOTO(listener_open(tcp), failed);
  SDG_TRY_GOTO(thread_start(tcp), failed);
  *out_tcp = tcp;
  return SDG_OK;
failed:
  sdg_tcp_destroy(tcp);
  return status;
}

void sdg_tcp_sync(sdg_tcp_t *tcp, double limit_s) {
  uint32_t wanted = atomic_fetch_add(&tcp->sync_wanted, 1) + 1;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += (time_t)limit_s;
  until.tv_nsec += (long)((limit_s - (double)(time_t)limit_s) * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  sdg_shm_ring(tcp->view);
  pthread_mutex_lock(&tcp->lock);
  while ((int32_t)(tcp->synced - wanted) < 0 && !tcp->stopped &&
         pthread_cond_timedwait(&tcp->synced_changed, &tcp->lock, &until) == 0)
    continue;
  pthread_mutex_unlock(&tcp->lock);
}

static void connections_close(sdg_tcp_t *tcp) {
  sdg_fd_close(&tcp->listener);
  for (int i = 0; i < SDG_TCP_GUESTS; i++)
    if (tcp->guest[i])
      sdg_fd_close(&tcp->guest[i]->fd);
  for (int r = 0; r < SDG_SHM_RANKS; r++)
    if (tcp->link[r])
      sdg_fd_close(&tcp->link[r]->fd);
}

void sdg_tcp_forget(sdg_tcp_t *tcp) {
  if (!tcp)
    return;
  tcp->forgotten = true;
  connections_close(tcp);
}

void sdg_tcp_stop(sdg_tcp_t *tcp) {
  if (!tcp->started || tcp->forgotten)
    return;
  tcp->started = false;
  atomic_store(&tcp->stop, true);
  sdg_shm_ring(tcp->view);
  pthread_join(tcp->thread, NULL);
  pthread_mutex_lock(&tcp->lock);
  tcp->stopped = true;
  pthread_cond_broadcast(&tcp->synced_changed);
  pthread_mutex_unlock(&tcp->lock);
  connections_close(tcp);
}

void sdg_tcp_destroy(sdg_tcp_t *tcp) {
  if (!tcp)
    return;
  sdg_tcp_stop(tcp);
  connections_close(tcp);
  for (int i = 0; i < SDG_TCP_GUESTS; i++)
    sdg_link_destroy(tcp->guest[i]);
  for (int r = 0; r < SDG_SHM_RANKS; r++)
    sdg_link_destroy(tcp->link[r]);
  if (!tcp->forgotten) { // in a child, a thread that does not exist there
                         // may hold them
    pthread_cond_destroy(&tcp->synced_changed);
    pthread_mutex_destroy(&tcp->lock);
  }
  free(tcp);
}
