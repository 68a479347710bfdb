/* SPDX-License-Identifier: Apache-2.0 */
/* One device buffer that plans share, reused from call to call. */
#ifndef SDG_SRC_SCRATCH_H
#define SDG_SRC_SCRATCH_H

#include <stddef.h>

#include "src/status.h"

/* The buffer, at least `bytes` long; NULL for 0 bytes. It only grows; growing
 * waits for the device. The contents are undefined. Only the thread that makes
 * tagged calls may ask; calls on different streams must order themselves. */
sdg_status_t sdg_scratch_get(size_t bytes, void **out_data) SDG_MUST_CHECK;
size_t sdg_scratch_bytes(void);

#endif
