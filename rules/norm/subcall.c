// SPDX-License-Identifier: Apache-2.0
// Sub-calls that take modes and scalars from the program's normalisation.
#include "rules/norm/subcall.h"

#include <stdlib.h>

#include "rules/norm/plan.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// What a sub-call keeps besides its tensors.
typedef struct how {
  // Where a call has its numbers, as in sdg_norm_t.
  double (*number)(const sdg_call_t *call, sdg_norm_number_t which);
  cudnnBatchNormMode_t mode;
  sdg_norm_from_t alpha, beta, epsilon;
  double multiple;
  sdg_type_t type;              // of x; the type of scalars follows from it
  cudnnOpTensorDescriptor_t op; // or NULL
} how_t;

static void how_destroy(void *user) {
  how_t *how = user;
  if (how->op)
    (void)sdg_cudnn_get()->cudnnDestroyOpTensorDescriptor(how->op);
  free(how);
}

// Takes ownership of how->op.
static sdg_status_t add(sdg_plan_t *plan, sdg_subcall_t *sub,
                        const how_t *how) {
  how_t *kept = malloc(sizeof *kept);
  if (!kept) {
    if (how->op)
      (void)sdg_cudnn_get()->cudnnDestroyOpTensorDescriptor(how->op);
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  }
  *kept = *how;
  sub->op = kept;
  sub->op_destroy = how_destroy;
  return sdg_subcall_add(plan, sub);
}

static double number_of(const how_t *how, const sdg_subcall_run_t *run,
                        sdg_norm_number_t which) {
  const sdg_norm_t norm = {.number = how->number};
  return sdg_norm_number(run->call, &norm, which);
}

static sdg_scalar_t scalar_of(const how_t *how, sdg_norm_from_t from,
                              const sdg_subcall_run_t *run,
                              sdg_norm_number_t program) {
  return sdg_scalar(how->type, from == SDG_NORM_PROGRAM
                                   ? number_of(how, run, program)
                                   : (double)(from == SDG_NORM_ONE));
}

// How many sub-calls the samples of x need, and sample n of a tensor.
static int64_t samples_of(const sdg_norm_maker_t *m,
                          const sdg_subcall_tensor_t *x) {
  return m->per_sample ? sdg_box_length(&x->box, 0) : 1;
}

static void sample_pick(const sdg_norm_maker_t *m, int64_t n,
                        sdg_subcall_t *io) {
  for (int i = 0; i < io->tensors && m->per_sample; i++) {
    sdg_range_t *range = &io->tensor[i].box.dim[0];
    if (range->hi - range->lo > 1)
      *range = (sdg_range_t){range->lo + n, range->lo + n + 1};
  }
}

// Adds a sub-call, for each sample of its first tensor.
static sdg_status_t each_add(sdg_norm_maker_t *m, const sdg_subcall_t *sub,
                             const how_t *how) {
  for (int64_t n = 0; n < samples_of(m, &sub->tensor[0]); n++) {
    sdg_subcall_t one = *sub;
    sample_pick(m, n, &one);
    SDG_TRY(add(m->plan, &one, how));
  }
  return SDG_OK;
}

static cudnnStatus_t inference_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  sdg_scalar_t alpha = scalar_of(how, how->alpha, run, SDG_NORM_ALPHA);
  sdg_scalar_t beta = scalar_of(how, how->beta, run, SDG_NORM_BETA);
  double epsilon = how->epsilon == SDG_NORM_PROGRAM
                       ? number_of(how, run, SDG_NORM_EPSILON)
                       : 0;
  return sdg_cudnn_get()->cudnnBatchNormalizationForwardInference(
      run->handle, how->mode, &alpha, &beta, run->descriptor[0], run->data[0],
      run->descriptor[1], run->data[1], run->descriptor[2], run->data[2],
      run->data[3], run->data[4], run->data[5], epsilon);
}

sdg_status_t
sdg_norm_subcall_inference(sdg_norm_maker_t *m, cudnnBatchNormMode_t mode,
                           sdg_norm_from_t alpha, const sdg_subcall_tensor_t *x,
                           const sdg_norm_params_t *params,
                           sdg_norm_from_t epsilon, sdg_norm_from_t beta,
                           const sdg_subcall_tensor_t *y) {
  sdg_subcall_t sub = {.fn = inference_run,
                       .tensors = 6,
                       .tensor = {*x, *y, params->scale, params->bias,
                                  params->mean, params->variance}};
  how_t how = {.number = m->norm->number,
               .mode = mode,
               .alpha = alpha,
               .beta = beta,
               .epsilon = epsilon,
               .type = x->type};
  return each_add(m, &sub, &how);
}

static cudnnStatus_t statistics_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  // Nobody uses y. A library may see from the factor 0 that it can skip it.
  sdg_scalar_t zero = sdg_scalar(how->type, 0);
  return sdg_cudnn_get()->cudnnBatchNormalizationForwardTraining(
      run->handle, how->mode, &zero, &zero, run->descriptor[0], run->data[0],
      run->descriptor[1], run->data[1], run->descriptor[2], run->data[2],
      run->data[3], 1, run->data[4], run->data[5],
      number_of(how, run, SDG_NORM_EPSILON), NULL, NULL);
}

sdg_status_t sdg_norm_subcall_statistics(sdg_norm_maker_t *m,
                                         cudnnBatchNormMode_t mode,
                                         const sdg_subcall_tensor_t *x,
                                         const sdg_norm_params_t *params,
                                         const sdg_subcall_tensor_t *y) {
  sdg_subcall_t sub = {.fn = statistics_run,
                       .tensors = 6,
                       .tensor = {*x, *y, params->scale, params->bias,
                                  params->mean, params->variance}};
  how_t how = {.number = m->norm->number, .mode = mode, .type = x->type};
  return each_add(m, &sub, &how);
}

static cudnnStatus_t gradient_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  sdg_scalar_t one = sdg_scalar(how->type, 1), zero = sdg_scalar(how->type, 0);
  sdg_scalar_t alpha = scalar_of(how, how->alpha, run, SDG_NORM_ALPHA);
  sdg_scalar_t beta = scalar_of(how, how->beta, run, SDG_NORM_BETA);
  return sdg_cudnn_get()->cudnnBatchNormalizationBackward(
      run->handle, how->mode, &alpha, &beta, &one, &zero, run->descriptor[0],
      run->data[0], run->descriptor[1], run->data[1], run->descriptor[2],
      run->data[2], run->descriptor[3], run->data[3], run->data[4],
      run->data[5], number_of(how, run, SDG_NORM_EPSILON), run->data[6],
      run->data[7]);
}

sdg_status_t sdg_norm_subcall_gradient(sdg_norm_maker_t *m,
                                       cudnnBatchNormMode_t mode,
                                       sdg_norm_from_t alpha,
                                       const sdg_norm_gradient_t *g,
                                       sdg_norm_from_t beta) {
  sdg_subcall_t sub = {.fn = gradient_run,
                       .tensors = 8,
                       .tensor = {g->x, g->dy, g->dx, g->scale, g->dscale,
                                  g->dbias, g->mean, g->inverse}};
  how_t how = {.number = m->norm->number,
               .mode = mode,
               .alpha = alpha,
               .beta = beta,
               .type = g->x.type};
  return each_add(m, &sub, &how);
}

static cudnnStatus_t transform(const sdg_subcall_run_t *run, double alpha,
                               double beta) {
  const how_t *how = run->op;
  sdg_scalar_t a = sdg_scalar(how->type, alpha);
  sdg_scalar_t b = sdg_scalar(how->type, beta);
  return sdg_cudnn_get()->cudnnTransformTensor(
      run->handle, &a, run->descriptor[0], run->data[0], &b, run->descriptor[1],
      run->data[1]);
}

static cudnnStatus_t running_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  double factor = number_of(how, run, SDG_NORM_FACTOR);
  return transform(run, factor * how->multiple, 1 - factor);
}

sdg_status_t sdg_norm_subcall_running(sdg_norm_maker_t *m, double multiple,
                                      const sdg_subcall_tensor_t *found,
                                      const sdg_subcall_tensor_t *running) {
  sdg_subcall_t sub = {
      .fn = running_run, .tensors = 2, .tensor = {*found, *running}};
  how_t how = {
      .number = m->norm->number, .multiple = multiple, .type = found->type};
  return add(m->plan, &sub, &how);
}

static cudnnStatus_t param_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  return transform(run, number_of(how, run, SDG_NORM_ALPHA_PARAM),
                   number_of(how, run, SDG_NORM_BETA_PARAM));
}

sdg_status_t sdg_norm_subcall_param(sdg_norm_maker_t *m,
                                    const sdg_subcall_tensor_t *found,
                                    const sdg_subcall_tensor_t *sum) {
  sdg_subcall_t sub = {.fn = param_run, .tensors = 2, .tensor = {*found, *sum}};
  how_t how = {.number = m->norm->number, .type = found->type};
  return add(m->plan, &sub, &how);
}

// Converts with max(a, a), because the sum a + 0 * a would turn infinities into
// NaN.
static cudnnStatus_t narrow_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  sdg_scalar_t alpha = scalar_of(how, SDG_NORM_PROGRAM, run, SDG_NORM_ALPHA);
  sdg_scalar_t beta = scalar_of(how, SDG_NORM_PROGRAM, run, SDG_NORM_BETA);
  return sdg_cudnn_get()->cudnnOpTensor(
      run->handle, how->op, &alpha, run->descriptor[0], run->data[0], &alpha,
      run->descriptor[0], run->data[0], &beta, run->descriptor[1],
      run->data[1]);
}

sdg_status_t sdg_norm_subcall_narrow(sdg_norm_maker_t *m,
                                     const sdg_subcall_tensor_t *wide,
                                     const sdg_subcall_tensor_t *narrow) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  sdg_subcall_t sub = {
      .fn = narrow_run, .tensors = 2, .tensor = {*wide, *narrow}};
  how_t how = {.number = m->norm->number, .type = wide->type};
  cudnnStatus_t got = cudnn->cudnnCreateOpTensorDescriptor(&how.op);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetOpTensorDescriptor(how.op, CUDNN_OP_TENSOR_MAX,
                                            (cudnnDataType_t)wide->type,
                                            CUDNN_PROPAGATE_NAN);
  if (got == CUDNN_STATUS_SUCCESS)
    return add(m->plan, &sub, &how);
  if (how.op)
    (void)cudnn->cudnnDestroyOpTensorDescriptor(how.op);
  return sdg_fail(SDG_E_VENDOR_CALL, "cudnnSetOpTensorDescriptor: status %d",
                  (int)got);
}

static cudnnStatus_t activate_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  sdg_scalar_t one = sdg_scalar(how->type, 1), zero = sdg_scalar(how->type, 0);
  return sdg_cudnn_get()->cudnnActivationForward(
      run->handle, sdg_call_pointer(run->call, SDG_OP), &one,
      run->descriptor[0], run->data[0], &zero, run->descriptor[1],
      run->data[1]);
}

sdg_status_t sdg_norm_subcall_activate(sdg_plan_t *plan,
                                       const sdg_subcall_tensor_t *x,
                                       const sdg_subcall_tensor_t *y) {
  sdg_subcall_t sub = {.fn = activate_run, .tensors = 2, .tensor = {*x, *y}};
  how_t how = {.type = x->type};
  return add(plan, &sub, &how);
}

// The vendor also wants the activation's input x. It gets y in its place:
// for ReLU the same elements are positive.
static cudnnStatus_t deactivate_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  sdg_scalar_t one = sdg_scalar(how->type, 1), zero = sdg_scalar(how->type, 0);
  return sdg_cudnn_get()->cudnnActivationBackward(
      run->handle, sdg_call_pointer(run->call, SDG_OP), &one,
      run->descriptor[0], run->data[0], run->descriptor[1], run->data[1],
      run->descriptor[0], run->data[0], &zero, run->descriptor[2],
      run->data[2]);
}

sdg_status_t sdg_norm_subcall_deactivate(sdg_plan_t *plan,
                                         const sdg_subcall_tensor_t *y,
                                         const sdg_subcall_tensor_t *dy,
                                         const sdg_subcall_tensor_t *dx) {
  sdg_subcall_t sub = {
      .fn = deactivate_run, .tensors = 3, .tensor = {*y, *dy, *dx}};
  how_t how = {.type = dy->type};
  return add(plan, &sub, &how);
}
