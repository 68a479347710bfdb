/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: which pool a stream-ordered allocation is counted for. */
#ifndef SDG_SRC_HOST_CUDART_MEMORY_POOL_H
#define SDG_SRC_HOST_CUDART_MEMORY_POOL_H

#include "src/host/cudart/internal.h"

#pragma GCC visibility push(hidden)

/* Allocates from the pool; NULL means the device's current pool. */
cudaError_t host_pool_allocate(cudaMemPool_t pool, void **out_pointer,
                               size_t bytes);
/* Removes the allocation from its pool's count, if a pool counts it. */
void host_pool_forget(const void *pointer);
/* The program has waited for the device: each pool gives back the reserve above
 * its threshold. */
void host_pool_settle(void);
void host_pool_close_all(void);

/* memory.c: allocates device memory. *out_pointer is NULL for 0 bytes. */
cudaError_t host_device_allocate(void **out_pointer, size_t bytes);

#pragma GCC visibility pop

#endif
