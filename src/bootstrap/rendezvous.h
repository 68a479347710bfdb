/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of one node find each other: rank 0 listens on a Unix socket
 * and hands every other rank the shared segment. */
#ifndef SDG_SRC_BOOTSTRAP_RENDEZVOUS_H
#define SDG_SRC_BOOTSTRAP_RENDEZVOUS_H

#include <stddef.h>

#include "src/base/status.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/secret.h"
#include "src/bootstrap/shm.h"

/* The path in "file:/path", borrowed. SDG_E_RENDEZVOUS for every other form.
 */
sdg_status_t sdg_rendezvous_path(const char *rendezvous,
                                 const char **out_path) SDG_MUST_CHECK;

/* A wait for other ranks to join. */
typedef struct sdg_rendezvous_wait {
  const char *place; /* for messages */
  double timeout_s;
  sdg_stopwatch_t watch;
  int warned;
} sdg_rendezvous_wait_t;

/* Rank 0, holding the lock of its rank: listens at `wait->place` (mode 0600),
 * gives the segment to each process of the same user that says a free rank of
 * this job, and returns when all have entered; the socket is removed. A socket
 * left by a dead job is replaced; SDG_E_RENDEZVOUS when a live process listens
 * there. Ranks of another launch are refused and not counted. Failures are
 * posted in the segment:
 * SDG_E_JOIN_TIMEOUT names the ranks missing, SDG_E_PEER_LOST the rank that
 * ended, SDG_E_RENDEZVOUS a rank that was started with another size. */
sdg_status_t sdg_rendezvous_serve(const sdg_shm_view_t *view,
                                  sdg_rendezvous_wait_t *wait) SDG_MUST_CHECK;

/* Another rank: gets the segment from rank 0 and enters it, retrying until
 * the timeout.
 * SDG_E_JOIN_TIMEOUT, SDG_E_RENDEZVOUS, SDG_E_RANK_TAKEN. */
sdg_status_t sdg_rendezvous_connect(int rank, int size,
                                    sdg_rendezvous_wait_t *wait,
                                    sdg_shm_view_t *out_view) SDG_MUST_CHECK;

/* Whether all ranks have entered. SDG_OK and *out_all 0: not yet. Fails, and
 * posts, when one that had entered is gone, one ended that had not, or the
 * watch is past the timeout; fails with what another rank posted. After 30 s or
 * half the timeout a line says who is waited for, once (wait->warned). */
sdg_status_t sdg_rendezvous_complete(const sdg_shm_view_t *view, int self,
                                     sdg_rendezvous_wait_t *wait,
                                     int *out_all) SDG_MUST_CHECK;

/* SDG_E_RENDEZVOUS where no rendezvous is given ("") although the launcher says
 * that the ranks are on several machines. */
sdg_status_t sdg_rendezvous_check(const char *rendezvous,
                                  int size) SDG_MUST_CHECK;

/* A folder of this user alone that stays: $XDG_RUNTIME_DIR/sundog or
 * /tmp/sundog-UID, made if need be. SDG_E_RENDEZVOUS if it is not ours. */
sdg_status_t sdg_private_folder(char *out, size_t bytes) SDG_MUST_CHECK;

/* Where the lock of a job that meets at tcp://... is: a path in the private
 * folder of each machine, of this rendezvous, secret and launch. */
sdg_status_t sdg_rendezvous_lock(const char *rendezvous,
                                 const sdg_secret_t *secret, char *out,
                                 size_t bytes) SDG_MUST_CHECK;

/* "file:/path" that the ranks of one launch have in common and no other job
 * has, in the private folder. */
sdg_status_t sdg_rendezvous_default(char *out, size_t bytes) SDG_MUST_CHECK;

#endif
