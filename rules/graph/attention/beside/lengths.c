// SPDX-License-Identifier: Apache-2.0
// Lengths of sequences in device memory: those of the whole sequences, and what
// a block of queries and keys has of them.
#include "rules/graph/attention/attention.h"
#include "rules/graph/attention/rows.h"

enum { BATCH = SDG_HEADED_BATCH, SEQ = SDG_HEADED_SEQ, DIMS = SDG_HEADED_DIMS };

// Integers up to here are exact in float, which cuDNN computes them in.
#define EXACT ((int64_t)1 << 24)

typedef sdg_graph_attention_view_t view_t;

static const int roles[] = {SDG_COMPOSITE_LENGTH_Q, SDG_COMPOSITE_LENGTH_KV};
enum { ROLES = sizeof roles / sizeof *roles };

bool sdg_graph_lengths_there(const sdg_graph_attention_t *a) {
  return a->operand[roles[0]] >= 0 || a->operand[roles[1]] >= 0;
}

// The placement of the sequences that a role's lengths are about.
static const sdg_placement_t *about(const sdg_graph_attention_t *a, int role) {
  return role == SDG_COMPOSITE_LENGTH_Q ? a->queries : a->side[SDG_KEYS];
}

static sdg_axes_t cut_axes(const sdg_graph_attention_t *a, int role) {
  return sdg_split_all_axes(&about(a, role)->split[SEQ]);
}

const char *sdg_graph_lengths_obstacle(const sdg_graph_attention_t *a) {
  sdg_sizes_t said = a->tagging->section->lengths;
  if (!sdg_graph_lengths_there(a))
    return NULL;
  if (a->band.by_lengths)
    return "a bottom right of lengths in device memory, which are those of "
           "sequences in pieces";
  if (said == SDG_SIZES_UNSAID)
    return "lengths of sequences in pieces are in device memory: say in the "
           "section what they count: 'lengths = whole' (every rank has the "
           "lengths of the whole sequences) or 'lengths = piece' (each has "
           "those of its piece)";
  for (int i = 0; i < ROLES; i++)
    if (sdg_placement_extent(about(a, roles[i]), SEQ) >= EXACT)
      return "lengths in device memory, of sequences of 2^24 elements or more";
  sdg_axes_t q = cut_axes(a, roles[0]), keys = cut_axes(a, roles[1]);
  return said == SDG_SIZES_PIECE && q && keys && q != keys
             ? "'lengths = piece', and queries and keys in pieces over "
               "different axes"
             : NULL;
}

sdg_axes_t sdg_graph_lengths_differ(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging) {
  static const int sequences[] = {SDG_COMPOSITE_Q, SDG_COMPOSITE_K};
  sdg_axes_t axes = 0;
  for (int i = 0; i < 2; i++) {
    const sdg_placement_t *placement =
        &tagging->placement[sdg_graph_attention_operand(call, sequences[i])];
    if (placement->dims == DIMS)
      axes |= sdg_split_all_axes(&placement->split[SEQ]);
  }
  return tagging->section->lengths == SDG_SIZES_WHOLE ? 0 : axes;
}

// ---- lengths of whole sequences --------------------------------------------

static sdg_status_t whole_open(sdg_graph_attention_t *a, int role, int *out) {
  static const int64_t any_order[SDG_DIMS_MAX] = {4, 3, 2, 1};
  int own = a->slab[role];
  sdg_axes_t sum =
      a->tagging->section->lengths == SDG_SIZES_WHOLE ? 0 : cut_axes(a, role);
  *out = own;
  if (own < 0 || (!sum && sdg_plan_is_packed(a->plan, own)))
    return SDG_OK;
  sdg_box_t box = a->plan->slab[own].box;
  SDG_TRY(sdg_plan_packed(a->plan, &box, any_order, sizeof(int32_t), out));
  SDG_TRY(sdg_plan_copy(a->plan, SDG_LANE_MAIN, own, *out, NULL, NULL,
                        SDG_COPY_STRIP));
  if (!sum)
    return SDG_OK;
  a->plan->reduce_axes = sum;
  return sdg_plan_reduce(a->plan, *out, CUDNN_DATA_INT32, SDG_COMBINE_SUM);
}

sdg_status_t sdg_graph_lengths_open(sdg_graph_attention_t *a) {
  for (int i = 0; i < ROLES; i++)
    SDG_TRY(whole_open(a, roles[i], &a->lengths[i]));
  return SDG_OK;
}

// ---- lengths of a block ----------------------------------------------------

static sdg_rows_tensor_t lengths(int slab, const sdg_box_t *box) {
  return (sdg_rows_tensor_t){
      .type = CUDNN_DATA_INT32, .column = true, .slab = slab, .box = *box};
}

static sdg_rows_tensor_t between(void) {
  return (sdg_rows_tensor_t){
      .type = CUDNN_DATA_FLOAT, .column = true, .slab = -1};
}

static sdg_rows_tensor_t number(int64_t value) {
  sdg_rows_tensor_t number = between();
  number.by_value = true;
  number.value = (float)value;
  return number;
}

// min(max(length - first, 0), most)
static sdg_status_t within(sdg_graph_attention_t *a, int from, int into,
                           sdg_range_t range) {
  enum { LENGTH, FIRST, NONE, MOST, LESS, KEPT, RESULT, COUNT };
  const sdg_box_t *box = &a->plan->slab[from].box;
  sdg_rows_t rows = {
      .rows = sdg_box_count(box),
      .columns = 1,
      .tensors = COUNT,
      .ops = 3,
      .tensor = {[LENGTH] = lengths(from, box),
                 [FIRST] = number(range.lo),
                 [NONE] = number(0),
                 [MOST] = number(range.hi - range.lo),
                 [LESS] = between(),
                 [KEPT] = between(),
                 [RESULT] = lengths(into, box)},
      .op = {{CUDNN_POINTWISE_SUB, LENGTH, FIRST, LESS},
             {CUDNN_POINTWISE_MAX, LESS, NONE, KEPT},
             {CUDNN_POINTWISE_MIN, KEPT, MOST, RESULT}},
  };
  return sdg_rows_add(a->plan, a->call, &rows, &a->refusal);
}

sdg_status_t sdg_graph_lengths_block(sdg_graph_attention_t *a,
                                     const sdg_sight_block_t *block,
                                     view_t *io_view) {
  const sdg_range_t range[] = {block->queries, block->keys};
  for (int i = 0; i < ROLES && !a->refusal; i++) {
    view_t *view = &io_view[roles[i]];
    if (a->lengths[i] < 0)
      continue;
    *view = (view_t){a->lengths[i], a->plan->slab[a->lengths[i]].box,
                     CUDNN_DATA_INT32};
    if (range[i].lo == 0 &&
        range[i].hi == sdg_placement_extent(about(a, roles[i]), SEQ))
      continue;
    SDG_TRY(sdg_plan_scratch(a->plan, &view->box, a->lengths[i], &view->slab));
    SDG_TRY(within(a, a->lengths[i], view->slab, range[i]));
  }
  return SDG_OK;
}
