/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out a plan on the program's stream and the communication stream. */
#ifndef SDG_SRC_EXCHANGE_EXEC_H
#define SDG_SRC_EXCHANGE_EXEC_H

#include <cuda_runtime_api.h>

#include "src/exchange/graph.h"
#include "src/observe/report.h"
#include "src/plan/plan.h"
#include "src/plan/prefetch.h"

/* One execution of a plan; an op's run() may read it. */
typedef struct sdg_exec {
  const sdg_plan_t *plan;
  const sdg_call_t *call;
  cudaStream_t stream; /* the program's stream */
  char *scratch, *kept;
  char *held[SDG_HELD_MAX];
  /* Phases are timed for this row (phases.h); NULL: they are not. */
  sdg_report_row_t *timed;
  sdg_graph_room_t *room; /* the stream is captured; NULL: it is not */
} sdg_exec_t;

/* Returns the device address of a slab during an execution. */
void *sdg_exec_address(const sdg_exec_t *exec, int slab);
/* Returns the device address of the element at global coordinates
 * box.dim[*].lo. */
void *sdg_exec_element(const sdg_exec_t *exec, int slab, const sdg_box_t *box);
/* The same, `shift` behind it in each dimension. */
void *sdg_exec_element_moved(const sdg_exec_t *exec, int slab,
                             const sdg_box_t *box, const int64_t *shift);

/* The result of an execution. sdg_exec_run is called by a thread of the job
 * (src/job/thread.h). It enqueues all steps and does not wait for them. Time
 * spent waiting for transfers is added to `row` (may be NULL). Later work on
 * `stream` sees the outputs. If the vendor's library refuses a sub-call, that
 * is no error of the executor: exchanges are still carried out, because the
 * other ranks wait for them, but nothing after the sub-call is computed or
 * copied. */
typedef struct sdg_outcome {
  int vendor; /* the vendor's status of the refused sub-call; 0: none refused */
  int calls;  /* number of sub-calls carried out */
  bool mixed; /* a sub-call was refused, but operands may have changed */
} sdg_outcome_t;
sdg_status_t sdg_exec_run(const sdg_plan_t *plan, const sdg_call_t *call,
                          cudaStream_t stream, sdg_report_row_t *row,
                          sdg_outcome_t *out) SDG_MUST_CHECK;

/* How an execution differs from the usual one; {0}: not at all. */
typedef struct sdg_exec_how {
  /* Its exchange is packed and carried out, too, in one group with the plan's
   * first exchange over the same axes, if the plan has one. */
  const sdg_prefetch_t *prefetch;
  void *kept;        /* the caller's memory for the plan's kept scratch */
  void *const *held; /* the same for held[i], as many bytes as each states */
  /* The plan's exchange has been carried out: into `kept` by a plan with the
   * same messages; without `kept`, as the last one to be prefetched, and no
   * other plan with kept scratch may have run since. */
  bool rest;
  sdg_graph_room_t *room; /* of the capture that the stream takes part in */
} sdg_exec_how_t;
sdg_status_t sdg_exec_run_how(const sdg_plan_t *plan, const sdg_call_t *call,
                              cudaStream_t stream, sdg_report_row_t *row,
                              const sdg_exec_how_t *how,
                              sdg_outcome_t *out) SDG_MUST_CHECK;
/* Computes a digest of the bytes that the plan's exchange would send now.
 * Waits for the device; for checked runs. */
sdg_status_t sdg_exec_digest(const sdg_prefetch_t *prefetch,
                             cudaStream_t stream, uint64_t *out) SDG_MUST_CHECK;

#endif
