/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous on one node: rank 0 listens on a Unix socket and sends every
 * other rank the shared segment. */
#ifndef SDG_SRC_BOOTSTRAP_RENDEZVOUS_H
#define SDG_SRC_BOOTSTRAP_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/secret.h"
#include "src/bootstrap/shm.h"

/* Returns true if the text begins with tcp://: the ranks may be on several
 * machines (src/bootstrap/address.h). */
bool sdg_rendezvous_is_tcp(const char *rendezvous);

/* Returns the path in "file:/path", borrowed. SDG_E_RENDEZVOUS for every other
 * form. */
sdg_status_t sdg_rendezvous_path(const char *rendezvous,
                                 const char **out_path) SDG_MUST_CHECK;

/* A wait for other ranks to join. */
typedef struct sdg_rendezvous_wait {
  const char *place; /* for messages */
  double timeout_s;
  sdg_stopwatch_t watch;
  int warned;
} sdg_rendezvous_wait_t;

/* Rank 0, which holds its rank's lock: listens at `wait->place` (mode 0600)
 * and sends the segment to each process of the same user that claims a free
 * rank of this job. Returns when all have joined; the socket is removed.
 * Replaces a socket left by a dead job; SDG_E_RENDEZVOUS if a live process
 * listens there. Ranks of another launch are refused and not counted. Failures
 * are posted in the segment: SDG_E_JOIN_TIMEOUT names the missing ranks,
 * SDG_E_PEER_LOST the rank that ended, SDG_E_RENDEZVOUS a rank that was
 * started with another size. */
sdg_status_t sdg_rendezvous_serve(const sdg_shm_view_t *view,
                                  sdg_rendezvous_wait_t *wait) SDG_MUST_CHECK;

/* Other ranks: gets the segment from rank 0 and joins, retrying until the
 * timeout. SDG_E_JOIN_TIMEOUT, SDG_E_RENDEZVOUS, SDG_E_RANK_TAKEN. */
sdg_status_t sdg_rendezvous_connect(int rank, int size,
                                    sdg_rendezvous_wait_t *wait,
                                    sdg_shm_view_t *out_view) SDG_MUST_CHECK;

/* Sets *out_all to 1 if all ranks have joined; SDG_OK and *out_all 0: not yet.
 * Fails, and posts the failure, if a rank that had joined has ended, if a rank
 * ended before it joined, or if the watch is past the timeout. Fails with the
 * failure that another rank posted. After 30 s or half the timeout, logs once
 * which ranks are missing (wait->warned). */
sdg_status_t sdg_rendezvous_complete(const sdg_shm_view_t *view, int self,
                                     sdg_rendezvous_wait_t *wait,
                                     int *out_all) SDG_MUST_CHECK;

/* SDG_E_RENDEZVOUS if no rendezvous is given ("") although the launcher says
 * that the ranks are on several machines. */
sdg_status_t sdg_rendezvous_check(const char *rendezvous,
                                  int size) SDG_MUST_CHECK;

/* Writes the path of the lock file of a job that meets at tcp://...: it is in
 * the private folder of each machine and unique to this rendezvous, secret and
 * launch. */
sdg_status_t sdg_rendezvous_lock(const char *rendezvous,
                                 const sdg_secret_t *secret, char *out,
                                 size_t bytes) SDG_MUST_CHECK;

/* Writes a "file:/path" in the private folder that all ranks of one launch
 * compute alike, and no other job. */
sdg_status_t sdg_rendezvous_default(char *out, size_t bytes) SDG_MUST_CHECK;

/* Removes from that folder what jobs left whose processes were all killed. The
 * calling process must hold no rank. */
void sdg_rendezvous_sweep(void);

#endif
