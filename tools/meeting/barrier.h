/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks wait for each other over TCP, before their programs start: each
 * finds out by which of rank 0's addresses it can reach it, and none goes on
 * while another is still a client of PMIx, whose waits would lose count. */
#ifndef SDG_TOOLS_MEETING_BARRIER_H
#define SDG_TOOLS_MEETING_BARRIER_H

#include "src/base/status.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/secret.h"

/* A machine with containers may have many bridges. */
enum { BARRIER_ADDRESSES = 24 };

/* Addresses of a machine, in the order of preference. */
typedef struct barrier_place {
  sdg_address_t address[BARRIER_ADDRESSES];
  int count;
} barrier_place_t;

/* Lists the addresses of this machine's networks with this port, those first
 * whose wire is connected, IPv4 before IPv6; that of the loopback if it has no
 * network. */
void barrier_place_find(uint16_t port, barrier_place_t *out_place);

/* Rank 0: waits at `listener` until every other rank has come, then releases
 * all. *out_reached is the index of the address by which the other machines
 * reach it, the first's if they differ; *out_same is false if they differ.
 * SDG_E_JOIN_TIMEOUT names the ranks that did not come, to the others too. */
sdg_status_t barrier_serve(int listener, const sdg_secret_t *secret, int size,
                           double timeout_s, int *out_reached,
                           bool *out_same) SDG_MUST_CHECK;

/* Other ranks: goes to rank 0 and waits for the release. *out_reached is the
 * index of the address to use. */
sdg_status_t barrier_join(const barrier_place_t *place,
                          const sdg_secret_t *secret, int rank,
                          double timeout_s, int *out_reached) SDG_MUST_CHECK;

#endif
