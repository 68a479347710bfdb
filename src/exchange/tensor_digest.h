/* SPDX-License-Identifier: Apache-2.0 */
/* Computes digests of device tensors, which ranks compare. Copies the tensor
 * through host memory in pieces of bounded size. Waits for the device: for
 * agreements and checks only. */
#ifndef SDG_SRC_EXCHANGE_TENSOR_DIGEST_H
#define SDG_SRC_EXCHANGE_TENSOR_DIGEST_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/layout.h"

/* Sets *out_ready if `stream` completes its work within `limit_s` seconds. It
 * may not complete: a program can block the stream until the call returns. */
sdg_status_t sdg_tensor_digest_ready(cudaStream_t stream, double limit_s,
                                     bool *out_ready) SDG_MUST_CHECK;

/* Computes a digest of the tensor's elements in memory order, outermost
 * dimension first. Bytes between elements do not affect it. *out_can is false
 * if the memory cannot be read. Adds the elements' bytes to *io_bytes. Runs
 * after all work that `stream` has been given. */
sdg_status_t sdg_tensor_digest(const void *data, const sdg_layout_t *layout,
                               cudaStream_t stream, bool *out_can,
                               uint64_t *out_digest,
                               int64_t *io_bytes) SDG_MUST_CHECK;

/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_tensor_digest_forget(void);

#endif
