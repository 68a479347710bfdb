// SPDX-License-Identifier: Apache-2.0
// Rebuilds a graph through cuDNN's backend API.
#include "rules/graph/piece.h"

#include <stdlib.h>
#include <string.h>

#include "rules/graph/nodes.h"
#include "rules/vendor/vendor.h"

typedef sdg_graph_descriptors_t maker_t;

// ---- parts -----------------------------------------------------------------

static bool has_node(const sdg_graph_extents_t *extents, int n, int level) {
  const sdg_graph_pattern_t *p = extents->pattern;
  bool front = level == SDG_GRAPH_LEVEL_X;
  bool behind = n != p->main && (p->node_levels[n] & SDG_GRAPH_AFTER);
  if (!(p->node_levels[n] >> level & 1))
    return false;
  switch (extents->part) {
  case SDG_GRAPH_ALL:
    return true;
  case SDG_GRAPH_PROLOGUE:
    return front;
  case SDG_GRAPH_REST:
    return !front;
  case SDG_GRAPH_TERMS:
    return n == p->main || level != (int)p->after;
  case SDG_GRAPH_EPILOGUE:
    // Ops on what is added to the result stand behind the main op, too.
    return behind || (n != p->main && level == (int)p->after);
  }
  return false;
}

// Whether an op of the piece uses the tensor on this level; the main op has
// operands on other levels than its own.
static bool is_used(const sdg_graph_extents_t *extents, int t, int level) {
  const sdg_graph_pattern_t *p = extents->pattern;
  for (int n = 0; n < p->graph->node_count; n++) {
    const sdg_graph_node_t *node = &p->graph->node[n];
    for (int i = 0; i < node->operand_count; i++) {
      bool on = n != p->main ||
                (int)sdg_graph_main_level(p, node->operand[i].name) == level;
      if (node->operand[i].tensor == t && on &&
          has_node(extents, n, n == p->main ? (int)p->after : level))
        return true;
    }
  }
  return false;
}

static bool has_tensor(const sdg_graph_extents_t *extents, int t, int level) {
  const sdg_graph_pattern_t *p = extents->pattern;
  bool front = level == SDG_GRAPH_LEVEL_X;
  if (!(p->tensor_levels[t] >> level & 1))
    return false;
  if (sdg_graph_normalises(p)) // all that is between parts is in memory
    return is_used(extents, t, level);
  switch (extents->part) {
  case SDG_GRAPH_ALL:
    return true;
  case SDG_GRAPH_PROLOGUE:
  case SDG_GRAPH_REST:
    return front == (extents->part == SDG_GRAPH_PROLOGUE) ||
           (front && t == p->tensor[SDG_GRAPH_LEVEL_X]);
  case SDG_GRAPH_TERMS:
    return level != (int)p->after || t == p->tensor[p->after];
  case SDG_GRAPH_EPILOGUE:
    return level == (int)p->after;
  }
  return false;
}

// ---- tensors ---------------------------------------------------------------

static int64_t uid_of(int t, int level) {
  return 1 + (int64_t)t * SDG_GRAPH_LEVELS + level;
}

// ---- ops -------------------------------------------------------------------

// One op on tensors of `level`; the main op on its own levels.
static cudnnBackendDescriptor_t
op_make(maker_t *m, const sdg_graph_extents_t *extents, int n, int level,
        cudnnBackendDescriptor_t (*tensor)[SDG_GRAPH_LEVELS]) {
  const sdg_graph_pattern_t *p = extents->pattern;
  const sdg_graph_node_t *node = &p->graph->node[n];
  bool windowed =
      n == p->main && p->kind != SDG_GRAPH_PRODUCT && !sdg_graph_normalises(p);
  sdg_graph_window_t window = {extents->pre, extents->post, p->spatial,
                               sdg_graph_mixes(p)
                                   ? CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS
                                   : CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS};
  cudnnBackendDescriptor_t operand[CUDNN_DIM_MAX * 4];
  if (node->operand_count > (int)(sizeof operand / sizeof *operand))
    m->status = CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < node->operand_count && !m->status; i++) {
    int of = level;
    if (n == p->main)
      of = (int)sdg_graph_main_level(p, node->operand[i].name);
    operand[i] = tensor[node->operand[i].tensor][of];
  }
  return sdg_graph_node_make(m, node, windowed ? &window : NULL, operand);
}

// ---- the graph -------------------------------------------------------------

static void tensors_make(maker_t *m, const sdg_graph_extents_t *extents,
                         cudnnBackendDescriptor_t (*tensor)[SDG_GRAPH_LEVELS],
                         sdg_graph_piece_t *piece) {
  const sdg_graph_pattern_t *p = extents->pattern;
  for (int t = 0; t < p->graph->tensor_count; t++)
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++) {
      if (!has_tensor(extents, t, level))
        continue;
      int64_t uid = uid_of(t, level);
      tensor[t][level] =
          sdg_graph_tensor_make(m, &p->graph->tensor[t],
                                &extents->shape[t][level], extents->rank, uid);
      if (extents->shape[t][level].is_virtual)
        continue;
      if (piece->slots == SDG_GRAPH_SLOTS_MAX) {
        m->status = CUDNN_STATUS_NOT_SUPPORTED;
        return;
      }
      piece->uid[piece->slots] = uid;
      piece->slot[piece->slots++] =
          (sdg_graph_slot_t){t, (sdg_graph_level_t)level};
    }
}

static cudnnBackendDescriptor_t graph_make(maker_t *m,
                                           const sdg_graph_extents_t *extents,
                                           sdg_graph_piece_t *piece) {
  const sdg_graph_pattern_t *p = extents->pattern;
  cudnnBackendDescriptor_t tensor[SDG_GRAPH_TENSORS_MAX][SDG_GRAPH_LEVELS];
  cudnnBackendDescriptor_t op[SDG_GRAPH_SLOTS_MAX];
  int64_t ops = 0;
  tensors_make(m, extents, tensor, piece);
  for (int n = 0; n < p->graph->node_count; n++)
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++) {
      if (!has_node(extents, n, level))
        continue;
      if (ops == SDG_GRAPH_SLOTS_MAX)
        m->status = CUDNN_STATUS_NOT_SUPPORTED;
      else
        op[ops++] = op_make(m, extents, n, level, tensor);
    }
  return sdg_graph_of_ops(m, ops, op);
}

sdg_status_t sdg_graph_piece_create(const sdg_graph_extents_t *extents,
                                    const sdg_call_t *call,
                                    sdg_graph_piece_t **out, int *out_refusal) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(call);
  sdg_graph_piece_t *piece;
  *out = NULL;
  SDG_TRY(SDG_ALLOCATE(piece, 1, "a graph's piece"));
  maker_t m = {.cudnn = sdg_cudnn_get(),
               .handle = (cudnnHandle_t)(uintptr_t)call->handle};
  cudnnBackendDescriptor_t graph = graph_make(&m, extents, piece);
  int64_t bytes = 0;
  piece->plan = sdg_graph_plan_like(&m, graph, execution->plan,
                                    execution->config, &bytes);
  piece->workspace_bytes = (size_t)bytes;
  *out_refusal = (int)m.status;
  sdg_graph_descriptors_fini(&m, piece->plan);
  if (!*out_refusal) {
    *out = piece;
    return SDG_OK;
  }
  sdg_graph_piece_destroy(piece);
  return SDG_OK;
}

void sdg_graph_piece_fini(sdg_graph_piece_t *piece) {
  sdg_graph_piece_forget(piece);
  if (piece->plan)
    (void)sdg_cudnn_get()->cudnnBackendDestroyDescriptor(piece->plan);
  piece->plan = NULL;
}

void sdg_graph_piece_destroy(sdg_graph_piece_t *piece) {
  if (piece)
    sdg_graph_piece_fini(piece);
  free(piece);
}

// ---- executions ------------------------------------------------------------

void sdg_graph_piece_forget(sdg_graph_piece_t *piece) {
  if (piece->pack)
    (void)sdg_cudnn_get()->cudnnBackendDestroyDescriptor(piece->pack);
  piece->pack = NULL;
}

static cudnnStatus_t pack_make(sdg_graph_piece_t *piece, void *const *pointer,
                               void *workspace) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  maker_t m = {.cudnn = cudnn};
  sdg_graph_piece_forget(piece);
  piece->pack = sdg_graph_make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
#define SET(name, type, count, at)                                             \
  sdg_graph_set(&m, piece->pack, CUDNN_ATTR_VARIANT_PACK_##name,               \
                CUDNN_TYPE_##type, count, at)
  SET(UNIQUE_IDS, INT64, piece->slots, piece->uid);
  SET(DATA_POINTERS, VOID_PTR, piece->slots, pointer);
  SET(WORKSPACE, VOID_PTR, 1, &workspace);
#undef SET
  sdg_graph_finalize(&m, piece->pack);
  cudnnStatus_t status = m.status;
  sdg_graph_descriptors_fini(&m, status ? NULL : piece->pack);
  if (status) {
    piece->pack = NULL;
    return status;
  }
  memcpy(piece->pointer, pointer, sizeof *pointer * (size_t)piece->slots);
  piece->workspace = workspace;
  return status;
}

int sdg_graph_piece_run(sdg_graph_piece_t *piece, cudnnHandle_t handle,
                        void *const *pointer, void *workspace) {
  bool same = piece->pack && piece->workspace == workspace &&
              memcmp(piece->pointer, pointer,
                     sizeof *pointer * (size_t)piece->slots) == 0;
  cudnnStatus_t status =
      same ? CUDNN_STATUS_SUCCESS : pack_make(piece, pointer, workspace);
  if (!status)
    status =
        sdg_cudnn_get()->cudnnBackendExecute(handle, piece->plan, piece->pack);
  return (int)status;
}
