/* SPDX-License-Identifier: Apache-2.0 */
/* Copies boxes of short runs of bytes, as halos of columns are, by a kernel of
 * cuDNN. Inside rules/ only. */
#ifndef SDG_RULES_STEP_NARROW_H
#define SDG_RULES_STEP_NARROW_H

#include "src/exchange/device.h"

/* Enqueues the copy as one cudnnTransformTensor of int8: numbers of 8 bits pass
 * through any arithmetic unchanged, whatever the bytes mean, where floats may
 * lose the bits of a NaN. A thread of the job, with handles of its own.
 * SDG_E_LIBRARY_MISSING, SDG_E_VENDOR_CALL. */
sdg_status_t sdg_narrow_copy(const sdg_narrow_t *copy,
                             cudaStream_t stream) SDG_MUST_CHECK;

/* Drops the handles; call before the device is reset. */
void sdg_narrow_forget(void);

#endif
