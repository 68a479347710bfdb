/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the replicas (src/bootstrap/shm.h) of ranks on several machines equal:
 * one thread per rank, with a TCP connection to every other rank.
 *
 * Rank 0 listens at the rendezvous. A rank that connects and proves that it
 * knows the job's secret receives the addresses of the other ranks, and
 * connects to the ranks with lower numbers. Rank 0 drops other connections. At
 * most SDG_TCP_GUESTS connections wait for their proof; a new one replaces the
 * oldest. When all ranks have joined, nobody listens any more. */
#ifndef SDG_SRC_CONTROL_TCP_H
#define SDG_SRC_CONTROL_TCP_H

#include "src/base/status.h"
#include "src/bootstrap/secret.h"
#include "src/bootstrap/shm.h"

typedef struct sdg_tcp sdg_tcp_t;

/* Starts connecting to the other ranks through `rendezvous` (tcp://host:port).
 * `view` is a replica and must outlive the sdg_tcp_t; its states show which
 * ranks have joined. Failures are posted there. SDG_E_RENDEZVOUS for a place
 * that cannot be used. */
sdg_status_t sdg_tcp_start(const char *rendezvous, const sdg_secret_t *secret,
                           int rank, int size, double timeout_s,
                           const sdg_shm_view_t *view,
                           sdg_tcp_t **out_tcp) SDG_MUST_CHECK;

/* Waits, at most `limit_s`, until every connected rank has received everything
 * that this rank has sent, and this rank has received everything that they had
 * sent before that. Any thread. */
void sdg_tcp_sync(sdg_tcp_t *tcp, double limit_s);

/* Stops the thread and closes the connections. Call sdg_tcp_sync first, or
 * unsent data is lost. Idempotent; one thread at a time. */
void sdg_tcp_stop(sdg_tcp_t *tcp);
/* Stops the thread and frees `tcp`; NULL is fine. */
void sdg_tcp_destroy(sdg_tcp_t *tcp);
/* Call in a child made by fork, which is not a rank: closes its copies of the
 * connections, which would hide the parent's end. Does not wait or allocate. */
void sdg_tcp_forget(sdg_tcp_t *tcp);

#endif
