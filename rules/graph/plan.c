// SPDX-License-Identifier: Apache-2.0
// The steps of a graph's plan: messages, assembled inputs, the piece's graph.
#include "rules/graph/plan.h"

#include <stdlib.h>
#include <string.h>

#include "rules/graph/boxes.h"
#include "rules/graph/piece.h"
#include "rules/kit/gradient_sum.h"
#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"
#include "rules/vendor/vendor.h"
#include "rules/window/plan.h"
#include "src/exchange/exec.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// What a plan stores: the piece, and where each of its tensors is.
typedef struct stored {
  sdg_graph_piece_t *piece;
  int slab[SDG_GRAPH_SLOTS_MAX]; // -1: by value
  sdg_box_t box[SDG_GRAPH_SLOTS_MAX];
} stored_t;

static cudnnStatus_t stored_run(const sdg_subcall_run_t *run) {
  const stored_t *stored = run->op;
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(run->call);
  void *pointer[SDG_GRAPH_SLOTS_MAX];
  for (int i = 0; i < stored->piece->slots; i++)
    pointer[i] =
        stored->slab[i] < 0
            ? execution->pointer[stored->piece->slot[i].tensor]
            : sdg_exec_element(run->exec, stored->slab[i], &stored->box[i]);
  return sdg_graph_piece_run(stored->piece, run->handle, pointer,
                             run->workspace);
}

static void stored_destroy(void *op) {
  stored_t *stored = op;
  sdg_graph_piece_destroy(stored->piece);
  free(stored);
}

// ---- inputs ----------------------------------------------------------------

// One operand on the level that needs rows of other ranks.
typedef struct input {
  int operand;
  int own, assembled; // slabs; assembled -1: the program's memory is right
  sdg_transfer_t transfer;
  int *message; // slab of each received message, -1: in place
  bool communicates;
} input_t;

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  bool whole; // view: every rank has all of every tensor
  sdg_graph_conv_t conv;
  sdg_graph_boxes_t boxes; // this rank's
  sdg_graph_level_t haloed;
  sdg_plan_t *plan;
  int operand_slab[SDG_OPERANDS_MAX];
  input_t input[SDG_OPERANDS_MAX];
  int inputs;
  sdg_gradient_sum_t sum[SDG_OPERANDS_MAX]; // filter gradients
  int sums;
  sdg_graph_wish_t *wish;
  int call_index; // of the piece
} maker_t;

static sdg_box_t own_box(const maker_t *m, int index, int rank) {
  const sdg_placement_t *placement = &m->tagging->placement[index];
  if (placement->dims && !m->whole)
    return sdg_placement_box(placement, m->tagging->mesh, rank);
  return sdg_operand_box(&m->call->operand[index]);
}

static sdg_status_t transfer_fill(const maker_t *m, input_t *input) {
  const sdg_tagging_t *tagging = m->tagging;
  size_t ranks = (size_t)tagging->ranks;
  int64_t period[SDG_DIMS_MAX] = {0};
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks", tagging->ranks));
  sdg_box_t *need = owned + ranks;
  for (int d = 0; d < m->conv.op.dims; d++)
    if (m->conv.op.dim[d].wrap)
      period[d] = m->conv.op.dim[d].x_extent;
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    sdg_graph_boxes_t boxes = sdg_graph_boxes(&m->conv, tagging, rank);
    owned[r] = own_box(m, input->operand, rank);
    need[r] = sdg_graph_operand_box(m->call, tagging, input->operand,
                                    &boxes.level[m->haloed]);
    input->communicates |=
        tagging->ranks > 1 && !sdg_box_contains(&owned[r], &need[r]);
  }
  sdg_status_t status = sdg_transfer_plan(
      owned, need, tagging->ranks, tagging->me, period, &input->transfer);
  free(owned);
  return status;
}

static sdg_status_t input_add(maker_t *m, int index) {
  input_t *input = &m->input[m->inputs++];
  *input = (input_t){
      .operand = index, .own = m->operand_slab[index], .assembled = -1};
  SDG_TRY(transfer_fill(m, input));
  sdg_box_t own = own_box(m, index, m->tagging->rank);
  sdg_box_t need = sdg_graph_operand_box(m->call, m->tagging, index,
                                         &m->boxes.level[m->haloed]);
  if (!sdg_box_equal(&own, &need) && !sdg_box_empty(&need))
    SDG_TRY(sdg_plan_scratch(m->plan, &need, input->own, &input->assembled));
  return SDG_ALLOCATE(input->message, input->transfer.recvs + 1, "a plan");
}

static sdg_status_t inputs_open(maker_t *m) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  for (int i = 0; i < m->call->operands; i++) {
    sdg_box_t own = own_box(m, i, m->tagging->rank);
    SDG_TRY(sdg_plan_operand(m->plan, m->call, i, &own, &m->operand_slab[i]));
    if (!m->whole && !m->call->operand[i].is_output &&
        (p->tensor_levels[p->operand[i]] >> m->haloed & 1))
      SDG_TRY(input_add(m, i));
  }
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].communicates)
      m->plan->axes = m->tagging->axes;
  return m->plan->axes ? sdg_tagging_sure(m->call, m->tagging) : SDG_OK;
}

static sdg_status_t inputs_assemble(maker_t *m) {
  for (int i = 0; i < m->inputs; i++) {
    input_t *input = &m->input[i];
    int into = input->assembled < 0 ? SDG_SLAB_SCRATCH : input->assembled;
    SDG_TRY(sdg_plan_messages(m->plan, &input->transfer, input->own, &into,
                              input->assembled < 0 ? 0 : 1, input->message));
  }
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < m->inputs; i++) {
    const input_t *input = &m->input[i];
    if (input->assembled >= 0)
      SDG_TRY(sdg_window_assemble_own(
          m->plan, &input->transfer, &m->plan->slab[input->assembled].box,
          input->own, input->assembled, SDG_COPY_ACTIVATION));
  }
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].assembled >= 0)
      SDG_TRY(sdg_window_assemble_received(m->plan, &m->input[i].transfer,
                                           m->input[i].message,
                                           m->input[i].assembled));
  return SDG_OK;
}

static void inputs_free(maker_t *m) {
  for (int i = 0; i < m->inputs; i++) {
    sdg_transfer_fini(&m->input[i].transfer);
    free(m->input[i].message);
  }
}

// ---- filter gradients ------------------------------------------------------

static const void *no_beta(const sdg_call_t *call) {
  static const double zero = 0; // and 0 as a float
  (void)call;
  return &zero;
}

// Each rank computes its part of every result, which the ranks then add up.
static sdg_status_t sums_open(maker_t *m) {
  if (m->conv.pattern->kind != SDG_GRAPH_WGRAD)
    return SDG_OK;
  for (int i = 0; i < m->call->operands; i++)
    if (m->call->operand[i].is_output)
      SDG_TRY(sdg_gradient_sum_open(m->plan, m->call, i, m->tagging->sum_axes,
                                    no_beta, &m->sum[m->sums++]));
  return SDG_OK;
}

static sdg_status_t sums_close(maker_t *m) {
  for (int i = 0; i < m->sums; i++)
    SDG_TRY(sdg_gradient_sum_close(m->plan, m->call, &m->sum[i]));
  return SDG_OK;
}

// ---- the piece -------------------------------------------------------------

// The program's own execution is right: no rank needs rows of another, and this
// one computes what the program's plan computes.
static bool is_literal(const maker_t *m) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  if (m->sums > 0 && m->tagging->sum_axes)
    return false;
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].communicates || m->input[i].assembled >= 0)
      return false;
  for (int s = 0; s < p->spatial; s++)
    if (m->boxes.pre[s] != p->pre[s] || m->boxes.post[s] != p->post[s])
      return false;
  return true;
}

// The slab of an operand on a level.
static int slab_of(const maker_t *m, int index, sdg_graph_level_t level) {
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].operand == index && level == m->haloed &&
        m->input[i].assembled >= 0)
      return m->input[i].assembled;
  for (int i = 0; i < m->sums; i++)
    if (m->sum[i].operand == index)
      return m->sum[i].part;
  return m->operand_slab[index];
}

// The box of an operand on a level, in the coordinates of its slab.
static sdg_box_t slot_box(const maker_t *m, int index,
                          sdg_graph_level_t level) {
  if (level == SDG_GRAPH_LEVEL_W)
    return sdg_operand_box(&m->call->operand[index]);
  return sdg_graph_operand_box(m->call, m->tagging, index,
                               &m->boxes.level[level]);
}

static int operand_of(const sdg_graph_pattern_t *p, int t) {
  int i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return i < p->operands ? i : -1;
}

// Global extents of all tensors: those of operands are known, pointwise ops
// pass on the larger one of their inputs'.
static void extents_find(const maker_t *m, int64_t (*extent)[SDG_DIMS_MAX]) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  const sdg_graph_t *graph = p->graph;
  for (int t = 0; t < graph->tensor_count; t++) {
    int operand = operand_of(p, t);
    memcpy(extent[t], graph->tensor[t].dim, sizeof extent[t]);
    if (operand >= 0)
      sdg_graph_operand_extents(m->call, m->tagging, operand, extent[t]);
  }
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    int64_t most[SDG_DIMS_MAX] = {0};
    for (int i = 0; i < node->operand_count; i++)
      for (int d = 0; !sdg_graph_writes(node, node->operand[i].name) &&
                      d < graph->tensor[node->operand[i].tensor].rank;
           d++)
        if (extent[node->operand[i].tensor][d] > most[d])
          most[d] = extent[node->operand[i].tensor][d];
    for (int i = 0; i < node->operand_count; i++) {
      int t = node->operand[i].tensor;
      if (!sdg_graph_writes(node, node->operand[i].name) ||
          operand_of(p, t) >= 0)
        continue;
      if (p->node_levels[n] & SDG_GRAPH_AFTER)
        sdg_graph_operand_extents(m->call, m->tagging, p->result, extent[t]);
      else
        memcpy(extent[t], most, sizeof extent[t]);
    }
  }
}

// Strides of a tensor without memory: packed, its dimensions nest as the
// program's do; where extents of 1 hide that, as those of the first activation.
static void virtual_stride(const maker_t *m, const sdg_graph_tensor_t *tensor,
                           sdg_graph_shape_t *shape) {
  sdg_box_t box = {.dims = tensor->rank};
  const int64_t *like = tensor->stride;
  for (int d = 0; d < tensor->rank; d++) {
    box.dim[d] = (sdg_range_t){0, shape->dim[d]};
    if (tensor->dim[d] == 1)
      like = sdg_operand_nesting(&m->call->operand[0]);
  }
  sdg_slab_pack(&box, like, shape->stride);
}

static void shape_fill(const maker_t *m, int t, sdg_graph_level_t level,
                       const int64_t *extent) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  const sdg_graph_tensor_t *tensor = &p->graph->tensor[t];
  sdg_graph_shape_t *shape = &m->wish->shape[t][level];
  const sdg_box_t *box = &m->boxes.level[level];
  int operand = operand_of(p, t);
  memcpy(shape->dim, tensor->dim, sizeof shape->dim);
  memcpy(shape->stride, tensor->stride, sizeof shape->stride);
  shape->alignment = tensor->alignment;
  if (tensor->is_by_value)
    return;
  for (int d = 0; d < tensor->rank && level != SDG_GRAPH_LEVEL_W; d++)
    if (d != 1)
      shape->dim[d] = extent[d] == 1 ? 1 : box->dim[d].hi - box->dim[d].lo;
  if (operand < 0) {
    virtual_stride(m, tensor, shape);
    return;
  }
  const sdg_slab_t *slab = &m->plan->slab[slab_of(m, operand, level)];
  sdg_box_t at = slot_box(m, operand, level);
  int64_t offset = 0; // elements
  memcpy(shape->stride, slab->stride, sizeof shape->stride);
  for (int d = 0; d < at.dims; d++)
    offset += (at.dim[d].lo - slab->box.dim[d].lo) * slab->stride[d];
  while (offset * slab->elem_bytes % shape->alignment != 0)
    shape->alignment /= 2;
}

static sdg_status_t wish_fill(maker_t *m) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  int64_t(*extent)[SDG_DIMS_MAX];
  SDG_TRY(SDG_ALLOCATE(extent, p->graph->tensor_count, "a plan"));
  extents_find(m, extent);
  m->wish->pattern = p;
  memcpy(m->wish->pre, m->boxes.pre, sizeof m->wish->pre);
  memcpy(m->wish->post, m->boxes.post, sizeof m->wish->post);
  for (int t = 0; t < p->graph->tensor_count; t++)
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
      if (p->tensor_levels[t] >> level & 1)
        shape_fill(m, t, (sdg_graph_level_t)level, extent[t]);
  free(extent);
  return SDG_OK;
}

// *out_refusal: cuDNN's status if no engine takes the piece.
static sdg_status_t piece_open(maker_t *m, int *out_refusal) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  sdg_graph_piece_t *piece;
  stored_t *stored;
  // The windows see padding only, or no output sees the rows: no extents of the
  // piece say that.
  if (sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_X]) ||
      sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_Y])) {
    *out_refusal = CUDNN_STATUS_NOT_SUPPORTED;
    return SDG_OK;
  }
  SDG_TRY(SDG_ALLOCATE(m->wish, 1, "a plan"));
  SDG_TRY(wish_fill(m));
  SDG_TRY(sdg_graph_piece_create(m->wish, m->call, &piece, out_refusal));
  if (!piece)
    return SDG_OK;
  sdg_status_t status = SDG_ALLOCATE(stored, 1, "a plan");
  if (status != SDG_OK) {
    sdg_graph_piece_destroy(piece);
    return status;
  }
  stored->piece = piece;
  for (int i = 0; i < piece->slots; i++) {
    int operand = operand_of(p, piece->slot[i].tensor);
    stored->slab[i] =
        operand < 0 ? -1 : slab_of(m, operand, piece->slot[i].level);
    if (operand >= 0)
      stored->box[i] = slot_box(m, operand, piece->slot[i].level);
  }
  sdg_subcall_t sub = {.fn = stored_run,
                       .op = stored,
                       .op_destroy = stored_destroy,
                       .workspace_bytes = piece->workspace_bytes};
  return sdg_subcall_keep(m->plan, &sub, &m->call_index);
}

// ---- what the ranks agree on -----------------------------------------------

// The first rank's status whose cuDNN has no engine for its piece; 0: all have
// one. Without this the others would wait for messages that do not come: all
// learn of it before anything is enqueued.
static sdg_status_t refusals_gather(const sdg_call_t *call, int mine,
                                    int *out_refusal, int *out_rank) {
  const sdg_group_t *group = sdg_job_group();
  sdg_records_t all;
  char at[96];
  *out_refusal = mine;
  *out_rank = sdg_job_rank();
  if (group->count < 2)
    return SDG_OK;
  *out_refusal = 0;
  sdg_job_call(at, sizeof at);
  SDG_TRY(sdg_job_gather(sdg_channel_get(), &mine, sizeof mine, at, &all));
  sdg_status_t status = SDG_OK;
  for (int r = 0; r < group->count && status == SDG_OK; r++) {
    int theirs = 0;
    if (all.bytes[r] != sizeof theirs)
      status = sdg_fail(SDG_E_DIVERGED, "%s: rank %d makes another call",
                        call->entry_name, group->rank[r]);
    else
      memcpy(&theirs, all.data[r], sizeof theirs);
    if (theirs && !*out_refusal) {
      *out_refusal = theirs;
      *out_rank = group->rank[r];
    }
  }
  sdg_records_free(&all);
  return status;
}

static sdg_status_t refusals_compare(const sdg_call_t *call, int mine) {
  int refusal, rank;
  SDG_TRY(refusals_gather(call, mine, &refusal, &rank));
  return refusal
             ? sdg_fail(SDG_E_GRAPH_ENGINE, "%s: rank %d: %s", call->entry_name,
                        rank, sdg_vendor_text(SDG_STREAM_CUDNN, refusal))
             : SDG_OK;
}

// ---- the plan --------------------------------------------------------------

static sdg_status_t steps_make(maker_t *m, bool *out_literal) {
  int refusal = 0;
  SDG_TRY(sdg_plan_create("extend", &m->plan));
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(inputs_open(m));
  SDG_TRY(sums_open(m));
  *out_literal = is_literal(m);
  if (!*out_literal)
    SDG_TRY(piece_open(m, &refusal));
  SDG_TRY(refusals_compare(m->call, refusal));
  if (*out_literal)
    return SDG_OK;
  SDG_TRY(inputs_assemble(m));
  SDG_TRY(sdg_plan_call(m->plan, m->call_index));
  return sums_close(m);
}

// Rows across the ends of a dimension have several images in a gradient.
static sdg_status_t period_check(const sdg_call_t *call,
                                 const sdg_graph_conv_t *conv, bool any) {
  return sdg_window_op_wraps(&conv->op) &&
                 (any || conv->pattern->kind == SDG_GRAPH_DGRAD)
             ? sdg_fail(SDG_E_NO_RULE, "%s with a periodic dimension",
                        call->entry_name)
             : SDG_OK;
}

sdg_status_t sdg_graph_plan(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) {
  maker_t *m;
  bool literal = false;
  SDG_TRY(SDG_ALLOCATE(m, 1, "a plan"));
  m->call = call;
  m->tagging = tagging;
  sdg_status_t status = sdg_graph_conv_init(call, tagging, &m->conv);
  if (status == SDG_OK) {
    m->haloed = m->conv.pattern->kind == SDG_GRAPH_DGRAD ? SDG_GRAPH_LEVEL_Y
                                                         : SDG_GRAPH_LEVEL_X;
    m->boxes = sdg_graph_boxes(&m->conv, tagging, tagging->rank);
    status = period_check(call, &m->conv, false);
    if (status == SDG_OK)
      status = steps_make(m, &literal);
    sdg_graph_conv_fini(&m->conv);
    inputs_free(m);
    if (literal && status == SDG_OK) {
      sdg_plan_destroy(m->plan);
      status = sdg_window_plan_literal(0, &m->plan);
    }
    status = sdg_plan_finish(m->plan, status, out_plan);
  }
  free(m->wish);
  free(m);
  return status;
}

// ---- the whole view --------------------------------------------------------

static void box_hull(const sdg_box_t *more, sdg_box_t *io_box) {
  if (sdg_box_empty(more))
    return;
  if (sdg_box_empty(io_box))
    *io_box = *more;
  for (int d = 0; d < more->dims; d++) {
    if (more->dim[d].lo < io_box->dim[d].lo)
      io_box->dim[d].lo = more->dim[d].lo;
    if (more->dim[d].hi > io_box->dim[d].hi)
      io_box->dim[d].hi = more->dim[d].hi;
  }
}

// What each rank of the job reads of an input: its boxes on all levels.
static sdg_status_t reads_fill(const maker_t *m, sdg_share_t *share,
                               int index) {
  const sdg_graph_pattern_t *p = m->conv.pattern;
  unsigned levels = p->tensor_levels[p->operand[index]];
  sdg_box_t *box;
  if (levels >> SDG_GRAPH_LEVEL_W & 1)
    return SDG_OK; // all of it
  SDG_TRY(sdg_share_reads(share, index, &box));
  for (int r = 0; r < share->ranks; r++) {
    sdg_graph_boxes_t boxes = sdg_graph_boxes(&m->conv, m->tagging, r);
    box[r].dims = m->conv.op.dims;
    for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++) {
      sdg_box_t need = sdg_graph_operand_box(m->call, m->tagging, index,
                                             &boxes.level[level]);
      if ((levels >> level & 1) && !sdg_box_empty(&boxes.level[level]))
        box_hull(&need, &box[r]);
    }
  }
  return SDG_OK;
}

static sdg_status_t share_fill(const maker_t *m, sdg_share_t *share) {
  const sdg_placement_t *place = sdg_graph_result_place(&m->conv, m->tagging);
  for (int i = 0; i < m->call->operands; i++) {
    bool output = m->call->operand[i].is_output;
    if (output && place)
      SDG_TRY(sdg_share_output(share, i, place));
    else if (output)
      SDG_TRY(sdg_gradient_sum_share(share, m->call, i, no_beta(m->call)));
    else
      SDG_TRY(reads_fill(m, share, i));
  }
  return SDG_OK;
}

// *out_refusal: the status of a rank without an engine.
static sdg_status_t whole_make(maker_t *m, int *out_refusal) {
  int mine = 0, rank;
  bool idle = sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_X]) &&
              sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_Y]);
  SDG_TRY(sdg_plan_create("window", &m->plan));
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(inputs_open(m));
  SDG_TRY(sums_open(m));
  if (!idle)
    SDG_TRY(piece_open(m, &mine));
  SDG_TRY(refusals_gather(m->call, mine, out_refusal, &rank));
  if (*out_refusal)
    return SDG_OK;
  if (!idle)
    SDG_TRY(sdg_plan_call(m->plan, m->call_index));
  for (int i = 0; idle && i < m->sums; i++)
    SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &m->sum[i]));
  return sums_close(m);
}

static sdg_status_t share_make(maker_t *m, sdg_plan_t **out_plan) {
  sdg_share_t *share;
  int refusal = 0;
  m->boxes = sdg_graph_boxes(&m->conv, m->tagging, m->tagging->rank);
  SDG_TRY(period_check(m->call, &m->conv, true));
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(m->tagging->mesh), &share));
  sdg_status_t status = share_fill(m, share);
  if (status == SDG_OK)
    status = whole_make(m, &refusal);
  // Every rank carries out all of it.
  if (status == SDG_OK && refusal) {
    sdg_plan_destroy(m->plan);
    sdg_share_destroy(share);
    return SDG_OK;
  }
  status = sdg_plan_finish(m->plan, status, out_plan);
  return sdg_plan_finish_share(share, status, out_plan);
}

sdg_status_t sdg_graph_share(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) {
  struct {
    maker_t maker;
    sdg_tagging_t placed; // with the placement of a data gradient
  } * all;
  bool can;
  *out_plan = NULL;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  maker_t *m = &all->maker;
  all->placed = *tagging;
  m->call = call;
  m->tagging = &all->placed;
  m->whole = true;
  sdg_status_t status =
      sdg_graph_conv_init_whole(call, &all->placed, &m->conv, &can);
  if (status == SDG_OK && can) {
    status = share_make(m, out_plan);
    sdg_graph_conv_fini(&m->conv);
    if (m->conv.pattern->kind == SDG_GRAPH_DGRAD)
      sdg_placement_fini(&all->placed.placement[m->conv.spec.x]);
  }
  free(m->wish);
  free(all);
  return status;
}
