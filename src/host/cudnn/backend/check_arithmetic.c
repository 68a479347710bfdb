// SPDX-License-Identifier: Apache-2.0
// Operations on elements, products, reductions and rearrangements.
#include "src/host/cudnn/backend/check.h"

// How many operands a pointwise mode has.
typedef enum {
  MODE_UNARY,
  MODE_BINARY,
  MODE_SELECT,
  MODE_INDEX,
  MODE_BACKWARD,
  MODE_UNKNOWN
} pointwise_form_t;

static pointwise_form_t form(int64_t mode) {
  switch ((int)mode) {
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_ADD_SQUARE:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_MAX:
  case CUDNN_POINTWISE_MIN:
  case CUDNN_POINTWISE_MOD:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_POW:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_ATAN2:
  case CUDNN_POINTWISE_CMP_EQ:
  case CUDNN_POINTWISE_CMP_NEQ:
  case CUDNN_POINTWISE_CMP_GT:
  case CUDNN_POINTWISE_CMP_GE:
  case CUDNN_POINTWISE_CMP_LT:
  case CUDNN_POINTWISE_CMP_LE:
  case CUDNN_POINTWISE_LOGICAL_AND:
  case CUDNN_POINTWISE_LOGICAL_OR:
    return MODE_BINARY;
  case CUDNN_POINTWISE_ABS:
  case CUDNN_POINTWISE_CEIL:
  case CUDNN_POINTWISE_COS:
  case CUDNN_POINTWISE_EXP:
  case CUDNN_POINTWISE_FLOOR:
  case CUDNN_POINTWISE_LOG:
  case CUDNN_POINTWISE_NEG:
  case CUDNN_POINTWISE_RSQRT:
  case CUDNN_POINTWISE_SIN:
  case CUDNN_POINTWISE_SQRT:
  case CUDNN_POINTWISE_TAN:
  case CUDNN_POINTWISE_ERF:
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_RECIPROCAL:
  case CUDNN_POINTWISE_RELU_FWD:
  case CUDNN_POINTWISE_TANH_FWD:
  case CUDNN_POINTWISE_SIGMOID_FWD:
  case CUDNN_POINTWISE_ELU_FWD:
  case CUDNN_POINTWISE_GELU_FWD:
  case CUDNN_POINTWISE_SOFTPLUS_FWD:
  case CUDNN_POINTWISE_SWISH_FWD:
  case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
  case CUDNN_POINTWISE_LOGICAL_NOT:
    return MODE_UNARY;
  case CUDNN_POINTWISE_RELU_BWD:
  case CUDNN_POINTWISE_TANH_BWD:
  case CUDNN_POINTWISE_SIGMOID_BWD:
  case CUDNN_POINTWISE_ELU_BWD:
  case CUDNN_POINTWISE_GELU_BWD:
  case CUDNN_POINTWISE_SOFTPLUS_BWD:
  case CUDNN_POINTWISE_SWISH_BWD:
  case CUDNN_POINTWISE_GELU_APPROX_TANH_BWD:
    return MODE_BACKWARD;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return MODE_SELECT;
  case CUDNN_POINTWISE_GEN_INDEX:
    return MODE_INDEX;
  }
  return MODE_UNKNOWN;
}

bool host_pointwise_is_known(int64_t mode) {
  return form(mode) != MODE_UNKNOWN;
}

#define RANK(op, name)                                                         \
  host_extents_of((op), CUDNN_ATTR_OPERATION_POINTWISE_##name).rank

static cudnnStatus_t check_backward(host_object_t *op) {
  int dx = RANK(op, DXDESC), t = RANK(op, TDESC);
  REFUSE_IF(dx != RANK(op, DYDESC), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(t == 0 && dx != RANK(op, XDESC), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(t != 0 && dx != t, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// Extents are not compared: engines judge what they broadcast.
cudnnStatus_t host_check_pointwise(host_object_t *op) {
  host_object_t *how =
      host_object_child(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  int64_t mode = CUDNN_POINTWISE_ADD, axis = -1;
  if (how) {
    mode = host_object_integer(how, CUDNN_ATTR_POINTWISE_MODE, mode);
    axis = host_object_integer(how, CUDNN_ATTR_POINTWISE_AXIS, axis);
  }
  pointwise_form_t as = form(mode);
  if (as == MODE_UNKNOWN)
    return CUDNN_STATUS_SUCCESS;
  if (as == MODE_BACKWARD)
    return check_backward(op);
  int x = RANK(op, XDESC), t = RANK(op, TDESC);
  REFUSE_IF(x != RANK(op, YDESC), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((as == MODE_BINARY || as == MODE_SELECT) && x != RANK(op, BDESC),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(as == MODE_SELECT && (t == 0 || t != x), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(as == MODE_INDEX && (axis < 0 || axis >= x),
            CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// One number for each product of the outermost dimension.
static bool is_one_of_each(host_extents_t count, const host_extents_t *c) {
  for (int i = 0; i < c->rank && count.rank == c->rank; i++)
    if (count.dim[i] != (i == 0 ? c->dim[0] : 1))
      return false;
  return count.rank == c->rank;
}

cudnnStatus_t host_check_matmul(host_object_t *op) {
  host_extents_t a = host_extents_of(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  host_extents_t b = host_extents_of(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  host_extents_t c = host_extents_of(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  int m = a.rank - 2, n = a.rank - 1;
  int64_t batches = host_object_integer(
      op, CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT, 1);
  REFUSE_IF(batches < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(a.rank != b.rank || a.rank != c.rank, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(m < 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(a.dim[n] != b.dim[m] || a.dim[m] != c.dim[m] ||
                b.dim[n] != c.dim[n],
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < m; i++) {
    int64_t more = a.dim[i] > b.dim[i] ? a.dim[i] : b.dim[i];
    int64_t less = a.dim[i] > b.dim[i] ? b.dim[i] : a.dim[i];
    REFUSE_IF(less == 0 ? more != 0 : more % less != 0, CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(c.dim[i] != more, CUDNN_STATUS_BAD_PARAM);
  }
  REFUSE_IF(batches != 1 && (a.dim[0] != 1 || b.dim[0] != 1 || c.dim[0] != 1),
            CUDNN_STATUS_BAD_PARAM);
  static const cudnnBackendAttributeName_t counts[] = {
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};
  for (int k = 0; k < 3; k++)
    REFUSE_IF(host_object_value(op, counts[k])->count > 0 &&
                  !is_one_of_each(host_extents_of(op, counts[k]), &c),
              CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_check_reduction(host_object_t *reduction) {
  int64_t how =
      host_object_integer(reduction, CUDNN_ATTR_REDUCTION_OPERATOR, -1);
  REFUSE_IF(how < 0 || how > CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(how > CUDNN_REDUCE_TENSOR_AMAX, CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

// 8 elements may become 4 sums.
cudnnStatus_t host_check_reduction_op(host_object_t *op) {
  host_extents_t x = host_extents_of(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  host_extents_t y = host_extents_of(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  REFUSE_IF(x.rank != y.rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < x.rank; i++)
    REFUSE_IF(y.dim[i] == 0 ? x.dim[i] != 0 : x.dim[i] % y.dim[i] != 0,
              CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// False if the product does not fit into 63 bits.
static bool elements(const host_extents_t *extents, int64_t *out) {
  *out = 1;
  for (int i = 0; i < extents->rank; i++)
    if (__builtin_mul_overflow(*out, extents->dim[i], out))
      return false;
  return true;
}

cudnnStatus_t host_check_reshape(host_object_t *op) {
  REFUSE_IF(!host_operand_final(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC) ||
                !host_operand_final(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC),
            CUDNN_STATUS_BAD_PARAM);
  host_extents_t x = host_extents_of(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  host_extents_t y = host_extents_of(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  int64_t x_elements = 0, y_elements = 0;
  REFUSE_IF(!elements(&x, &x_elements) || !elements(&y, &y_elements),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x_elements != y_elements, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_check_concat(host_object_t *op) {
  REFUSE_IF(!host_operand_final(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC),
            CUDNN_STATUS_BAD_PARAM);
  host_extents_t y =
      host_extents_of(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC);
  int64_t axis = host_object_integer(op, CUDNN_ATTR_OPERATION_CONCAT_AXIS, -1);
  const host_value_t *inputs = HOST_VALUE(op, OPERATION_CONCAT_INPUT_DESCS);
  REFUSE_IF(axis < 0 || axis >= y.rank, CUDNN_STATUS_BAD_PARAM);
  int64_t in_place =
      host_object_integer(op, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, -1);
  REFUSE_IF(in_place < -1 || in_place >= inputs->count, CUDNN_STATUS_BAD_PARAM);
  int64_t sum = 0;
  for (int64_t i = 0; i < inputs->count; i++) {
    const host_object_t *input = inputs->slot[i].object;
    host_extents_t x = host_extents(input);
    REFUSE_IF(!input || !input->finalized || x.rank != y.rank,
              CUDNN_STATUS_BAD_PARAM);
    for (int j = 0; j < y.rank; j++)
      REFUSE_IF(j != axis && x.dim[j] != y.dim[j], CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(__builtin_add_overflow(sum, x.dim[axis], &sum),
              CUDNN_STATUS_BAD_PARAM);
  }
  REFUSE_IF(y.dim[axis] != sum, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

static double first_real(host_object_t *object,
                         cudnnBackendAttributeName_t name) {
  const host_value_t *value = host_object_value(object, name);
  return value->count > 0 ? value->slot[0].real : -1;
}

cudnnStatus_t host_check_rng(host_object_t *rng) {
  double probability =
      first_real(rng, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
  double deviation =
      first_real(rng, CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION);
  switch ((int)host_object_integer(rng, CUDNN_ATTR_RNG_DISTRIBUTION,
                                   CUDNN_RNG_DISTRIBUTION_BERNOULLI)) {
  case CUDNN_RNG_DISTRIBUTION_BERNOULLI:
    REFUSE_IF(!(probability >= 0.0 && probability <= 1.0),
              CUDNN_STATUS_BAD_PARAM);
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_RNG_DISTRIBUTION_UNIFORM:
    REFUSE_IF(first_real(rng, CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM) <
                  first_real(rng, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM),
              CUDNN_STATUS_BAD_PARAM);
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_RNG_DISTRIBUTION_NORMAL:
    REFUSE_IF(deviation < 0.0, CUDNN_STATUS_BAD_PARAM);
    return CUDNN_STATUS_SUCCESS;
  }
  return host_refuse(CUDNN_STATUS_BAD_PARAM, "unknown distribution");
}

// One number in memory.
static bool is_single(host_object_t *tensor) {
  host_extents_t extents = host_extents(tensor);
  for (int i = 0; i < extents.rank; i++)
    if (extents.dim[i] != 1 ||
        host_list_at(tensor, CUDNN_ATTR_TENSOR_STRIDES, i, 1) != 1)
      return false;
  return true;
}

cudnnStatus_t host_check_rng_op(host_object_t *op) {
  host_object_t *seed = host_object_child(op, CUDNN_ATTR_OPERATION_RNG_SEED);
  host_object_t *offset =
      host_object_child(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC);
  REFUSE_IF(seed && !is_single(seed), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(offset && !is_single(offset), CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}
