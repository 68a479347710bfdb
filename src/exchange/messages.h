/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a plan that concern other ranks, as NCCL gets them. Of an
 * execution that is under way (src/exchange/exec.h); inside src/ only. */
#ifndef SDG_SRC_EXCHANGE_MESSAGES_H
#define SDG_SRC_EXCHANGE_MESSAGES_H

#include "src/exchange/exec.h"

/* Another execution's exchange, for which all is packed. */
typedef struct sdg_parcels {
  const sdg_exec_t *exec;
  const sdg_step_t *step; /* NULL: there is none, or it has been carried out */
} sdg_parcels_t;

/* Enqueues an exchange, all messages as one group, or a reduction. A rank
 * without a message in an exchange waits for its turn like the others, and then
 * has nothing to do. more: an exchange over the same axes that goes along, or
 * NULL. */
sdg_status_t sdg_messages_enqueue(const sdg_exec_t *exec,
                                  const sdg_step_t *step,
                                  const sdg_parcels_t *more,
                                  cudaStream_t stream) SDG_MUST_CHECK;

/* Fills what an exchange is going to receive: rows that no message fills would
 * show. */
sdg_status_t sdg_messages_poison(const sdg_exec_t *exec, const sdg_step_t *step,
                                 cudaStream_t stream) SDG_MUST_CHECK;

/* A number made of all bytes that the plan sends, for which all is packed on
 * `stream`. Waits for the device. */
sdg_status_t sdg_messages_digest(const sdg_exec_t *exec, cudaStream_t stream,
                                 uint64_t *out) SDG_MUST_CHECK;

#endif
