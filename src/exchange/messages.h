/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the exchanges and reductions of a plan to NCCL during an execution
 * (src/exchange/exec.h). For src/ only. */
#ifndef SDG_SRC_EXCHANGE_MESSAGES_H
#define SDG_SRC_EXCHANGE_MESSAGES_H

#include "src/exchange/exec.h"

/* An exchange of another execution; its messages are already packed. */
typedef struct sdg_parcels {
  const sdg_exec_t *exec;
  const sdg_step_t *step; /* NULL: nothing to send, or already carried out */
} sdg_parcels_t;

/* Enqueues an exchange (all messages as one group) or a reduction. A rank
 * without messages in an exchange still takes its turn in the launch order.
 * more: an exchange over the same axes to send in the same group, or NULL. */
sdg_status_t sdg_messages_enqueue(const sdg_exec_t *exec,
                                  const sdg_step_t *step,
                                  const sdg_parcels_t *more,
                                  cudaStream_t stream) SDG_MUST_CHECK;

/* Fills the memory that an exchange will receive with NaN, so that rows
 * without a message become visible. */
sdg_status_t sdg_messages_poison(const sdg_exec_t *exec, const sdg_step_t *step,
                                 cudaStream_t stream) SDG_MUST_CHECK;

/* Computes a digest of all bytes that the plan sends; they are already packed
 * on `stream`. Waits for the device. */
sdg_status_t sdg_messages_digest(const sdg_exec_t *exec, cudaStream_t stream,
                                 uint64_t *out) SDG_MUST_CHECK;

#endif
