/* SPDX-License-Identifier: Apache-2.0 */
/* What tcp.c, tcp_join.c and auth.c share: the connections of one rank. */
#ifndef SDG_SRC_CONTROL_TCP_STATE_H
#define SDG_SRC_CONTROL_TCP_STATE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "src/control/link.h"
#include "src/control/tcp.h"

enum {
  SDG_TCP_GUESTS = 64, /* most connections that have not proved themselves */
  SDG_TCP_GUEST_SECONDS = 5 /* time limit for the proof */
};

typedef struct sdg_tcp_polls {
  struct pollfd fd[2 + SDG_TCP_GUESTS + SDG_SHM_RANKS];
  int whose[2 + SDG_TCP_GUESTS + SDG_SHM_RANKS];
  int count;
} sdg_tcp_polls_t;

struct sdg_tcp {
  const sdg_shm_view_t *view;
  int rank, size;
  double silent_s; /* a machine silent for longer counts as unreachable */
  char rendezvous[300];
  sdg_secret_t secret;
  sdg_meeting_point_t point;
  pthread_t thread;
  bool started, stopped, forgotten;
  atomic_bool stop;

  /* Used only by the TCP thread; a child made by fork closes them. A slot is
   * emptied before its contents are freed. */
  bool joining;
  sdg_fd_t listener;
  uint16_t port;         /* the port of `listener` */
  sdg_address_t address; /* its address, with port 0; not on rank 0 */
  /* Attempts to reach rank 0; selects the next of its addresses. */
  unsigned calls;
  bool mistrusted; /* a wrong proof has already been logged */
  bool placed;     /* the addresses of all ranks are known */
  sdg_link_t *guest[SDG_TCP_GUESTS];
  sdg_link_t *link[SDG_SHM_RANKS];
  double call_s[SDG_SHM_RANKS]; /* time of the next attempt */
  sdg_address_t place[SDG_SHM_RANKS];
  sdg_tcp_polls_t polls;

  _Atomic(uint32_t) sync_wanted;
  pthread_mutex_t lock;
  pthread_cond_t synced_changed;
  /* Guarded by `lock`: the last SYNC that all others acknowledged. */
  uint32_t synced;
};

/* Ranks other than 0: listens at the local address `here`, from which this
 * rank called rank 0, unless it listens already. Returns false if it cannot. */
bool sdg_tcp_listen(sdg_tcp_t *tcp, const sdg_address_t *here);

/* Accepts the connections that wait at the listener. */
void sdg_auth_accept(sdg_tcp_t *tcp, double now_s);
/* Starts connecting to `rank`, which listens at `address`. */
void sdg_auth_call(sdg_tcp_t *tcp, int rank, const sdg_address_t *address,
                   double now_s);
/* Continues a greeting as far as the received data allows. Returns false if
 * the connection must be closed. May turn a guest into the link of its rank. */
bool sdg_auth_go_on(sdg_tcp_t *tcp, sdg_link_t *link);
/* Continues after our connect() has completed; same result. */
bool sdg_auth_connected(sdg_tcp_t *tcp, sdg_link_t *link);

/* Marks `rank` as joined; it is at the other end of tcp->link[rank]. */
void sdg_tcp_joined(sdg_tcp_t *tcp, int rank);
/* Handles the end of the connection with `rank`; `why` is an errno, or 0. */
void sdg_tcp_end(sdg_tcp_t *tcp, int rank, int why);
/* Closes the connection of guest `i`. */
void sdg_tcp_drop(sdg_tcp_t *tcp, int i);
/* Called repeatedly until all ranks have joined: tells, calls, and drops
 * connections that take too long. The last call sets tcp->joining to
 * false. */
void sdg_tcp_join(sdg_tcp_t *tcp, double now_s);
/* Handle rank 0's messages: the ranks that have joined, and the address of
 * each. Return false if rank 0 would not send this. */
bool sdg_tcp_coming(sdg_tcp_t *tcp, const void *body, size_t bytes);
bool sdg_tcp_places(sdg_tcp_t *tcp, const void *body, size_t bytes);

#endif
