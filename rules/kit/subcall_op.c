// SPDX-License-Identifier: Apache-2.0
// Sub-calls that several ops use: arithmetic on tensors.
#include "rules/kit/subcall.h"

#include <string.h>

#include "rules/kit/subcall_state.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

enum { ALPHA, BETA, ALPHA2 }; // scalars of the functions below

sdg_subcall_tensor_t sdg_subcall_slab(const sdg_plan_t *plan, int slab,
                                      sdg_type_t type) {
  return (sdg_subcall_tensor_t){
      .slab = slab, .box = plan->slab[slab].box, .type = type};
}

bool sdg_subcall_strides_equal(const sdg_plan_t *plan,
                               const sdg_subcall_tensor_t *a,
                               const sdg_subcall_tensor_t *b) {
  const sdg_slab_t *slab = plan->slab;
  return memcmp(slab[a->slab].stride, slab[b->slab].stride,
                (size_t)a->box.dims * sizeof *slab->stride) == 0;
}

sdg_scalar_t sdg_scalar(sdg_type_t type, double value) {
  return type == CUDNN_DATA_DOUBLE ? (sdg_scalar_t){.twice = value}
                                   : (sdg_scalar_t){.single = (float)value};
}

cudnnStatus_t sdg_subcall_program(const sdg_subcall_run_t *run) {
  sdg_rebind_t own;
  sdg_rebind_init(run->call, &own);
  for (int i = 0; i < run->call->operands; i++)
    sdg_rebind_put(&own, i, run->descriptor[i], run->data[i]);
  return (cudnnStatus_t)sdg_rebind_invoke(&own);
}

static cudnnDataType_t compute_of(sdg_type_t type) {
  return type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static sdg_status_t vendor_check(cudnnStatus_t got, const char *what) {
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "%s: status %d", what, (int)got);
}

static cudnnStatus_t op_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnOpTensor(
      run->handle, run->op, &run->scalar[ALPHA], run->descriptor[0],
      run->data[0], &run->scalar[ALPHA2], run->descriptor[1], run->data[1],
      &run->scalar[BETA], run->descriptor[2], run->data[2]);
}

static void op_destroy(void *op) {
  (void)sdg_cudnn_get()->cudnnDestroyOpTensorDescriptor(op);
}

// Adds `sub` with a descriptor of `op`; its tensors are a, b and c.
static sdg_status_t op_add(sdg_plan_t *plan, cudnnOpTensorOp_t op,
                           cudnnNanPropagation_t nan, sdg_subcall_t *sub) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnOpTensorDescriptor_t descriptor;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  SDG_TRY(vendor_check(cudnn->cudnnCreateOpTensorDescriptor(&descriptor),
                       "cudnnCreateOpTensorDescriptor"));
  sub->tensors = 3;
  sub->op = descriptor;
  sub->op_destroy = op_destroy;
  sdg_status_t status =
      vendor_check(cudnn->cudnnSetOpTensorDescriptor(
                       descriptor, op, compute_of(sub->tensor[2].type), nan),
                   "cudnnSetOpTensorDescriptor");
  if (status == SDG_OK)
    return sdg_subcall_add(plan, sub);
  op_destroy(descriptor);
  return status;
}

sdg_status_t sdg_subcall_op(sdg_plan_t *plan, cudnnOpTensorOp_t op,
                            double alpha1, const sdg_subcall_tensor_t *a,
                            double alpha2, const sdg_subcall_tensor_t *b,
                            double beta, const sdg_subcall_tensor_t *c) {
  sdg_subcall_t sub = {.fn = op_run,
                       .tensor = {*a, *b, *c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, alpha1),
                                  [ALPHA2] = sdg_scalar(c->type, alpha2),
                                  [BETA] = sdg_scalar(c->type, beta)}};
  return op_add(plan, op, CUDNN_PROPAGATE_NAN, &sub);
}

sdg_status_t sdg_subcall_op_numbers(sdg_plan_t *plan, cudnnOpTensorOp_t op,
                                    double alpha1,
                                    const sdg_subcall_tensor_t *a,
                                    double alpha2,
                                    const sdg_subcall_tensor_t *b,
                                    const sdg_subcall_tensor_t *c) {
  sdg_subcall_t sub = {.fn = op_run,
                       .tensor = {*a, *b, *c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, alpha1),
                                  [ALPHA2] = sdg_scalar(c->type, alpha2)}};
  return op_add(plan, op, CUDNN_NOT_PROPAGATE_NAN, &sub);
}

sdg_status_t
sdg_subcall_op_by(sdg_plan_t *plan, cudnnOpTensorOp_t op,
                  cudnnStatus_t (*fn)(const sdg_subcall_run_t *run),
                  const sdg_subcall_tensor_t *a, const sdg_subcall_tensor_t *b,
                  const sdg_subcall_tensor_t *c) {
  sdg_subcall_t sub = {.fn = fn,
                       .tensor = {*a, *b, *c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, 1)}};
  return op_add(plan, op, CUDNN_PROPAGATE_NAN, &sub);
}

static cudnnStatus_t transform_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnTransformTensor(
      run->handle, &run->scalar[ALPHA], run->descriptor[0], run->data[0],
      &run->scalar[BETA], run->descriptor[1], run->data[1]);
}

sdg_status_t sdg_subcall_transform(sdg_plan_t *plan, double alpha,
                                   const sdg_subcall_tensor_t *a, double beta,
                                   const sdg_subcall_tensor_t *c) {
  sdg_subcall_t sub = {.fn = transform_run,
                       .tensors = 2,
                       .tensor = {*a, *c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, alpha),
                                  [BETA] = sdg_scalar(c->type, beta)}};
  return sdg_subcall_add(plan, &sub);
}

static cudnnStatus_t store_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnTransformTensor(
      run->handle, &run->scalar[ALPHA], run->descriptor[0], run->data[0],
      sdg_call_scalar_at(run->call, SDG_BETA), run->descriptor[1],
      run->data[1]);
}

static cudnnStatus_t store_scaled_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnTransformTensor(
      run->handle, sdg_call_scalar_at(run->call, SDG_ALPHA), run->descriptor[0],
      run->data[0], sdg_call_scalar_at(run->call, SDG_BETA), run->descriptor[1],
      run->data[1]);
}

sdg_status_t sdg_subcall_store(sdg_plan_t *plan, bool scales,
                               const sdg_subcall_tensor_t *a,
                               const sdg_subcall_tensor_t *c) {
  sdg_subcall_t sub = {.fn = scales ? store_scaled_run : store_run,
                       .tensors = 2,
                       .tensor = {*a, *c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, 1)}};
  return sdg_subcall_add(plan, &sub);
}

static cudnnStatus_t reduce_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnReduceTensor(
      run->handle, run->op, NULL, 0, run->workspace, run->workspace_bytes,
      &run->scalar[ALPHA], run->descriptor[0], run->data[0], &run->scalar[BETA],
      run->descriptor[1], run->data[1]);
}

static void reduce_destroy(void *op) {
  (void)sdg_cudnn_get()->cudnnDestroyReduceTensorDescriptor(op);
}

sdg_status_t sdg_subcall_reduction_workspace(const sdg_plan_t *plan,
                                             cudnnReduceTensorDescriptor_t op,
                                             const sdg_subcall_tensor_t *a,
                                             const sdg_subcall_tensor_t *c,
                                             size_t *out_bytes) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnTensorDescriptor_t from = NULL, to = NULL;
  sdg_status_t status;
  SDG_TRY_GOTO(sdg_subcall_describe(plan, a, &from), done);
  SDG_TRY_GOTO(sdg_subcall_describe(plan, c, &to), done);
  status = vendor_check(cudnn->cudnnGetReductionWorkspaceSize(
                            sdg_subcalls_handle(plan), op, from, to, out_bytes),
                        "cudnnGetReductionWorkspaceSize");
done:
  if (from)
    (void)cudnn->cudnnDestroyTensorDescriptor(from);
  if (to)
    (void)cudnn->cudnnDestroyTensorDescriptor(to);
  return status;
}

static sdg_status_t reduce_add(sdg_plan_t *plan, cudnnReduceTensorOp_t op,
                               cudnnNanPropagation_t nan, double alpha,
                               const sdg_subcall_tensor_t *a, double beta,
                               const sdg_subcall_tensor_t *c) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnReduceTensorDescriptor_t descriptor;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  SDG_TRY(vendor_check(cudnn->cudnnCreateReduceTensorDescriptor(&descriptor),
                       "cudnnCreateReduceTensorDescriptor"));
  sdg_subcall_t sub = {.fn = reduce_run,
                       .tensors = 2,
                       .tensor = {*a, *c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, alpha),
                                  [BETA] = sdg_scalar(c->type, beta)},
                       .op = descriptor,
                       .op_destroy = reduce_destroy};
  sdg_status_t status =
      vendor_check(cudnn->cudnnSetReduceTensorDescriptor(
                       descriptor, op, compute_of(c->type), nan,
                       CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES),
                   "cudnnSetReduceTensorDescriptor");
  if (status == SDG_OK)
    status = sdg_subcall_reduction_workspace(plan, descriptor, a, c,
                                             &sub.workspace_bytes);
  if (status == SDG_OK)
    return sdg_subcall_add(plan, &sub);
  reduce_destroy(descriptor);
  return status;
}

sdg_status_t sdg_subcall_reduce(sdg_plan_t *plan, cudnnReduceTensorOp_t op,
                                double alpha, const sdg_subcall_tensor_t *a,
                                double beta, const sdg_subcall_tensor_t *c) {
  return reduce_add(plan, op, CUDNN_PROPAGATE_NAN, alpha, a, beta, c);
}

sdg_status_t sdg_subcall_reduce_extreme(sdg_plan_t *plan,
                                        cudnnReduceTensorOp_t op, bool numbers,
                                        double alpha,
                                        const sdg_subcall_tensor_t *a,
                                        const sdg_subcall_tensor_t *c) {
  return reduce_add(plan, op,
                    numbers ? CUDNN_NOT_PROPAGATE_NAN : CUDNN_PROPAGATE_NAN,
                    alpha, a, 0, c);
}

static cudnnStatus_t set_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnSetTensor(run->handle, run->descriptor[0],
                                         run->data[0], &run->scalar[ALPHA]);
}

sdg_status_t sdg_subcall_set(sdg_plan_t *plan, double value,
                             const sdg_subcall_tensor_t *c) {
  // The value has the tensor's own type.
  if (c->type != CUDNN_DATA_FLOAT && c->type != CUDNN_DATA_DOUBLE)
    return sdg_fail(SDG_E_INTERNAL, "SetTensor of type %d", c->type);
  sdg_subcall_t sub = {.fn = set_run,
                       .tensors = 1,
                       .tensor = {*c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, value)}};
  return sdg_subcall_add(plan, &sub);
}

static cudnnStatus_t scale_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnScaleTensor(run->handle, run->descriptor[0],
                                           run->data[0], &run->scalar[ALPHA]);
}

sdg_status_t sdg_subcall_scale(sdg_plan_t *plan, double alpha,
                               const sdg_subcall_tensor_t *c) {
  sdg_subcall_t sub = {.fn = scale_run,
                       .tensors = 1,
                       .tensor = {*c},
                       .scalar = {[ALPHA] = sdg_scalar(c->type, alpha)}};
  return sdg_subcall_add(plan, &sub);
}
