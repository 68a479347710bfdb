// SPDX-License-Identifier: Apache-2.0
// A piece of attention as a plan of cuDNN, and its executions.
#include "rules/graph/attention/piece.h"

#include <stdlib.h>
#include <string.h>

#include "rules/graph/attention/state.h"
#include "rules/graph/nodes.h"
#include "src/base/vendor.h"

enum { SCALE_BYTES = 8, ALIGNED = 256 };

typedef struct sdg_attention_parts {
  sdg_attention_state_t state;
  sdg_graph_piece_t piece; // its slots are tensors of the state's graph
  // Offsets in the workspace; DQ_SUM is as long as told.
  size_t delta_at, dq_sum_at, dq_sum_bytes;
  size_t scale_bytes;
  char scale[SCALE_BYTES]; // of the last run
} parts_t;

// ---- memory ----------------------------------------------------------------

static size_t aligned(size_t bytes) {
  return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static size_t bytes_of(const sdg_attention_state_t *state, int t) {
  if (t < 0)
    return 0;
  const sdg_graph_tensor_t *tensor = &state->graph->tensor[t];
  size_t bytes = sdg_graph_type_bytes(tensor->type);
  for (int d = 0; d < tensor->rank; d++)
    bytes *= (size_t)tensor->dim[d];
  return bytes;
}

static size_t workspace_divide(parts_t *parts) {
  const sdg_attention_state_t *state = &parts->state;
  parts->delta_at = aligned(parts->piece.workspace_bytes);
  parts->dq_sum_at =
      parts->delta_at +
      aligned(bytes_of(state, state->tensor[SDG_COMPOSITE_DELTA]));
  parts->dq_sum_bytes = bytes_of(state, state->tensor[SDG_COMPOSITE_DQ_SUM]);
  return parts->dq_sum_at + aligned(parts->dq_sum_bytes);
}

// ---- the plan --------------------------------------------------------------

static cudnnBackendDescriptor_t graph_make(sdg_graph_descriptors_t *m,
                                           const sdg_graph_t *graph,
                                           sdg_graph_piece_t *piece,
                                           cudnnBackendDescriptor_t *tensor,
                                           cudnnBackendDescriptor_t *op) {
  for (int t = 0; t < graph->tensor_count; t++) {
    const sdg_graph_tensor_t *from = &graph->tensor[t];
    sdg_graph_shape_t shape = {.type = from->type,
                               .is_virtual = from->is_virtual,
                               .alignment = from->alignment};
    memcpy(shape.dim, from->dim, sizeof *shape.dim * (size_t)from->rank);
    memcpy(shape.stride, from->stride,
           sizeof *shape.stride * (size_t)from->rank);
    tensor[t] = sdg_graph_tensor_make(m, from, &shape, 0, from->uid);
    if (from->is_virtual)
      continue;
    piece->uid[piece->slots] = from->uid;
    piece->slot[piece->slots++] = (sdg_graph_slot_t){t, SDG_GRAPH_LEVEL_X};
  }
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    cudnnBackendDescriptor_t operand[CUDNN_DIM_MAX];
    for (int i = 0; i < node->operand_count; i++)
      operand[i] = tensor[node->operand[i].tensor];
    op[n] = sdg_graph_node_make(m, node, NULL, operand);
  }
  return sdg_graph_of_ops(m, graph->node_count, op);
}

static sdg_status_t plan_make(parts_t *parts, const sdg_call_t *call,
                              int *out_refusal) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(call);
  const sdg_graph_t *graph = parts->state.graph;
  sdg_graph_descriptors_t m = {.cudnn = sdg_cudnn_get(),
                               .handle =
                                   (cudnnHandle_t)(uintptr_t)call->handle};
  cudnnBackendDescriptor_t *made;
  int64_t bytes = 0;
  SDG_TRY(SDG_ALLOCATE(made, (size_t)(graph->tensor_count + graph->node_count),
                       "a piece of attention"));
  cudnnBackendDescriptor_t of_ops =
      graph_make(&m, graph, &parts->piece, made, made + graph->tensor_count);
  parts->piece.plan = sdg_graph_plan_like(&m, of_ops, execution->plan,
                                          execution->config, &bytes);
  parts->piece.workspace_bytes = (size_t)bytes;
  *out_refusal = (int)m.status;
  sdg_graph_descriptors_fini(&m, parts->piece.plan);
  free(made);
  return SDG_OK;
}

static sdg_status_t parts_make(const sdg_attention_shape_t *shape,
                               const sdg_call_t *call, parts_t *parts,
                               int *out_refusal) {
  SDG_TRY(sdg_attention_state_init(shape, &parts->state));
  if (parts->state.scale >= 0)
    parts->scale_bytes = sdg_graph_type_bytes(shape->scale_type);
  if (parts->scale_bytes > SCALE_BYTES) {
    *out_refusal = CUDNN_STATUS_BAD_PARAM;
    return SDG_OK;
  }
  return plan_make(parts, call, out_refusal);
}

sdg_status_t sdg_attention_piece_create(const sdg_attention_shape_t *shape,
                                        const sdg_call_t *call,
                                        sdg_attention_piece_t **out,
                                        int *out_refusal) {
  sdg_attention_piece_t *piece;
  *out = NULL;
  *out_refusal = 0;
  SDG_TRY(SDG_ALLOCATE(piece, 1, "a piece of attention"));
  sdg_status_t status = SDG_ALLOCATE(piece->parts, 1, "a piece of attention");
  if (status == SDG_OK)
    status = parts_make(shape, call, piece->parts, out_refusal);
  if (status == SDG_OK && !*out_refusal) {
    piece->workspace_bytes = workspace_divide(piece->parts);
    *out = piece;
    return SDG_OK;
  }
  sdg_attention_piece_destroy(piece);
  return status;
}

void sdg_attention_piece_destroy(sdg_attention_piece_t *piece) {
  if (!piece)
    return;
  if (piece->parts) {
    sdg_graph_piece_fini(&piece->parts->piece);
    sdg_attention_state_fini(&piece->parts->state);
  }
  free(piece->parts);
  free(piece);
}

// ---- executions ------------------------------------------------------------

static void *pointer_of(parts_t *parts, int t,
                        void *const pointer[SDG_COMPOSITE_ROLES],
                        char *workspace) {
  sdg_attention_state_t *state = &parts->state;
  if (t == state->scale)
    return parts->scale;
  for (int i = 0; i < state->numbers; i++)
    if (state->number[i] == t)
      return &state->value[i];
  if (t == state->tensor[SDG_COMPOSITE_DELTA])
    return workspace + parts->delta_at;
  if (t == state->tensor[SDG_COMPOSITE_DQ_SUM])
    return workspace + parts->dq_sum_at;
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    if (state->tensor[role] == t)
      return pointer[role];
  return NULL;
}

static int sum_clear(const parts_t *parts, cudnnHandle_t handle,
                     char *workspace) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaStream_t stream;
  cudnnStatus_t status = sdg_cudnn_get()->cudnnGetStream(handle, &stream);
  if (status)
    return (int)status;
  return cuda && cuda->cudaMemsetAsync(workspace + parts->dq_sum_at, 0,
                                       parts->dq_sum_bytes,
                                       stream) == cudaSuccess
             ? (int)CUDNN_STATUS_SUCCESS
             : (int)CUDNN_STATUS_EXECUTION_FAILED;
}

int sdg_attention_piece_run(sdg_attention_piece_t *piece, cudnnHandle_t handle,
                            void *const pointer[SDG_COMPOSITE_ROLES],
                            const void *scale, void *workspace) {
  parts_t *parts = piece->parts;
  void *slot[SDG_GRAPH_SLOTS_MAX];
  if (parts->scale_bytes && memcmp(parts->scale, scale, parts->scale_bytes)) {
    // cuDNN may read a number when a variant pack is made.
    sdg_graph_piece_forget(&parts->piece);
    memcpy(parts->scale, scale, parts->scale_bytes);
  }
  for (int i = 0; i < parts->piece.slots; i++)
    slot[i] = pointer_of(parts, parts->piece.slot[i].tensor, pointer,
                         (char *)workspace);
  int status = parts->dq_sum_bytes ? sum_clear(parts, handle, workspace) : 0;
  return status ? status
                : sdg_graph_piece_run(&parts->piece, handle, slot, workspace);
}
