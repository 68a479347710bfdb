// SPDX-License-Identifier: Apache-2.0
// AddTensor, OpTensor, ScaleTensor, SetTensor, TransformTensor, activations.
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/elementwise/loops.h"
#include "src/host/cudnn/model/model.h"

static bool run(void *job) {
  return host_loop_run(job);
}

static cudnnStatus_t queue(cudnnHandle_t handle, const host_loop_t *loop) {
  return host_work_queue(handle, run, loop, sizeof *loop);
}

// Whether the loops compute these types and layouts.
static cudnnStatus_t check(const struct cudnnTensorStruct *t) {
  REFUSE_IF(t->rank < 2, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(host_type_vector(t->type) > 1 || t->vector_length > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 0; i < t->rank; i++)
    REFUSE_IF(t->stride[i] < 0, CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

// Starts the loop over y.
static cudnnStatus_t start(host_loop_t *loop, host_loop_kind_t kind,
                           const struct cudnnTensorStruct *y, void *y_data) {
  cudnnStatus_t status = check(y);
  if (status)
    return status;
  *loop = (host_loop_t){.kind = kind,
                        .type = {y->type},
                        .operands = 1,
                        .rank = y->rank,
                        .alpha = 1};
  for (int i = 0; i < y->rank; i++) {
    loop->extent[i] = y->dim[i];
    loop->stride[HOST_LOOP_Y][i] = y->stride[i];
  }
  loop->data[HOST_LOOP_Y] = host_tensor_resolve(y, y_data);
  REFUSE_IF(!loop->data[HOST_LOOP_Y], CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

// Adds an operand to a loop over y: y's extents, or 1 to repeat it.
static cudnnStatus_t operand(host_loop_t *loop,
                             const struct cudnnTensorStruct *y,
                             const struct cudnnTensorStruct *t,
                             const void *data) {
  cudnnStatus_t status = check(t);
  if (status)
    return status;
  for (int i = 0; i < y->rank; i++)
    loop->stride[loop->operands][i] =
        t->dim[i] == 1 && y->dim[i] != 1 ? 0 : t->stride[i];
  loop->type[loop->operands] = t->type;
  loop->data[loop->operands] = host_tensor_resolve(t, data);
  REFUSE_IF(!loop->data[loop->operands], CUDNN_STATUS_EXECUTION_FAILED);
  loop->operands++;
  return CUDNN_STATUS_SUCCESS;
}

static bool same_extents(const struct cudnnTensorStruct *a,
                         const struct cudnnTensorStruct *b) {
  return a->rank == b->rank &&
         memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static bool same_strides(const struct cudnnTensorStruct *a,
                         const struct cudnnTensorStruct *b) {
  return memcmp(a->stride, b->stride, (size_t)a->rank * sizeof *a->stride) == 0;
}

static bool repeats_over(const struct cudnnTensorStruct *small,
                         const struct cudnnTensorStruct *y) {
  if (small->rank != y->rank)
    return false;
  for (int i = 0; i < y->rank; i++)
    if (small->dim[i] != y->dim[i] && small->dim[i] != 1)
      return false;
  return true;
}

static cudnnStatus_t blend(cudnnHandle_t handle, const void *alpha,
                           const struct cudnnTensorStruct *x,
                           const void *x_data, const void *beta,
                           const struct cudnnTensorStruct *y, void *y_data) {
  host_loop_t loop;
  cudnnStatus_t status = start(&loop, HOST_LOOP_BLEND, y, y_data);
  if (!status)
    status = operand(&loop, y, x, x_data);
  if (status)
    return status;
  loop.alpha = host_scalar(alpha, y->type);
  loop.beta = host_scalar(beta, y->type);
  return queue(handle, &loop);
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha,
                             const cudnnTensorDescriptor_t a,
                             const void *a_data, const void *beta,
                             const cudnnTensorDescriptor_t c, void *c_data) {
  REFUSE_IF(!handle || !alpha || !beta || !a || !c || !a_data || !c_data,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(a->type != c->type, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!repeats_over(a, c), CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = HOST_MODEL_CHECK(cudnnAddTensor, a, c);
  return status ? status : blend(handle, alpha, a, a_data, beta, c, c_data);
}

typedef struct {
  host_view_t x, y;
  double alpha, beta;
} turn_t;

// Converts one image at a time.
static bool run_turn(void *argument) {
  const turn_t *job = argument;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX];
  memcpy(box, job->x.dim, sizeof box);
  box[0] = 1;
  int64_t image = host_view_elements(&job->x) / job->x.dim[0];
  double *values =
      host_scratch_get(HOST_SCRATCH_INPUT, (size_t)image * sizeof *values);
  if (!values)
    return false;
  for (; first[0] < job->x.dim[0]; first[0]++) {
    host_view_load(&job->x, first, box, values);
    host_view_store(&job->y, first, box, job->alpha, values, job->beta);
  }
  return true;
}

// Converts from or to vectors of channels, or another type, rounded once.
static cudnnStatus_t turn(cudnnHandle_t handle, const void *alpha,
                          const struct cudnnTensorStruct *x, const void *x_data,
                          const void *beta, const struct cudnnTensorStruct *y,
                          void *y_data) {
  turn_t job = {.alpha = host_scalar(alpha, y->type),
                .beta = host_scalar(beta, y->type)};
  cudnnStatus_t status = host_view_init_any(x, x_data, &job.x);
  if (!status)
    status = host_view_init_any(y, y_data, &job.y);
  return status ? status : host_work_queue(handle, run_turn, &job, sizeof job);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha,
                                   const cudnnTensorDescriptor_t x,
                                   const void *x_data, const void *beta,
                                   const cudnnTensorDescriptor_t y,
                                   void *y_data) {
  REFUSE_IF(!handle || !alpha || !beta || !x || !y || !x_data || !y_data,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_extents(x, y), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->type == CUDNN_DATA_INT8x32 || y->type == CUDNN_DATA_INT8x32,
            CUDNN_STATUS_BAD_PARAM);
  cudnnDataType_t from = host_type_scalar(x->type);
  cudnnDataType_t to = host_type_scalar(y->type);
  REFUSE_IF((from == CUDNN_DATA_INT8 && to == CUDNN_DATA_UINT8) ||
                (from == CUDNN_DATA_UINT8 && to == CUDNN_DATA_INT8),
            CUDNN_STATUS_NOT_SUPPORTED);
  cudnnStatus_t status = HOST_MODEL_CHECK(cudnnTransformTensor, x, y);
  if (status)
    return status;
  return (x->type == y->type && host_type_vector(x->type) == 1 ? blend : turn)(
      handle, alpha, x, x_data, beta, y, y_data);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle,
                               const cudnnTensorDescriptor_t y, void *y_data,
                               const void *alpha) {
  REFUSE_IF(!handle || !y || !y_data || !alpha, CUDNN_STATUS_BAD_PARAM);
  static const double zero; // 0 as float, too
  cudnnStatus_t status = HOST_MODEL_CHECK(cudnnScaleTensor, y);
  return status ? status : blend(handle, alpha, y, y_data, &zero, y, y_data);
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle,
                             const cudnnTensorDescriptor_t y, void *y_data,
                             const void *value) {
  REFUSE_IF(!handle || !y || !y_data || !value, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(host_type_vector(y->type) > 1 || y->vector_length > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  // Works for any type, because only an element's bytes matter.
  struct cudnnTensorStruct bytes = *y;
  bytes.type = CUDNN_DATA_FLOAT;
  cudnnStatus_t status = HOST_MODEL_CHECK(cudnnSetTensor, y);
  if (!status)
    status = check(&bytes);
  if (status)
    return status;
  host_loop_t loop = {.kind = HOST_LOOP_SET, .operands = 1, .rank = y->rank};
  for (int i = 0; i < y->rank; i++) {
    loop.extent[i] = y->dim[i];
    loop.stride[HOST_LOOP_Y][i] = y->stride[i];
  }
  loop.value_bytes = host_type_bytes(y->type);
  // A float for halves, although cuDNN's manual says the element's type.
  if (y->type == CUDNN_DATA_HALF || y->type == CUDNN_DATA_BFLOAT16) {
    double number = host_scalar(value, y->type);
    uint16_t half;
    host_elements_store(y->type, &half, 1, 1, 1, &number, 0);
    memcpy(loop.value, &half, sizeof half);
  } else {
    memcpy(loop.value, value, loop.value_bytes);
  }
  loop.data[HOST_LOOP_Y] = host_tensor_resolve(y, y_data);
  REFUSE_IF(!loop.data[HOST_LOOP_Y], CUDNN_STATUS_EXECUTION_FAILED);
  return queue(handle, &loop);
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle,
                            const cudnnOpTensorDescriptor_t op,
                            const void *alpha1, const cudnnTensorDescriptor_t a,
                            const void *a_data, const void *alpha2,
                            const cudnnTensorDescriptor_t b, const void *b_data,
                            const void *beta, const cudnnTensorDescriptor_t c,
                            void *c_data) {
  REFUSE_IF(!handle || !op || !alpha1 || !beta || !a || !a_data || !c ||
                !c_data,
            CUDNN_STATUS_BAD_PARAM);
  bool unary = op->op == CUDNN_OP_TENSOR_SQRT || op->op == CUDNN_OP_TENSOR_NOT;
  REFUSE_IF(!unary && (!alpha2 || !b || !b_data), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_extents(a, c), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!unary && !repeats_over(b, c), CUDNN_STATUS_BAD_PARAM);
  // Doubles with doubles; all other types mix, and are added in float.
  bool is_double = c->type == CUDNN_DATA_DOUBLE;
  REFUSE_IF((a->type == CUDNN_DATA_DOUBLE) != is_double ||
                (!unary && (b->type == CUDNN_DATA_DOUBLE) != is_double),
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(op->compute_type !=
                (is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
            CUDNN_STATUS_NOT_SUPPORTED);
  const host_model_call_t model = {
      .operands = 3,
      .operand = {
          {a, a_data}, {unary ? a : b, unary ? a_data : b_data}, {c, c_data}}};
  cudnnStatus_t status = host_model_check(__func__, "cudnnOpTensor", &model);
  host_loop_t loop;
  if (!status)
    status = start(&loop, HOST_LOOP_OP, c, c_data);
  if (!status)
    status = operand(&loop, c, a, a_data);
  if (!status && !unary)
    status = operand(&loop, c, b, b_data);
  if (status)
    return status;
  loop.op = op->op;
  loop.propagate_nan = op->nan == CUDNN_PROPAGATE_NAN;
  loop.alpha = host_scalar(alpha1, c->type);
  loop.alpha2 = unary ? 0 : host_scalar(alpha2, c->type);
  loop.beta = host_scalar(beta, c->type);
  return queue(handle, &loop);
}

// IDENTITY is allowed for the fused convolution only.
static cudnnStatus_t
check_activation(const struct cudnnActivationStruct *activation,
                 cudnnDataType_t type, bool backward) {
  REFUSE_IF(activation->mode == CUDNN_ACTIVATION_IDENTITY,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE &&
                type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16 &&
                (type != CUDNN_DATA_INT8 || backward),
            CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

static void activate(host_loop_t *loop, const void *alpha, const void *beta,
                     const struct cudnnActivationStruct *activation,
                     cudnnDataType_t type) {
  loop->activation = *activation;
  loop->propagate_nan = activation->nan == CUDNN_PROPAGATE_NAN;
  loop->alpha = host_scalar(alpha, type);
  loop->beta = host_scalar(beta, type);
}

cudnnStatus_t cudnnActivationForward(
    cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *beta, const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle || !activation || !alpha || !beta || !x || !y || !x_data ||
                !y_data,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->type != y->type || !same_extents(x, y), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x_data == y_data && !same_strides(x, y), CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check_activation(activation, y->type, false);
  if (!status)
    status = HOST_MODEL_CHECK(cudnnActivationForward, x, y);
  host_loop_t loop;
  if (!status)
    status = start(&loop, HOST_LOOP_FORWARD, y, y_data);
  if (!status)
    status = operand(&loop, y, x, x_data);
  if (status)
    return status;
  activate(&loop, alpha, beta, activation, y->type);
  return queue(handle, &loop);
}

cudnnStatus_t cudnnActivationBackward(
    cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
    const void *alpha, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t x, const void *x_data, const void *beta,
    const cudnnTensorDescriptor_t dx, void *dx_data) {
  REFUSE_IF(!handle || !activation || !alpha || !beta, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!y || !dy || !x || !dx || !y_data || !dy_data || !x_data ||
                !dx_data,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(y->type != dx->type || dy->type != dx->type || x->type != dx->type,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_extents(y, dx) || !same_extents(dy, dx) ||
                !same_extents(x, dx),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(dy_data == dx_data && !same_strides(dy, dx),
            CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check_activation(activation, dx->type, true);
  if (!status)
    status = HOST_MODEL_CHECK(cudnnActivationBackward, y, dy, x, dx);
  host_loop_t loop;
  if (!status)
    status = start(&loop, HOST_LOOP_BACKWARD, dx, dx_data);
  if (!status)
    status = operand(&loop, dx, y, y_data);
  if (!status)
    status = operand(&loop, dx, dy, dy_data);
  if (!status)
    status = operand(&loop, dx, x, x_data);
  if (status)
    return status;
  activate(&loop, alpha, beta, activation, dx->type);
  return queue(handle, &loop);
}
