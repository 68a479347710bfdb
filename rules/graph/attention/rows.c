// SPDX-License-Identifier: Apache-2.0
// Builds graphs of pointwise ops on rows, and runs them.
#include "rules/graph/attention/rows.h"

#include <stdlib.h>

#include "rules/graph/nodes.h"

typedef sdg_graph_descriptors_t maker_t;
typedef cudnnBackendDescriptor_t descriptor_t;

// What a plan stores for one graph: its plan, and where its tensors are.
typedef struct stored {
  sdg_graph_piece_t *piece;
  int slab[SDG_ROWS_TENSORS]; // -1: a number by value
  sdg_box_t box[SDG_ROWS_TENSORS];
  float value[SDG_ROWS_TENSORS];
} stored_t;

static void stored_destroy(void *op) {
  stored_t *stored = op;
  sdg_graph_piece_destroy(stored->piece);
  free(stored);
}

static cudnnStatus_t stored_run(const sdg_subcall_run_t *run) {
  stored_t *stored = run->op;
  void *pointer[SDG_ROWS_TENSORS];
  for (int i = 0; i < stored->piece->slots; i++)
    pointer[i] =
        stored->slab[i] < 0
            ? &stored->value[i]
            : sdg_exec_element(run->exec, stored->slab[i], &stored->box[i]);
  return sdg_graph_piece_run(stored->piece, run->handle, pointer,
                             run->workspace);
}

static descriptor_t tensor_make(maker_t *m, const sdg_rows_t *rows, int t) {
  const sdg_rows_tensor_t *tensor = &rows->tensor[t];
  sdg_graph_tensor_t like = {.is_by_value = tensor->by_value};
  cudnnDataType_t type = (cudnnDataType_t)tensor->type;
  int64_t columns = tensor->column ? 1 : rows->columns;
  int64_t count = tensor->by_value ? 1 : rows->rows;
  int64_t bytes = columns * (int64_t)sdg_graph_type_bytes(type);
  sdg_graph_shape_t shape = {
      .type = type,
      .is_virtual = tensor->slab < 0 && !tensor->by_value,
      .dim = {1, count, columns},
      .stride = {count * columns, columns, 1},
      .alignment = bytes % 16 ? 4 : 16, // a box may begin at any row
  };
  return sdg_graph_tensor_make(m, &like, &shape, 3, t + 1);
}

static descriptor_t op_make(maker_t *m, const sdg_rows_op_t *op,
                            const descriptor_t *tensor) {
  cudnnDataType_t math = CUDNN_DATA_FLOAT;
  descriptor_t how = sdg_graph_make(m, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  sdg_graph_set(m, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
                &op->mode);
  sdg_graph_set(m, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
                &math);
  sdg_graph_finalize(m, how);
  descriptor_t d =
      sdg_graph_make(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
#define SET(name, at)                                                          \
  sdg_graph_set(m, d, CUDNN_ATTR_OPERATION_POINTWISE_##name,                   \
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, at)
  SET(PW_DESCRIPTOR, &how);
  SET(XDESC, &tensor[op->x]);
  if (op->b >= 0)
    SET(BDESC, &tensor[op->b]);
  SET(YDESC, &tensor[op->y]);
#undef SET
  sdg_graph_finalize(m, d);
  return d;
}

static descriptor_t graph_make(maker_t *m, const sdg_rows_t *rows) {
  descriptor_t tensor[SDG_ROWS_TENSORS], op[SDG_ROWS_OPS];
  for (int t = 0; t < rows->tensors; t++)
    tensor[t] = tensor_make(m, rows, t);
  for (int i = 0; i < rows->ops; i++)
    op[i] = op_make(m, &rows->op[i], tensor);
  return sdg_graph_of_ops(m, rows->ops, op);
}

sdg_status_t sdg_rows_add(sdg_plan_t *plan, const sdg_call_t *call,
                          const sdg_rows_t *rows, int *io_refusal) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(call);
  maker_t m = {.cudnn = sdg_cudnn_get(),
               .handle = (cudnnHandle_t)(uintptr_t)call->handle};
  stored_t *stored;
  int64_t bytes = 0;
  SDG_TRY(SDG_ALLOCATE(stored, 1, "a plan"));
  sdg_status_t status = SDG_ALLOCATE(stored->piece, 1, "a plan");
  if (status != SDG_OK) {
    free(stored);
    return status;
  }
  sdg_graph_piece_t *piece = stored->piece;
  piece->plan = sdg_graph_plan_like(&m, graph_make(&m, rows), execution->plan,
                                    execution->config, &bytes);
  sdg_graph_descriptors_fini(&m, piece->plan);
  if (m.status) {
    *io_refusal = (int)m.status;
    stored_destroy(stored);
    return SDG_OK;
  }
  for (int t = 0; t < rows->tensors; t++) {
    if (rows->tensor[t].slab < 0 && !rows->tensor[t].by_value)
      continue;
    stored->slab[piece->slots] = rows->tensor[t].slab;
    stored->value[piece->slots] = rows->tensor[t].value;
    stored->box[piece->slots] = rows->tensor[t].box;
    piece->uid[piece->slots++] = t + 1;
  }
  sdg_subcall_t sub = {.fn = stored_run,
                       .op = stored,
                       .op_destroy = stored_destroy,
                       .workspace_bytes = (size_t)bytes};
  return sdg_subcall_add(plan, &sub);
}
