/* SPDX-License-Identifier: Apache-2.0 */
/* Plans made of several calls of the vendor's functions on boxes of slabs. The
 * plan owns the calls' descriptors and scalars. Inside rules/ only.
 *
 * An op opens a plan, adds slabs, and adds sub-calls between the plan's own
 * steps (copies, exchanges, reductions). Sub-calls run in the order in which
 * they were added:
 *
 *   sdg_subcalls_open(plan, call);
 *   sdg_plan_operand(plan, call, x, &own, &slab); ...
 *   sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_AVG, 1, &x, 0, &mean);
 *   sdg_plan_reduce(plan, mean.slab, mean.type, SDG_COMBINE_SUM);
 *   sdg_plan_join(plan, SDG_LANE_MAIN);
 *   ...
 */
#ifndef SDG_RULES_KIT_SUBCALL_H
#define SDG_RULES_KIT_SUBCALL_H

#include <cudnn.h>

#include "src/exchange/exec.h"
#include "src/plan/plan.h"

enum { SDG_SUBCALL_TENSORS = 8, SDG_SUBCALL_SCALARS = 4 };

/* One tensor of a sub-call. */
typedef struct sdg_subcall_tensor {
  int slab;      /* of the plan; -1: `at` returns its address, packed
                  * row-major */
  sdg_box_t box; /* inside the slab, in its coordinates; not empty */
  sdg_type_t type;
  void *(*at)(const sdg_call_t *call);
} sdg_subcall_tensor_t;

/* The tensor that is all of a slab. */
sdg_subcall_tensor_t sdg_subcall_slab(const sdg_plan_t *plan, int slab,
                                      sdg_type_t type);

/* A scalar of the type that the vendor's functions expect for tensors of
 * `type`. */
typedef union sdg_scalar {
  float single;
  double twice;
} sdg_scalar_t;
sdg_scalar_t sdg_scalar(sdg_type_t type, double value);

/* A sub-call while it runs. */
typedef struct sdg_subcall_run {
  const sdg_call_t *call;      /* the program's */
  const struct sdg_exec *exec; /* for slabs that are not among the tensors */
  cudnnHandle_t handle;
  const sdg_scalar_t *scalar; /* as given to sdg_subcall_add */
  void *op;                   /* as given to sdg_subcall_add */
  cudnnTensorDescriptor_t descriptor[SDG_SUBCALL_TENSORS];
  void *data[SDG_SUBCALL_TENSORS];
  void *workspace;
  size_t workspace_bytes;
} sdg_subcall_run_t;

/* What a plan stores for a sub-call. */
typedef struct sdg_subcall {
  cudnnStatus_t (*fn)(const sdg_subcall_run_t *run);
  int tensors;
  sdg_subcall_tensor_t tensor[SDG_SUBCALL_TENSORS];
  sdg_scalar_t scalar[SDG_SUBCALL_SCALARS];
  void *op; /* an op's descriptor, destroyed with the plan; or NULL */
  void (*op_destroy)(void *op);
  size_t workspace_bytes;
} sdg_subcall_t;

/* Sets state, state_destroy and run of an empty plan. */
sdg_status_t sdg_subcalls_open(sdg_plan_t *plan,
                               const sdg_call_t *call) SDG_MUST_CHECK;

/* True if two tensors have equal strides in memory. */
bool sdg_subcall_strides_equal(const sdg_plan_t *plan,
                               const sdg_subcall_tensor_t *a,
                               const sdg_subcall_tensor_t *b);

/* Adds a sub-call of any function. Takes ownership of `op`, also after an
 * error. SDG_E_VENDOR_CALL if the vendor's library rejects the descriptor of a
 * tensor. */
sdg_status_t sdg_subcall_add(sdg_plan_t *plan,
                             const sdg_subcall_t *sub) SDG_MUST_CHECK;
/* Stores a sub-call without a step that runs it. To run it, add sdg_plan_call()
 * with *out_index, which counts sub-calls from 0. */
sdg_status_t sdg_subcall_keep(sdg_plan_t *plan, const sdg_subcall_t *sub,
                              int *out_index) SDG_MUST_CHECK;

/* A value for `fn`: makes the program's call on the sub-call's tensors, in the
 * order of the call's operands. */
cudnnStatus_t sdg_subcall_program(const sdg_subcall_run_t *run);

/* c = op(alpha1 a, alpha2 b) + beta c. The extents of a and c are equal; each
 * extent of b is 1 or equal. c may be a. SQRT and NOT ignore b, which may then
 * be a. */
sdg_status_t sdg_subcall_op(sdg_plan_t *plan, cudnnOpTensorOp_t op,
                            double alpha1, const sdg_subcall_tensor_t *a,
                            double alpha2, const sdg_subcall_tensor_t *b,
                            double beta,
                            const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* c = op(alpha1 a, alpha2 b) for MIN or MAX; between NaN and a number the
 * number wins. */
sdg_status_t
sdg_subcall_op_numbers(sdg_plan_t *plan, cudnnOpTensorOp_t op, double alpha1,
                       const sdg_subcall_tensor_t *a, double alpha2,
                       const sdg_subcall_tensor_t *b,
                       const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* Adds an op that `fn` runs with scalars of its own. run->op is the op's
 * descriptor, run->scalar[0] is 1, the tensors are a, b, c. */
sdg_status_t
sdg_subcall_op_by(sdg_plan_t *plan, cudnnOpTensorOp_t op,
                  cudnnStatus_t (*fn)(const sdg_subcall_run_t *run),
                  const sdg_subcall_tensor_t *a, const sdg_subcall_tensor_t *b,
                  const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* c = alpha a + beta c. The types may differ if the vendor's library
 * converts. */
sdg_status_t
sdg_subcall_transform(sdg_plan_t *plan, double alpha,
                      const sdg_subcall_tensor_t *a, double beta,
                      const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* c = a + beta c with the program's beta; `scales`: a times its alpha. */
sdg_status_t sdg_subcall_store(sdg_plan_t *plan, bool scales,
                               const sdg_subcall_tensor_t *a,
                               const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* c = alpha reduce(a) + beta c over the dimensions in which c's extent is 1. */
sdg_status_t sdg_subcall_reduce(sdg_plan_t *plan, cudnnReduceTensorOp_t op,
                                double alpha, const sdg_subcall_tensor_t *a,
                                double beta,
                                const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* c = alpha reduce(a). If `numbers`, MIN, MAX and AMAX ignore NaN as long as
 * there is a number. */
sdg_status_t
sdg_subcall_reduce_extreme(sdg_plan_t *plan, cudnnReduceTensorOp_t op,
                           bool numbers, double alpha,
                           const sdg_subcall_tensor_t *a,
                           const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* The workspace in bytes that the vendor's library needs for a reduction by
 * `op`. */
sdg_status_t sdg_subcall_reduction_workspace(const sdg_plan_t *plan,
                                             cudnnReduceTensorDescriptor_t op,
                                             const sdg_subcall_tensor_t *a,
                                             const sdg_subcall_tensor_t *c,
                                             size_t *out_bytes) SDG_MUST_CHECK;
/* c = value. The type is float or double. */
sdg_status_t sdg_subcall_set(sdg_plan_t *plan, double value,
                             const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;
/* c = alpha c. */
sdg_status_t sdg_subcall_scale(sdg_plan_t *plan, double alpha,
                               const sdg_subcall_tensor_t *c) SDG_MUST_CHECK;

#endif
