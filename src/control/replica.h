/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the rows of the ranks' mirrors (src/bootstrap/shm.h) equal to each
 * other: what of the own row a peer has not been told becomes messages, and a
 * peer's messages become its row here. Of the carrier's thread alone. */
#ifndef SDG_SRC_CONTROL_REPLICA_H
#define SDG_SRC_CONTROL_REPLICA_H

#include "src/bootstrap/shm.h"
#include "src/control/link.h"

/* Puts into the buffer of `link`, which is open, what its end has not been
 * told. False if it does not hold all; the rest comes at a later call. What is
 * said keeps the order of shared memory: a rank's records before its count, and
 * all of it before its failure and its leaving. */
bool sdg_replica_tell(const sdg_shm_view_t *view, int self, sdg_link_t *link);

/* Takes a message of `from`. False for what is no such message. */
bool sdg_replica_hear(const sdg_shm_view_t *view, int self, int from,
                      const sdg_frame_head_t *head, const void *body);

#endif
