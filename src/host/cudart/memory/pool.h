/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: whose account a stream-ordered allocation is on. */
#ifndef SDG_SRC_HOST_CUDART_MEMORY_POOL_H
#define SDG_SRC_HOST_CUDART_MEMORY_POOL_H

#include "src/host/cudart/internal.h"

#pragma GCC visibility push(hidden)

/* An allocation from the pool; NULL: from the device's current one. */
cudaError_t host_pool_allocate(cudaMemPool_t pool, void **out_pointer,
                               size_t bytes);
/* Takes the allocation off its pool's account, if it is on one. */
void host_pool_forget(const void *pointer);
/* The program waited for the device: what pools keep beyond their threshold
 * is given back. */
void host_pool_settle(void);
void host_pool_close_all(void);

/* memory.c: device memory; NULL for no bytes. */
cudaError_t host_device_allocate(void **out_pointer, size_t bytes);

#pragma GCC visibility pop

#endif
