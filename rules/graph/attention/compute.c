// SPDX-License-Identifier: Apache-2.0
// The program's tensors of attention, and the sub-call that computes one piece.
#include <stdlib.h>

#include "rules/graph/attention/attention.h"
#include "rules/kit/subcall.h"

enum {
  BATCH = SDG_HEADED_BATCH,
  HEADS = SDG_HEADED_HEADS,
  SEQ = SDG_HEADED_SEQ,
  VECTOR = SDG_HEADED_VECTOR,
  DIMS = SDG_HEADED_DIMS
};

typedef sdg_graph_attention_view_t view_t;

// What a plan stores: the piece, and where its tensors are.
typedef struct stored {
  sdg_attention_piece_t *piece;
  int scale; // tensor of the program's graph; -1: none
  int slab[SDG_COMPOSITE_ROLES];
  sdg_box_t box[SDG_COMPOSITE_ROLES];
} stored_t;

static cudnnStatus_t stored_run(const sdg_subcall_run_t *run) {
  const stored_t *stored = run->op;
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(run->call);
  void *pointer[SDG_COMPOSITE_ROLES] = {NULL};
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    if (stored->slab[role] >= 0)
      pointer[role] =
          sdg_exec_element(run->exec, stored->slab[role], &stored->box[role]);
  return (cudnnStatus_t)sdg_attention_piece_run(
      stored->piece, run->handle, pointer,
      stored->scale < 0 ? NULL : execution->pointer[stored->scale],
      run->workspace);
}

static void stored_destroy(void *op) {
  stored_t *stored = op;
  sdg_attention_piece_destroy(stored->piece);
  free(stored);
}

sdg_status_t sdg_graph_attention_operands(sdg_graph_attention_t *a,
                                          view_t *out) {
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    out[role].slab = -1;
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    int index = a->operand[role];
    if (index < 0)
      continue;
    const sdg_operand_t *operand = &a->call->operand[index];
    const sdg_placement_t *placement = &a->tagging->placement[index];
    sdg_box_t box = placement->dims ? sdg_tagging_own(a->tagging, placement)
                                    : sdg_operand_box(operand);
    const sdg_box_t all = sdg_operand_box(operand);
    SDG_TRY(sdg_plan_operand(a->plan, a->call, index, a->whole ? &all : &box,
                             &a->slab[role]));
    out[role] = (view_t){a->slab[role], box, (cudnnDataType_t)operand->type};
  }
  return SDG_OK;
}

// Bytes that the address of a box is a multiple of, 16 at most.
static int64_t alignment_of(const sdg_graph_attention_t *a, int role,
                            const view_t *view) {
  const sdg_slab_t *slab = &a->plan->slab[view->slab];
  int64_t offset = 0, alignment = 16;
  for (int d = 0; d < DIMS; d++)
    offset += (view->box.dim[d].lo - slab->box.dim[d].lo) * slab->stride[d];
  offset *= slab->elem_bytes;
  if (slab->operand >= 0)
    offset |= a->graph->tensor[a->composite->tensor[role]].alignment;
  while (offset % alignment != 0)
    alignment /= 2;
  return alignment;
}

static void shape_fill(const sdg_graph_attention_t *a,
                       const sdg_sight_block_t *block, const view_t *view,
                       sdg_attention_shape_t *out) {
  const sdg_box_t *q = &view[SDG_COMPOSITE_Q].box;
  const sdg_box_t *k = &view[SDG_COMPOSITE_K].box;
  const sdg_box_t *v = &view[SDG_COMPOSITE_V].box;
  int scale = a->composite->scale;
  *out = (sdg_attention_shape_t){
      .backward = a->composite->backward,
      .unified = a->composite->unified,
      .batch = sdg_box_length(q, BATCH),
      .heads = sdg_box_length(q, HEADS),
      .k_heads = sdg_box_length(k, HEADS),
      .v_heads = sdg_box_length(v, HEADS),
      .queries = sdg_box_length(q, SEQ),
      .keys = sdg_box_length(k, SEQ),
      .depth = sdg_box_length(q, VECTOR),
      .v_depth = sdg_box_length(v, VECTOR),
      .right = block->right,
      .left = block->left,
      .right_bound = block->right_bound,
      .left_bound = block->left_bound,
      .scales = scale >= 0,
      .scale_type = scale < 0 ? CUDNN_DATA_FLOAT : a->graph->tensor[scale].type,
      .fill = a->band.fill,
      .deterministic = a->composite->backward &&
                       a->composite->tensor[SDG_COMPOSITE_DQ_SUM] < 0,
  };
  if (view[SDG_COMPOSITE_BIAS].slab >= 0)
    for (int d = 0; d < DIMS; d++)
      out->bias_dim[d] = sdg_box_length(&view[SDG_COMPOSITE_BIAS].box, d);
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    sdg_attention_tensor_t *tensor = &out->tensor[role];
    if (view[role].slab < 0)
      continue;
    tensor->there = true;
    tensor->type = view[role].type;
    tensor->alignment = alignment_of(a, role, &view[role]);
    for (int d = 0; d < DIMS; d++)
      tensor->stride[d] = a->plan->slab[view[role].slab].stride[d];
  }
}

sdg_status_t sdg_graph_attention_add(sdg_graph_attention_t *a,
                                     const sdg_sight_block_t *block,
                                     const view_t *view) {
  sdg_attention_shape_t shape;
  sdg_attention_piece_t *piece;
  stored_t *stored;
  int refusal = 0;
  if (a->refusal)
    return SDG_OK;
  shape_fill(a, block, view, &shape);
  SDG_TRY(sdg_attention_piece_create(&shape, a->call, &piece, &refusal));
  a->refusal = refusal;
  if (!piece)
    return SDG_OK;
  sdg_status_t status = SDG_ALLOCATE(stored, 1, "a plan");
  if (status != SDG_OK) {
    sdg_attention_piece_destroy(piece);
    return status;
  }
  stored->piece = piece;
  stored->scale = a->composite->scale;
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    stored->slab[role] = view[role].slab;
    stored->box[role] = view[role].box;
  }
  sdg_subcall_t sub = {.fn = stored_run,
                       .op = stored,
                       .op_destroy = stored_destroy,
                       .workspace_bytes = piece->workspace_bytes};
  return sdg_subcall_add(a->plan, &sub);
}
