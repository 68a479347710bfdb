/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out a plan on the program's stream and the communication stream. */
#ifndef SDG_SRC_EXCHANGE_EXEC_H
#define SDG_SRC_EXCHANGE_EXEC_H

#include <cuda_runtime_api.h>

#include "src/observe/report.h"
#include "src/plan/plan.h"
#include "src/plan/prefetch.h"

/* A plan being carried out: what an op's run() may ask. */
typedef struct sdg_exec {
  const sdg_plan_t *plan;
  const sdg_call_t *call;
  cudaStream_t stream; /* the program's */
  char *scratch, *kept;
  char *held[SDG_HELD_MAX];
  sdg_report_row_t *row;
} sdg_exec_t;

/* Device address of a slab during an execution. */
void *sdg_exec_address(const sdg_exec_t *exec, int slab);
/* Device address of the element at global coordinates box.dim[*].lo. */
void *sdg_exec_element(const sdg_exec_t *exec, int slab, const sdg_box_t *box);
/* Enqueues a step of kind COPY. */
sdg_status_t sdg_exec_copy(const sdg_exec_t *exec, const sdg_step_t *step,
                           cudaStream_t stream) SDG_MUST_CHECK;

/* For the calling thread (src/job/thread.h). Enqueues all steps; does not wait
 * for them. `row` (may be NULL) is where the time spent waiting for transfers
 * is counted. Work that follows on `stream` sees the outputs. A sub-call that
 * the vendor's library refuses is not an error of the executor: the exchange is
 * carried out all the same, as the other ranks count on it, but nothing after
 * that sub-call is computed or copied. */
typedef struct sdg_outcome {
  int vendor; /* the vendor's status of the refused sub-call; 0: none was */
  int calls;  /* sub-calls that were carried out */
  bool mixed; /* one was refused, but operands may have been changed */
} sdg_outcome_t;
sdg_status_t sdg_exec_run(const sdg_plan_t *plan, const sdg_call_t *call,
                          cudaStream_t stream, sdg_report_row_t *row,
                          sdg_outcome_t *out) SDG_MUST_CHECK;

/* As sdg_exec_run. The exchange of `early` (NULL: none), with what is packed
 * for it, is carried out too, in one group with the plan's first one over the
 * same axes, if there is one. */
sdg_status_t sdg_exec_run_with(const sdg_plan_t *plan, const sdg_call_t *call,
                               cudaStream_t stream, sdg_report_row_t *row,
                               const sdg_prefetch_t *prefetch,
                               sdg_outcome_t *out) SDG_MUST_CHECK;
/* As sdg_exec_run_with, the plan's kept scratch in memory `kept` of the
 * caller's. rest: its exchange has been carried out there, as that of a plan
 * with the same messages. */
sdg_status_t sdg_exec_run_kept(const sdg_plan_t *plan, const sdg_call_t *call,
                               cudaStream_t stream, sdg_report_row_t *row,
                               const sdg_prefetch_t *prefetch, void *kept,
                               bool rest, sdg_outcome_t *out) SDG_MUST_CHECK;
/* As sdg_exec_run, with the memory of the plan's `held`, which is the caller's:
 * as many bytes as each says. */
sdg_status_t sdg_exec_run_held(const sdg_plan_t *plan, const sdg_call_t *call,
                               cudaStream_t stream, sdg_report_row_t *row,
                               void *const *held,
                               sdg_outcome_t *out) SDG_MUST_CHECK;
/* As sdg_exec_run, of a plan whose exchange was the last one carried out early;
 * no plan with kept scratch has been carried out since. */
sdg_status_t sdg_exec_run_rest(const sdg_plan_t *plan, const sdg_call_t *call,
                               cudaStream_t stream, sdg_report_row_t *row,
                               sdg_outcome_t *out) SDG_MUST_CHECK;
/* A number made of the bytes that the plan's exchange sends if it is carried
 * out now. Waits for the device; for checked runs. */
sdg_status_t sdg_exec_digest(const sdg_prefetch_t *prefetch,
                             cudaStream_t stream, uint64_t *out) SDG_MUST_CHECK;

/* What `stream` gets next comes after everything that plans of the thread with
 * this channel have enqueued so far, on whatever stream. Whole view: what an
 * update brought for one stream's sake, others may read. */
sdg_status_t sdg_exec_follow(int channel, cudaStream_t stream) SDG_MUST_CHECK;

/* The device is about to be reset (src/exchange/exchange.h). */
void sdg_exec_forget(void);

#endif
