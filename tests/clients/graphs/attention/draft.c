// SPDX-License-Identifier: Apache-2.0
// Operations of a graph that is being written, in calls of cuDNN's backend API.
#include "tests/clients/graphs/attention/draft.h"

// ---- tensors ---------------------------------------------------------------

static int tensor_add(draft_t *d, cudnnDataType_t type, const int64_t *dim,
                      const int64_t *stride, bool is_virtual, bool by_value) {
  int t = d->tensors++;
  int64_t uid = t + 100, alignment = 16;
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, DIMS, dim);
  BUILD_SET(made, TENSOR_STRIDES, INT64, DIMS, stride);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
  BUILD_SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &by_value);
  CHECK(cudnnBackendFinalize(made));
  d->tensor[t] = made;
  memcpy(d->dim[t], dim, sizeof d->dim[t]);
  return t;
}

static void pointer_add(draft_t *d, int t, void *pointer) {
  d->uid[d->count] = t + 100;
  d->pointer[d->count++] = pointer;
}

int draft_array(draft_t *d, const array_t *a, bool turned) {
  int64_t dim[DIMS], stride[DIMS];
  for (int i = 0; i < DIMS; i++) {
    int from = turned && i >= ROWS ? ROWS + DEPTH - i : i;
    dim[i] = a->dim[from];
    stride[i] = a->stride[from];
  }
  int t = tensor_add(d, a->type, dim, stride, false, false);
  pointer_add(d, t, a->device);
  return t;
}

int draft_virtual(draft_t *d, cudnnDataType_t type, const int64_t dim[DIMS],
                  const int64_t *stride) {
  const int64_t dense[] = {dim[HEADS] * dim[ROWS] * dim[DEPTH],
                           dim[ROWS] * dim[DEPTH], dim[DEPTH], 1};
  return tensor_add(d, type, dim, stride ? stride : dense, true, false);
}

int draft_number(draft_t *d, cudnnDataType_t type, double value) {
  static const int64_t one[] = {1, 1, 1, 1};
  int t = tensor_add(d, type, one, one, false, true);
  float single = (float)value;
  int32_t whole = type == CUDNN_DATA_INT32 ? (int32_t)value : 0;
  memcpy(&d->number[t], type == CUDNN_DATA_INT32 ? (void *)&whole : &single,
         sizeof single);
  pointer_add(d, t, &d->number[t]);
  return t;
}

// ---- operations ------------------------------------------------------------

void draft_add(draft_t *d, build_t op, const int *read, int reads, int y) {
  CHECK(cudnnBackendFinalize(op));
  CHECK(d->ops == DRAFT_OPS || d->tensors == DRAFT_TENSORS);
  draft_op_t *made = &d->op[d->ops++];
  *made = (draft_op_t){.op = op, .reads = reads, .y = y};
  for (int i = 0; i < reads; i++)
    made->read[i] = read[i];
}

void draft_pointwise(draft_t *d, cudnnPointwiseMode_t mode,
                     cudnnDataType_t compute, int x, int b, int t, int axis,
                     int y) {
  build_t how = build_create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  build_t op = build_create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  const int64_t along = axis;
  BUILD_SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  BUILD_SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &compute);
  if (axis >= 0)
    BUILD_SET(how, POINTWISE_AXIS, INT64, 1, &along);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  BUILD_GIVE(op, OPERATION_POINTWISE_XDESC, d->tensor[x]);
  if (b >= 0)
    BUILD_GIVE(op, OPERATION_POINTWISE_BDESC, d->tensor[b]);
  if (t >= 0)
    BUILD_GIVE(op, OPERATION_POINTWISE_TDESC, d->tensor[t]);
  BUILD_GIVE(op, OPERATION_POINTWISE_YDESC, d->tensor[y]);
  draft_add(d, op, (const int[]){x, b, t}, 3, y);
  build_destroy(how);
}

void draft_reduction(draft_t *d, cudnnReduceTensorOp_t mode, int x, int y) {
  build_t how = build_create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  build_t op = build_create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &mode);
  BUILD_SET(how, REDUCTION_COMP_TYPE, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_REDUCTION_DESC, how);
  BUILD_GIVE(op, OPERATION_REDUCTION_XDESC, d->tensor[x]);
  BUILD_GIVE(op, OPERATION_REDUCTION_YDESC, d->tensor[y]);
  draft_add(d, op, &x, 1, y);
  build_destroy(how);
}

void draft_matmul(draft_t *d, int a, int b, int c, const int limit[3]) {
  build_t how = build_create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  build_t op = build_create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int read[] = {a, b, -1, -1, -1};
  BUILD_SET(how, MATMUL_COMP_TYPE, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_MATMUL_DESC, how);
  BUILD_GIVE(op, OPERATION_MATMUL_ADESC, d->tensor[a]);
  BUILD_GIVE(op, OPERATION_MATMUL_BDESC, d->tensor[b]);
  BUILD_GIVE(op, OPERATION_MATMUL_CDESC, d->tensor[c]);
  if (limit)
    memcpy(read + 2, limit, 3 * sizeof *limit);
  if (read[2] >= 0)
    BUILD_GIVE(op, OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, d->tensor[read[2]]);
  if (read[3] >= 0)
    BUILD_GIVE(op, OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, d->tensor[read[3]]);
  if (read[4] >= 0)
    BUILD_GIVE(op, OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, d->tensor[read[4]]);
  draft_add(d, op, read, 5, c);
  build_destroy(how);
}

void draft_reshape(draft_t *d, int x, int y) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  BUILD_GIVE(op, OPERATION_RESHAPE_XDESC, d->tensor[x]);
  BUILD_GIVE(op, OPERATION_RESHAPE_YDESC, d->tensor[y]);
  draft_add(d, op, &x, 1, y);
}

// ---- graphs ----------------------------------------------------------------

// Whether an operation that is not in the graph yet writes what `op` reads.
static bool waits(const draft_t *d, const bool *is_done, const draft_op_t *op) {
  for (int i = 0; i < d->ops; i++)
    for (int k = 0; k < op->reads && !is_done[i]; k++)
      if (op->read[k] >= 0 && op->read[k] == d->op[i].y)
        return true;
  return false;
}

build_t draft_graph(draft_t *d, cudnnHandle_t handle, bool shuffle) {
  build_t op[DRAFT_OPS];
  bool is_done[DRAFT_OPS] = {false};
  for (int n = 0; n < d->ops; n++) {
    int ready[DRAFT_OPS], count = 0;
    for (int i = 0; i < d->ops; i++)
      if (!is_done[i] && !waits(d, is_done, &d->op[i]))
        ready[count++] = i;
    int next = ready[shuffle ? draw_in(0, count - 1) : 0];
    is_done[next] = true;
    op[n] = d->op[next].op;
  }
  build_t graph = build_graph(handle, op, d->ops);
  for (int t = 0; t < d->tensors; t++)
    build_destroy(d->tensor[t]);
  return graph;
}
