// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job connect: which ranks have joined, where each one
// listens, and which ones to call.
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/stopwatch.h"
#include "src/control/tcp_state.h"

enum { CONNECT_SECONDS = 5 }; // time limit of one attempt
static const double again_s = 0.02;

void sdg_tcp_joined(sdg_tcp_t *tcp, int rank) {
  sdg_shm_rank_t *row = &tcp->view->shared->rank[rank];
  atomic_store(&row->pid, 1);
  atomic_store(&row->state, (uint32_t)SDG_SHM_JOINED);
  atomic_fetch_add(&tcp->view->shared->joins, 1);
  sdg_shm_wake(&tcp->view->shared->joins);
}

// A connection that ends before its rank has joined is tried again, from
// either end.
void sdg_tcp_end(sdg_tcp_t *tcp, int rank, int why) {
  sdg_shm_rank_t *row = &tcp->view->shared->rank[rank];
  sdg_link_t *link = tcp->link[rank];
  bool open = link->stage == SDG_LINK_OPEN;
  tcp->link[rank] = NULL;
  sdg_link_destroy(link);
  if (!open) {
    tcp->call_s[rank] = (double)sdg_monotonic_ns() * 1e-9 + again_s;
    return;
  }
  bool silent = why == ETIMEDOUT || why == EHOSTUNREACH || why == ENETUNREACH ||
                why == ENETDOWN || why == EHOSTDOWN;
  atomic_store(&row->pid, silent ? SDG_SHM_UNREACHABLE : SDG_SHM_DEAD);
  sdg_shm_wake_all(tcp->view, rank);
}

void sdg_tcp_drop(sdg_tcp_t *tcp, int i) {
  sdg_link_t *guest = tcp->guest[i];
  tcp->guest[i] = NULL;
  sdg_link_destroy(guest);
}

// Rank 0 tells which ranks have joined, so that a waiting rank can name the
// missing ones.
static void coming_send(sdg_tcp_t *tcp, sdg_link_t *link) {
  uint64_t mask[SDG_SHM_MASK_WORDS] = {0};
  for (int r = 0; r < tcp->size; r++)
    if (r == 0 || sdg_shm_state(tcp->view, r) != SDG_SHM_ABSENT)
      mask[r / 64] |= UINT64_C(1) << r % 64;
  if (memcmp(mask, link->sent.coming, sizeof mask) == 0)
    return;
  void *room = sdg_link_message(link, SDG_FRAME_COMING, sizeof mask);
  if (!room)
    return;
  memcpy(room, mask, sizeof mask);
  memcpy(link->sent.coming, mask, sizeof mask);
}

bool sdg_tcp_coming(sdg_tcp_t *tcp, const void *body, size_t bytes) {
  uint64_t mask[SDG_SHM_MASK_WORDS];
  if (bytes != sizeof mask)
    return false;
  memcpy(mask, body, sizeof mask);
  for (int r = 0; r < tcp->size; r++) {
    uint32_t absent = SDG_SHM_ABSENT;
    if (mask[r / 64] >> r % 64 & 1)
      atomic_compare_exchange_strong(&tcp->view->shared->rank[r].state, &absent,
                                     (uint32_t)SDG_SHM_COMING);
  }
  return true;
}

// Rank 0, when all ranks have joined: sends each rank's address as seen from
// the link's other end. A rank that connected through the loopback is on rank
// 0's machine.
static void places_send(sdg_tcp_t *tcp, sdg_link_t *link) {
  sdg_address_t place[SDG_SHM_RANKS], here;
  socklen_t here_bytes = sizeof here;
  size_t bytes = (size_t)tcp->size * sizeof *place;
  memset(place, 0, bytes);
  memset(&here, 0, sizeof here);
  for (int r = 1; r < tcp->size; r++)
    if (!tcp->link[r])
      return; // a rank joined and left again: that ends the join
  if (getsockname(link->fd.fd, &here.any, &here_bytes) != 0)
    return;
  for (int r = 1; r < tcp->size; r++) {
    place[r] = tcp->link[r]->place;
    if (!sdg_address_is_loopback(&place[r]))
      continue;
    uint16_t port = sdg_address_port(&place[r]);
    place[r] = here;
    sdg_address_set_port(&place[r], port);
  }
  void *room = sdg_link_message(link, SDG_FRAME_PLACES, bytes);
  if (!room)
    return;
  memcpy(room, place, bytes);
  link->sent.places = true;
}

bool sdg_tcp_places(sdg_tcp_t *tcp, const void *body, size_t bytes) {
  if (bytes != (size_t)tcp->size * sizeof *tcp->place)
    return false;
  memcpy(tcp->place, body, bytes);
  tcp->placed = true;
  return true;
}

// Calls the ranks with lower numbers than this one.
static void ranks_call(sdg_tcp_t *tcp, double now_s) {
  for (int r = 0; r < tcp->rank; r++) {
    const sdg_link_t *link = tcp->link[r];
    if (link && link->stage != SDG_LINK_OPEN &&
        now_s - link->since_s > CONNECT_SECONDS)
      sdg_tcp_end(tcp, r, ETIMEDOUT);
    sdg_shm_state_t state = sdg_shm_state(tcp->view, r);
    if (tcp->link[r] || now_s < tcp->call_s[r] || state == SDG_SHM_JOINED ||
        state == SDG_SHM_LEFT || (r > 0 && !tcp->placed))
      continue;
    tcp->call_s[r] = now_s + again_s;
    if (r > 0)
      sdg_auth_call(tcp, r, &tcp->place[r], now_s);
    else
      sdg_auth_call(
          tcp, 0,
          &tcp->point.address[tcp->calls++ % (unsigned)tcp->point.count],
          now_s);
  }
}

void sdg_tcp_join(sdg_tcp_t *tcp, double now_s) {
  int there = 0;
  for (int r = 0; r < tcp->size; r++) {
    sdg_shm_state_t state = sdg_shm_state(tcp->view, r);
    there += state == SDG_SHM_JOINED || state == SDG_SHM_LEFT;
  }
  for (int r = 1; tcp->rank == 0 && r < tcp->size; r++) {
    if (!tcp->link[r])
      continue;
    coming_send(tcp, tcp->link[r]);
    if (there == tcp->size && !tcp->link[r]->sent.places)
      places_send(tcp, tcp->link[r]);
  }
  ranks_call(tcp, now_s);
  for (int i = 0; i < SDG_TCP_GUESTS; i++)
    if (tcp->guest[i] && (there == tcp->size || now_s - tcp->guest[i]->since_s >
                                                    SDG_TCP_GUEST_SECONDS))
      sdg_tcp_drop(tcp, i);
  if (there < tcp->size)
    return;
  for (int r = 1; tcp->rank == 0 && r < tcp->size; r++)
    if (tcp->link[r] && !tcp->link[r]->sent.places)
      return; // the buffer has no room yet
  sdg_fd_close(&tcp->listener);
  tcp->joining = false;
}
