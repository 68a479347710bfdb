/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the plans of all ranks for one call in one process, for trials:
 * each rank has memory of its own, an exchange is copies between these, and the
 * host combines what is reduced. Needs neither a job nor NCCL. */
#ifndef SDG_SRC_REHEARSE_REHEARSE_H
#define SDG_SRC_REHEARSE_REHEARSE_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/geometry/mesh.h"
#include "src/plan/plan.h"

/* One rank: its plan, not a literal one, and the call as its program makes it.
 * `scratch` has plan->scratch_bytes bytes. */
typedef struct sdg_rehearsed {
  const sdg_plan_t *plan;
  const sdg_call_t *call;
  void *scratch;
} sdg_rehearsed_t;

/* Reductions whose terms are told apart. */
enum { SDG_REHEARSED_REDUCTIONS = 8 };
typedef struct sdg_rehearsal {
  const sdg_mesh_t *mesh;
  const sdg_rehearsed_t *rank; /* one for each rank of the mesh */
  cudaStream_t stream;
  int vendor; /* out: the vendor's status of a refused sub-call; 0: none */
  /* Out: of the plan's first reductions, the largest sum of the ranks' absolute
   * values. How far rounding can take a sum depends on it. */
  double terms[SDG_REHEARSED_REDUCTIONS];
} sdg_rehearsal_t;

/* Carries out all steps, and waits for them. The plans use no memory but their
 * operands' and scratch. SDG_E_INTERNAL if the plans do not fit each other;
 * SDG_E_TENSOR_TYPE for a reduction of half precision; SDG_E_CUDA. */
sdg_status_t sdg_rehearse(sdg_rehearsal_t *io) SDG_MUST_CHECK;

#endif
