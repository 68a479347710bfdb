/* SPDX-License-Identifier: Apache-2.0 */
/* Carries the rows of a mirror (src/bootstrap/shm.h) between machines: a thread
 * of each rank that has a TCP connection with every other rank.
 *
 * Rank 0 listens at the rendezvous; who comes there and proves that it knows
 * the job's secret learns where the other ranks are, and calls those below it.
 * Others are dropped: a fixed number of them is heard at a time, the oldest
 * gives way, and when all ranks have met nobody listens any more. */
#ifndef SDG_SRC_CONTROL_TCP_H
#define SDG_SRC_CONTROL_TCP_H

#include "src/base/status.h"
#include "src/bootstrap/secret.h"
#include "src/bootstrap/shm.h"

typedef struct sdg_tcp sdg_tcp_t;

/* Starts to meet the other ranks at `rendezvous` (tcp://host:port). `view`, a
 * mirror, has to outlive the carrier; its state tells who has come. Failures
 * are posted there. SDG_E_RENDEZVOUS for a place that cannot be used. */
sdg_status_t sdg_tcp_start(const char *rendezvous, const sdg_secret_t *secret,
                           int rank, int size, double timeout_s,
                           const sdg_shm_view_t *view,
                           sdg_tcp_t **out_carrier) SDG_MUST_CHECK;

/* Waits, `limit_s` at most, until every rank that is there has heard all that
 * this one has said, and this one all that they had said before that. Any
 * thread. */
void sdg_tcp_sync(sdg_tcp_t *carrier, double limit_s);

/* Ends the thread and closes the connections. What is to be heard has to be
 * said (sdg_tcp_sync) before. Idempotent, one thread at a time. */
void sdg_tcp_stop(sdg_tcp_t *carrier);
/* Stops, and frees; NULL is fine. */
void sdg_tcp_destroy(sdg_tcp_t *carrier);
/* In a child made by fork, which is no rank: closes its copies of the
 * connections, which would hide the parent's end. No wait, no allocation. */
void sdg_tcp_forget(sdg_tcp_t *carrier);

#endif
