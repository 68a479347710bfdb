// SPDX-License-Identifier: Apache-2.0
// Finds the strips of "repair", and lays out those of equal extents as images
// of one tensor.
#include "rules/graph/strips.h"

#include <string.h>

#include "rules/window/stack.h"

// ---- geometry --------------------------------------------------------------

// The box of a rank's own results that are wrong, as disjoint boxes. False if
// none is right.
static bool wrong_find(const sdg_graph_main_t *main,
                       const sdg_tagging_t *tagging, int rank,
                       sdg_box_t *out_boxes, int *out_count) {
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  sdg_graph_boxes_t boxes = sdg_graph_boxes(main, tagging, rank);
  const sdg_box_t *own = &boxes.level[main->pattern->after];
  sdg_box_t right = *own;
  bool back = sdg_graph_is_back(main->pattern);
  sdg_window_op_own(&main->op, tagging, &main->spec, rank, dim);
  *out_count = 0;
  for (int d = 0; d < main->op.dims; d++) {
    int64_t post = dim[d].window.pad + main->spec.pad_more[d];
    if (d != 1 || !main->op.mixes)
      right.dim[d] = back ? sdg_graph_right_back(&dim[d], post)
                          : sdg_graph_right(&dim[d], post);
  }
  if (sdg_box_empty(own) || sdg_box_empty(&right))
    return false;
  *out_count = sdg_box_subtract(own, &right, out_boxes);
  return true;
}

static sdg_graph_boxes_t strip_boxes(const sdg_graph_main_t *main,
                                     const sdg_tagging_t *tagging, int rank,
                                     const sdg_box_t *wrong) {
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  bool back = sdg_graph_is_back(main->pattern);
  sdg_window_op_own(&main->op, tagging, &main->spec, rank, dim);
  for (int d = 0; d < main->op.dims; d++)
    if (d != 1 || !main->op.mixes)
      *(back ? &dim[d].x : &dim[d].y) = wrong->dim[d];
  return sdg_graph_boxes_of(main, tagging, dim);
}

// Whether an operand is an input on one of the levels X and Y.
static bool is_read(const sdg_graph_maker_t *m, int i,
                    sdg_graph_level_t level) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  return !m->call->operand[i].is_output &&
         (p->tensor_levels[p->operand[i]] >> level & 1);
}

void sdg_graph_reads_find(const sdg_graph_maker_t *m, int rank,
                          sdg_graph_strip_t *io_strip) {
  io_strip->reads = 0;
  for (int i = 0; i < m->main.pattern->operands; i++)
    for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++) {
      if (!is_read(m, i, (sdg_graph_level_t)level))
        continue;
      sdg_box_t own = sdg_graph_own_box(m, i, rank);
      sdg_box_t need = sdg_graph_operand_box(m->call, m->tagging, i,
                                             &io_strip->boxes.level[level]);
      if (!sdg_box_equal(&own, &need) && !sdg_box_empty(&need))
        io_strip->read[io_strip->reads++] = (sdg_graph_read_t){
            .operand = i, .level = (sdg_graph_level_t)level, .box = need};
    }
}

// ---- stacks ----------------------------------------------------------------

static int64_t images_of(const sdg_box_t *box) {
  return box->dim[0].hi - box->dim[0].lo;
}

static bool has_read(const sdg_graph_strip_t *strip, int i, int level) {
  for (int r = 0; r < strip->reads; r++)
    if (strip->read[r].operand == i && (int)strip->read[r].level == level)
      return true;
  return false;
}

static sdg_box_t result_box(const sdg_graph_maker_t *m,
                            const sdg_graph_strip_t *strip, int i) {
  return sdg_graph_operand_box(m->call, m->tagging, i,
                               &strip->boxes.level[m->main.pattern->after]);
}

// Whether strips may lie behind one another: images are outermost in all that
// is assembled or written, and there are as many of them as on the level; all
// else is the same for every image.
static bool stacks(const sdg_graph_maker_t *m, const sdg_graph_strip_t *strip) {
  for (int r = 0; r < strip->reads; r++) {
    const sdg_graph_read_t *read = &strip->read[r];
    if (images_of(&read->box) != images_of(&strip->boxes.level[read->level]) ||
        !sdg_window_stack_fits(
            &read->box, sdg_operand_nesting(&m->call->operand[read->operand])))
      return false;
  }
  for (int i = 0; i < m->main.pattern->operands; i++) {
    const sdg_operand_t *operand = &m->call->operand[i];
    if (operand->is_output) {
      sdg_box_t box = result_box(m, strip, i);
      if (images_of(&box) !=
              images_of(&strip->boxes.level[m->main.pattern->after]) ||
          !sdg_window_stack_fits(&box, sdg_operand_nesting(operand)))
        return false;
    }
    for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++)
      if (is_read(m, i, (sdg_graph_level_t)level) &&
          !has_read(strip, i, level) && operand->extent[0] != 1)
        return false;
  }
  return true;
}

static bool are_alike(const sdg_graph_strip_t *a, const sdg_graph_strip_t *b) {
  for (int r = 0; r < a->reads && r < b->reads; r++)
    if (a->read[r].operand != b->read[r].operand ||
        a->read[r].level != b->read[r].level)
      return false;
  for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++)
    if (!sdg_window_stack_alike(&a->boxes.level[level], &b->boxes.level[level]))
      return false;
  return a->reads == b->reads &&
         memcmp(a->boxes.pre, b->boxes.pre, sizeof a->boxes.pre) == 0 &&
         memcmp(a->boxes.post, b->boxes.post, sizeof a->boxes.post) == 0;
}

bool sdg_graph_strips_find(const sdg_graph_maker_t *m, int rank,
                           sdg_graph_strip_t *out, int *out_count) {
  sdg_box_t wrong[SDG_GRAPH_STRIPS_MAX];
  if (!wrong_find(&m->main, m->tagging, rank, wrong, out_count))
    return false;
  for (int s = 0; s < *out_count; s++) {
    out[s].boxes = strip_boxes(&m->main, m->tagging, rank, &wrong[s]);
    sdg_graph_reads_find(m, rank, &out[s]);
    out[s].first = s;
    bool can = stacks(m, &out[s]);
    for (int t = 0; can && t < s && out[s].first == s; t++)
      if (out[t].first == t && are_alike(&out[t], &out[s]))
        out[s].first = t;
  }
  return true;
}

int sdg_graph_stack_size(const sdg_graph_strip_t *strip, int strips,
                         int first) {
  int size = 0;
  for (int s = first; s < strips; s++)
    size += strip[s].first == first;
  return size;
}

// ---- scratch and pieces ----------------------------------------------------

// Scratch for `size` boxes with the extents of `box`, one behind the other.
static sdg_status_t all_open(sdg_plan_t *plan, const sdg_box_t *box, int size,
                             int like, int *out_slab) {
  sdg_box_t all = sdg_window_stack_box(box, size);
  return sdg_plan_scratch(plan, &all, like, out_slab);
}

// The slab of box number `at` of them.
static sdg_status_t one_open(sdg_plan_t *plan, int all, int size, int at,
                             const sdg_box_t *box, int like, int *out_slab) {
  size_t bytes =
      (size_t)sdg_box_count(box) * (size_t)plan->slab[all].elem_bytes;
  *out_slab = all;
  return size == 1 ? SDG_OK
                   : sdg_plan_within(plan, all, (size_t)at * bytes, box, like,
                                     out_slab);
}

static sdg_status_t reads_open(sdg_graph_maker_t *m, int first, int size) {
  sdg_graph_maker_t *piece = &m->stack[first];
  const sdg_graph_strip_t *lead = &m->strip[first];
  for (int r = 0; r < lead->reads; r++) {
    const sdg_graph_read_t *read = &lead->read[r];
    sdg_graph_input_t *input = &piece->input[piece->inputs++];
    *input = (sdg_graph_input_t){.operand = read->operand,
                                 .level = read->level,
                                 .own = m->operand_slab[read->operand]};
    SDG_TRY(all_open(m->plan, &read->box, size, input->own, &input->assembled));
    for (int s = first, at = 0; s < m->strips; s++)
      if (m->strip[s].first == first)
        SDG_TRY(one_open(m->plan, input->assembled, size, at++,
                         &m->strip[s].read[r].box, input->own,
                         &m->strip[s].read[r].slab));
  }
  return SDG_OK;
}

static sdg_status_t results_open(sdg_graph_maker_t *m, int first, int size) {
  sdg_graph_maker_t *piece = &m->stack[first];
  for (int i = 0; i < m->main.pattern->operands; i++) {
    int like = m->operand_slab[i];
    if (!m->call->operand[i].is_output)
      continue;
    sdg_box_t box = result_box(m, &m->strip[first], i);
    SDG_TRY(all_open(m->plan, &box, size, like, &piece->apart[i]));
    for (int s = first, at = 0; s < m->strips; s++) {
      if (m->strip[s].first != first)
        continue;
      box = result_box(m, &m->strip[s], i);
      SDG_TRY(one_open(m->plan, piece->apart[i], size, at++, &box, like,
                       &m->strip[s].written[i]));
    }
  }
  return SDG_OK;
}

// Scratch also for what this rank has: the program's own execution may
// overwrite that (z and y in one place).
static sdg_status_t stack_open(sdg_graph_maker_t *m, int first,
                               int *out_refusal) {
  sdg_graph_maker_t *piece = &m->stack[first];
  int size = sdg_graph_stack_size(m->strip, m->strips, first);
  *piece = *m;
  piece->strip = NULL;
  piece->stack = NULL;
  piece->extents = NULL;
  piece->inputs = piece->strips = 0;
  piece->images = size;
  piece->boxes = m->strip[first].boxes;
  SDG_TRY(reads_open(m, first, size));
  SDG_TRY(results_open(m, first, size));
  for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++)
    piece->boxes.level[level] =
        sdg_window_stack_box(&piece->boxes.level[level], size);
  piece->boxes.read = sdg_window_stack_box(&piece->boxes.read, size);
  return sdg_graph_piece_open(piece, out_refusal);
}

sdg_status_t sdg_graph_strips_open(sdg_graph_maker_t *m, int *out_refusal) {
  for (int s = 0; s < m->strips && !*out_refusal; s++)
    if (m->strip[s].first == s)
      SDG_TRY(stack_open(m, s, out_refusal));
  return SDG_OK;
}
