/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the ranks of one unique id: they come to share a segment. */
#ifndef SDG_SRC_HOST_NCCL_NET_JOIN_H
#define SDG_SRC_HOST_NCCL_NET_JOIN_H

#include "src/host/nccl/net/shm.h"

/* Makes an id and starts a thread of this process that answers for it until all
 * ranks have joined or the process ends. */
ncclResult_t host_join_offer(ncclUniqueId *out_id);

/* Joins the other ranks of `id` and opens the common segment. When it returns
 * ncclSuccess, all ranks have done so. It waits without limit for ranks that
 * have not started yet. It returns ncclRemoteError if a rank died while joining
 * or the maker of the id has died; ncclInvalidUsage if two ranks have the same
 * number or are in the same process; ncclInvalidArgument if they disagree on
 * `ranks`; HOST_STOPPED once *stop is true. */
ncclResult_t host_join(host_endpoint_t *endpoint, const ncclUniqueId *id,
                       int rank, int ranks, const atomic_bool *stop);

#endif
