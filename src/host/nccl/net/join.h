/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks named by one unique id come to share a segment. */
#ifndef SDG_SRC_HOST_NCCL_NET_JOIN_H
#define SDG_SRC_HOST_NCCL_NET_JOIN_H

#include "src/host/nccl/net/shm.h"

/* Makes an id and starts a thread of this process that answers to it until all
 * ranks have met, or until the process ends. */
ncclResult_t host_join_offer(ncclUniqueId *out_id);

/* Meets the other ranks of `id` and opens the common segment: when it returns
 * ncclSuccess all of them have. Waits without limit for ranks that have not
 * come yet, but not for one that came and died, nor for an id whose maker has
 * died: ncclRemoteError. ncclInvalidUsage: two ranks with the same number, or
 * in the same process; ncclInvalidArgument: they disagree on `ranks`.
 * HOST_STOPPED once *stop is true. */
ncclResult_t host_join(host_endpoint_t *endpoint, const ncclUniqueId *id,
                       int rank, int ranks, const atomic_bool *stop);

#endif
