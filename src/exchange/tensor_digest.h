/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tensors out of device memory, in pieces of bounded size through host
 * memory, as numbers for comparison between ranks. Waits for the device: for
 * agreements and checks only. */
#ifndef SDG_SRC_EXCHANGE_TENSOR_DIGEST_H
#define SDG_SRC_EXCHANGE_TENSOR_DIGEST_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/layout.h"

/* Whether `stream` comes to an end of what it has been given within `limit_s`
 * seconds: a program may hold it until the call returns. */
sdg_status_t sdg_tensor_digest_ready(cudaStream_t stream, double limit_s,
                                     bool *out_ready) SDG_MUST_CHECK;

/* A number made of the tensor's elements in the order of its memory, the outer
 * dimension first: of what lies between its elements it does not depend.
 * *out_can is false where the memory cannot be read. Adds the elements' bytes
 * to *io_bytes. After all that `stream` has been given. */
sdg_status_t sdg_tensor_digest(const void *data, const sdg_layout_t *layout,
                               cudaStream_t stream, bool *out_can,
                               uint64_t *out_digest,
                               int64_t *io_bytes) SDG_MUST_CHECK;

/* The device is about to be reset (src/exchange/exchange.h). */
void sdg_tensor_digest_forget(void);

#endif
