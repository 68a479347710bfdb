/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that copy boxes of slabs, or fill them with zeros. */
#ifndef SDG_SRC_EXCHANGE_COPIES_H
#define SDG_SRC_EXCHANGE_COPIES_H

#include "src/exchange/exec.h"

/* Enqueues the copy of `step` alone. */
sdg_status_t sdg_copies_one(const sdg_exec_t *exec, const sdg_step_t *step,
                            cudaStream_t stream) SDG_MUST_CHECK;
/* Enqueues a zero, or a copy with those of its group that one copy can do.
 * *out_done: how many steps these are. */
sdg_status_t sdg_copies_next(const sdg_exec_t *exec, const sdg_step_t *step,
                             cudaStream_t stream, int *out_done) SDG_MUST_CHECK;
/* Enqueues the zeros and copies from `first` to before `end`. */
sdg_status_t sdg_copies_run(const sdg_exec_t *exec, int first, int end,
                            cudaStream_t stream) SDG_MUST_CHECK;

#endif
