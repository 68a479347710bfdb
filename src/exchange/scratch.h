/* SPDX-License-Identifier: Apache-2.0 */
/* Device buffers of each calling thread; the thread's plans reuse them from
 * call to call. */
#ifndef SDG_SRC_EXCHANGE_SCRATCH_H
#define SDG_SRC_EXCHANGE_SCRATCH_H

#include <stddef.h>

#include "src/base/status.h"

typedef enum sdg_scratch_kind {
  SDG_SCRATCH_CALL, /* for one call */
  SDG_SCRATCH_KEPT, /* for prefetched messages */
  SDG_SCRATCH_OWN,  /* for a call that no plan makes, while plans run */
  SDG_SCRATCH_COUNT,
} sdg_scratch_kind_t;

/* Gets the buffer, at least `bytes` long; NULL for 0 bytes. The buffer only
 * grows; growing waits for the device. The contents are undefined. Calls of
 * one thread on different streams must order themselves. */
sdg_status_t sdg_scratch_get(sdg_scratch_kind_t kind, size_t bytes,
                             void **out_data) SDG_MUST_CHECK;
/* Returns the bytes of all threads' buffers. */
size_t sdg_scratch_bytes(void);

/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_scratch_forget(void);

#endif
