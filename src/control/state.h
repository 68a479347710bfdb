/* SPDX-License-Identifier: Apache-2.0 */
/* What control.c and allgather.c share: a process's end of the control
 * channel. */
#ifndef SDG_SRC_CONTROL_STATE_H
#define SDG_SRC_CONTROL_STATE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/bootstrap/process.h"
#include "src/bootstrap/shm.h"
#include "src/control/control.h"
#include "src/control/tcp.h"

typedef struct sdg_control_channel {
  atomic_flag busy; /* one thread at a time */
  /* One entry per lane; each group of ranks has a lane: */
  uint64_t group[SDG_SHM_LANES];     /* hash of the ranks; 0: free */
  uint32_t exchanges[SDG_SHM_LANES]; /* number made so far, modulo 2^32 */
} sdg_control_channel_t;

struct sdg_control {
  int rank, size;
  double timeout_s;
  pid_t owner; /* a child made by fork is not a rank */
  atomic_int left;
  char *path; /* of the lock; NULL in a job of one rank */
  int met;    /* 1: rank 0 answered at `path` */
  sdg_rank_lock_t lock;
  sdg_shm_view_t view;
  sdg_tcp_t *tcp; /* if the view is a replica; else NULL */
  sdg_control_channel_t channel[SDG_CHANNELS];
};

#endif
