/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the ranks' replicas (src/bootstrap/shm.h) equal: sends changes of this
 * rank's row to the peers as messages, and writes the peers' messages into
 * their rows. Only the TCP thread may call these functions. */
#ifndef SDG_SRC_CONTROL_REPLICA_H
#define SDG_SRC_CONTROL_REPLICA_H

#include "src/bootstrap/shm.h"
#include "src/control/link.h"

/* Writes into the output buffer of `link`, which is open, the changes that have
 * not been sent to its other end. Returns false if the buffer cannot hold all;
 * a later call sends the rest. Messages keep the order of the stores to shared
 * memory: a rank's records before its count, and both before its failure and
 * its leaving. */
bool sdg_replica_send(const sdg_shm_view_t *view, int self, sdg_link_t *link);

/* Applies a message of rank `from`. Returns false if the message is
 * malformed. */
bool sdg_replica_receive(const sdg_shm_view_t *view, int self, int from,
                         const sdg_frame_head_t *head, const void *body);

#endif
