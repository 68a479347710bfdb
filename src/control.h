/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: ranks of a job find each other, tell each other small
 * things, and learn of each other's deaths and failures.
 *
 * It carries no tensor data. Within a node records go through shared memory
 * that no other user can open. */
#ifndef SDG_SRC_CONTROL_H
#define SDG_SRC_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "src/status.h"

enum {
  SDG_CONTROL_RECORD_BYTES = 4096, /* the largest record of one exchange */
  SDG_CONTROL_CHANNELS = 8,        /* calling threads with tagged calls */
};

typedef struct sdg_control sdg_control_t;

/* Joins the job as `rank` of `size`. `rendezvous` is "file:/path" (a socket
 * of mode 0600 is made there by rank 0). Blocks until all ranks have joined.
 * Errors: SDG_E_RANK_TAKEN when another process already joined as this rank,
 * SDG_E_JOIN_TIMEOUT naming the ranks that are missing, SDG_E_RENDEZVOUS for
 * a path that cannot be used. size 1 needs no rendezvous. */
sdg_status_t sdg_control_join(const char *rendezvous, int rank, int size,
                              double timeout_s,
                              sdg_control_t **out_control) SDG_MUST_CHECK;
/* Leaves: later waits of others on this rank report that it ended. */
void sdg_control_leave(sdg_control_t *control);
int sdg_control_rank(const sdg_control_t *control);
int sdg_control_size(const sdg_control_t *control);

/* Every rank of `ranks` (count of them, ascending, self included) gives
 * `bytes` <= SDG_CONTROL_RECORD_BYTES bytes; out_all[i] (each
 * SDG_CONTROL_RECORD_BYTES long) and out_bytes[i] receive those of ranks[i].
 * Collective over `ranks`, in the same order on each of them within a
 * channel. `what` ("call 12 cudnnConvolutionForward") names the call in
 * messages. Errors, within the timeout: SDG_E_PEER_LOST (a rank died or
 * left), SDG_E_PEER_TIMEOUT (stalls), SDG_E_DIVERGED (a peer's count of tagged
 * calls passed ours while we wait), and whatever a peer reported by
 * sdg_control_fail. After 30 s a line says who is waited for. */
sdg_status_t sdg_control_exchange(sdg_control_t *control, int channel,
                                  const int *ranks, int count, const void *mine,
                                  size_t bytes,
                                  char (*out_all)[SDG_CONTROL_RECORD_BYTES],
                                  size_t *out_bytes,
                                  const char *what) SDG_MUST_CHECK;

/* Publishes that this rank is at its n-th tagged call on `channel`: a store. */
void sdg_control_count(sdg_control_t *control, int channel, uint64_t calls,
                       const char *what);
/* The counts of a peer, and (out_what, may be NULL) the call it is at. */
uint64_t sdg_control_count_of(const sdg_control_t *control, int channel,
                              int rank, char *out_what, size_t what_bytes);

/* Tells every rank that this one failed and why; the first report of a job
 * wins. Waits of other ranks end with SDG_E_PEER_FAILED and this text. */
void sdg_control_fail(sdg_control_t *control, sdg_status_t status,
                      const char *text);

/* SDG_OK while all is well; SDG_E_PEER_LOST, SDG_E_PEER_FAILED otherwise. Not
 * a wait: for the watchdog, some microseconds. Reports (sdg_fail) only when
 * `report` is set. */
sdg_status_t sdg_control_check(sdg_control_t *control,
                               int report) SDG_MUST_CHECK;

#endif
