/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a rank's program and the launcher's PMI, and passes on what
 * they say. So `sundog exec`, which has used the PMI before, knows whether it
 * or the program has to end that use. */
#ifndef SDG_TOOLS_MEETING_RELAY_H
#define SDG_TOOLS_MEETING_RELAY_H

#include <pthread.h>
#include <stdbool.h>

#include "src/base/status.h"

typedef struct relay {
  int server;  /* PMI_FD; -1: nothing to pass on, the calls below do nothing */
  int near;    /* this process's end of the program's connection */
  int far;     /* the program's end */
  int stop[2]; /* a pipe; closed to stop */
  bool used;   /* the program has used the PMI */
  bool running;
  pthread_t thread;
} relay_t;

/* Before the program's process is made. */
sdg_status_t relay_open(int server, relay_t *out_relay) SDG_MUST_CHECK;
/* In the program's process: puts its end in the place of PMI_FD. */
void relay_attach(const relay_t *relay);
/* In this process, once the program's exists: passes on from now. */
sdg_status_t relay_start(relay_t *relay) SDG_MUST_CHECK;
/* After the program's end: passes on what is left, and stops. Returns true if
 * the program has used the PMI, or nothing was passed on. */
bool relay_stop(relay_t *relay);

#endif
