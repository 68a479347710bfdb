/* SPDX-License-Identifier: Apache-2.0 */
/* What control.c and meeting.c share: a process's end of the control channel.
 */
#ifndef SDG_SRC_CONTROL_STATE_H
#define SDG_SRC_CONTROL_STATE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/bootstrap/rank_lock.h"
#include "src/bootstrap/shm.h"
#include "src/control/control.h"
#include "src/control/tcp.h"

typedef struct sdg_control_channel {
  atomic_flag busy; /* one thread at a time */
  /* Per lane, that is per group of ranks: */
  uint64_t group[SDG_SHM_LANES];     /* hash of the ranks; 0: free */
  uint32_t exchanges[SDG_SHM_LANES]; /* made so far, modulo 2^32 */
} sdg_control_channel_t;

struct sdg_control {
  int rank, size;
  double timeout_s;
  pid_t owner; /* a child made by fork is no rank */
  atomic_int left;
  char *path; /* of the lock; NULL for one rank, which meets nobody */
  int met;    /* rank 0 answered at `path` */
  sdg_rank_lock_t lock;
  sdg_shm_view_t view;
  sdg_tcp_t *carrier; /* of a view that is a mirror; else NULL */
  sdg_control_channel_t channel[SDG_CHANNELS];
};

#endif
