// SPDX-License-Identifier: Apache-2.0
// Operations of a graph that is being written, in calls of cuDNN's backend API.
#include "tests/clients/graphs/attention/draft.h"

#include <string.h>

// ---- tensors ---------------------------------------------------------------

static int tensor_add(draft_t *d, cudnnDataType_t type, const int64_t *dim,
                      const int64_t *stride, build_place_t place) {
  int t = d->tensors++;
  d->tensor[t] = build_strided(t + 100, type, DIMS, dim, stride, place);
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
  int t = tensor_add(d, a->type, dim, stride, BUILD_REAL);
  pointer_add(d, t, a->device);
  return t;
}

int draft_virtual(draft_t *d, cudnnDataType_t type, const int64_t dim[DIMS],
                  const int64_t *stride) {
  const int64_t dense[] = {dim[HEADS] * dim[ROWS] * dim[DEPTH],
                           dim[ROWS] * dim[DEPTH], dim[DEPTH], 1};
  return tensor_add(d, type, dim, stride ? stride : dense, BUILD_VIRTUAL);
}

int draft_number(draft_t *d, cudnnDataType_t type, double value) {
  static const int64_t one[] = {1, 1, 1, 1};
  int t = tensor_add(d, type, one, one, BUILD_BY_VALUE);
  float single = (float)value;
  int32_t whole = type == CUDNN_DATA_INT32 ? (int32_t)value : 0;
  memcpy(&d->number[t], type == CUDNN_DATA_INT32 ? (void *)&whole : &single,
         sizeof single);
  d->by_value[d->count] = true;
  pointer_add(d, t, &d->number[t]);
  return t;
}

// ---- operations ------------------------------------------------------------

void draft_add(draft_t *d, build_t op, const int *read, int reads, int y) {
  CHECK(d->ops == DRAFT_OPS || d->tensors == DRAFT_TENSORS);
  draft_op_t *made = &d->op[d->ops++];
  *made = (draft_op_t){.op = op, .reads = reads, .y = y};
  for (int i = 0; i < reads; i++)
    made->read[i] = read[i];
}

static build_t tensor_or_none(const draft_t *d, int t) {
  return t < 0 ? NULL : d->tensor[t];
}

void draft_pointwise(draft_t *d, cudnnPointwiseMode_t mode,
                     cudnnDataType_t compute, int x, int b, int t, int axis,
                     int y) {
  build_t op = build_pointwise_as(mode, compute, axis, d->tensor[x],
                                  tensor_or_none(d, b), tensor_or_none(d, t),
                                  d->tensor[y]);
  draft_add(d, op, (const int[]){x, b, t}, 3, y);
}

void draft_reduction(draft_t *d, cudnnReduceTensorOp_t mode, int x, int y) {
  draft_add(d, build_reduction(mode, d->tensor[x], d->tensor[y]), &x, 1, y);
}

void draft_matmul(draft_t *d, int a, int b, int c, const int limit[3]) {
  int read[] = {a, b, -1, -1, -1};
  if (limit)
    memcpy(read + 2, limit, 3 * sizeof *limit);
  const build_t within[] = {tensor_or_none(d, read[2]),
                            tensor_or_none(d, read[3]),
                            tensor_or_none(d, read[4])};
  build_t op =
      build_product_within(d->tensor[a], d->tensor[b], d->tensor[c], within);
  draft_add(d, op, read, 5, c);
}

void draft_reshape(draft_t *d, int x, int y) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  BUILD_GIVE(op, OPERATION_RESHAPE_XDESC, d->tensor[x]);
  BUILD_GIVE(op, OPERATION_RESHAPE_YDESC, d->tensor[y]);
  CHECK(cudnnBackendFinalize(op));
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

// One of `count` numbers from 0, at random.
static int pick(uint64_t *io_state, int count) {
  uint64_t z = *io_state += 0x9e3779b97f4a7c15U; // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return (int)((z ^ (z >> 31)) % (uint64_t)count);
}

build_t draft_graph(draft_t *d, cudnnHandle_t handle, uint64_t seed) {
  build_t op[DRAFT_OPS];
  bool is_done[DRAFT_OPS] = {false};
  for (int n = 0; n < d->ops; n++) {
    int ready[DRAFT_OPS], count = 0;
    for (int i = 0; i < d->ops; i++)
      if (!is_done[i] && !waits(d, is_done, &d->op[i]))
        ready[count++] = i;
    int next = ready[seed ? pick(&seed, count) : 0];
    is_done[next] = true;
    op[n] = d->op[next].op;
  }
  build_t graph = build_graph(handle, op, d->ops);
  for (int t = 0; t < d->tensors; t++)
    build_destroy(d->tensor[t]);
  return graph;
}
