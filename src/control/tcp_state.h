/* SPDX-License-Identifier: Apache-2.0 */
/* What carrier.c, carrierjoin.c and greet.c share: the connections of one
 * rank. */
#ifndef SDG_SRC_CONTROL_TCP_STATE_H
#define SDG_SRC_CONTROL_TCP_STATE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "src/control/link.h"
#include "src/control/tcp.h"

enum {
  SDG_TCP_GUESTS = 64,      /* connections that have proved nothing */
  SDG_TCP_GUEST_SECONDS = 5 /* how long one may take to */
};

typedef struct sdg_tcp_polls {
  struct pollfd fd[2 + SDG_TCP_GUESTS + SDG_SHM_RANKS];
  int whose[2 + SDG_TCP_GUESTS + SDG_SHM_RANKS];
  int count;
} sdg_tcp_polls_t;

struct sdg_tcp {
  const sdg_shm_view_t *view;
  int rank, size;
  double silent_s; /* without a sign of life, a machine is lost */
  char rendezvous[300];
  sdg_secret_t secret;
  sdg_meeting_point_t point;
  pthread_t thread;
  bool started, stopped, forgotten;
  atomic_bool stop;

  /* Of the thread, and of a child made by fork to close. A slot is emptied
   * before what was in it is freed. */
  bool joining;
  sdg_fd_t listener;
  uint16_t port;         /* where it listens */
  sdg_address_t address; /* and at which, port 0; of ranks other than 0 */
  unsigned calls;        /* of rank 0 so far: which of its addresses is next */
  bool mistrusted;       /* a wrong proof has been logged */
  bool placed;           /* the places of all ranks are known */
  sdg_link_t *guest[SDG_TCP_GUESTS];
  sdg_link_t *link[SDG_SHM_RANKS];
  double call_s[SDG_SHM_RANKS]; /* when to call it next */
  sdg_address_t place[SDG_SHM_RANKS];
  sdg_tcp_polls_t polls;

  _Atomic(uint32_t) sync_wanted;
  pthread_mutex_t lock;
  pthread_cond_t synced_changed;
  uint32_t synced; /* by lock: what all others have acknowledged */
};

/* A rank other than 0 listens at the interface that it has called rank 0 from,
 * whose end is `here`, unless it does already. False: it cannot. */
bool sdg_tcp_listen(sdg_tcp_t *carrier, const sdg_address_t *here);

/* Takes the connections that wait at the listener. */
void sdg_auth_accept(sdg_tcp_t *carrier, double now_s);
/* Begins to call `rank`, which listens at `address`. */
void sdg_auth_call(sdg_tcp_t *carrier, int rank, const sdg_address_t *address,
                   double now_s);
/* Goes on with a greeting as far as what was received reaches. False: the
 * connection is to be closed. May make of a guest the link of its rank. */
bool sdg_auth_go_on(sdg_tcp_t *carrier, sdg_link_t *link);
/* Our connect() has ended; as above. */
bool sdg_auth_connected(sdg_tcp_t *carrier, sdg_link_t *link);

/* `rank` is there, at the other end of carrier->link[rank]. */
void sdg_tcp_joined(sdg_tcp_t *carrier, int rank);
/* The connection with `rank` has ended; `why` is an errno, or 0. */
void sdg_tcp_end(sdg_tcp_t *carrier, int rank, int why);
/* Closes the connection of guest `i`. */
void sdg_tcp_drop(sdg_tcp_t *carrier, int i);
/* While the ranks meet: tells, calls, and drops who takes too long. The last
 * time carrier->joining becomes false. */
void sdg_tcp_join(sdg_tcp_t *carrier, double now_s);
/* Rank 0 says who has come, and where each rank is. False for what it would
 * not say. */
bool sdg_tcp_coming(sdg_tcp_t *carrier, const void *body, size_t bytes);
bool sdg_tcp_places(sdg_tcp_t *carrier, const void *body, size_t bytes);

#endif
