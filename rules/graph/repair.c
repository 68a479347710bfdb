// SPDX-License-Identifier: Apache-2.0
// "repair": the program's own execution, on its own tensors, while messages
// travel. The outputs which that gets wrong are computed as pieces of their own
// ("strips") in scratch, and overwrite.
#include "rules/graph/repair.h"

#include <stdlib.h>
#include <string.h>

#include "rules/kit/subcall.h"
#include "rules/vendor/vendor.h"
#include "rules/window/cost.h"
#include "rules/window/plan.h"

// ---- geometry --------------------------------------------------------------

// What the graph computes is like y, or, in a gradient of data, like x.
static sdg_graph_level_t level_of(const sdg_graph_main_t *main) {
  return main->pattern->after;
}

// The box of a rank's own results that are wrong, as disjoint boxes. False if
// none is right.
static bool wrong_find(const sdg_graph_main_t *main,
                       const sdg_tagging_t *tagging, int rank,
                       sdg_box_t *out_boxes, int *out_count) {
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  sdg_graph_boxes_t boxes = sdg_graph_boxes(main, tagging, rank);
  const sdg_box_t *own = &boxes.level[level_of(main)];
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

// Whether the operand is on a level, and is no output.
static bool is_input(const sdg_graph_maker_t *m, int i,
                     sdg_graph_level_t level) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  return !m->call->operand[i].is_output &&
         (p->tensor_levels[p->operand[i]] >> level & 1);
}

// ---- whether ---------------------------------------------------------------

// What the program's own execution writes must be no sum over ranks, and
// nothing that its strips would read back; strips have no rows of zeros for
// paddings.
const char *sdg_graph_repair_lacks(const sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_graph_level_t reads =
      sdg_graph_is_back(p) ? SDG_GRAPH_LEVEL_Y : SDG_GRAPH_LEVEL_X;
  if (p->adds_old)
    return "the results are added to old values (beta), which repair would "
           "read twice: the graph is computed in one call, on its piece with "
           "the neighbours' rows around it";
  if (p->combines)
    return "a graph with sums is computed in one call, on its piece with the "
           "neighbours' rows around it: repair would count rows at the seams "
           "twice";
  bool can = p->kind == SDG_GRAPH_FORWARD || p->kind == SDG_GRAPH_DGRAD ||
             p->kind == SDG_GRAPH_POOL;
  for (int i = 0; i < p->operands; i++)
    can &= !m->call->operand[i].is_output ||
           !(p->tensor_levels[p->operand[i]] >> reads & 1);
  return can && !m->main.zero_rows
             ? NULL
             : "a graph is computed in one call, on its piece with the "
               "neighbours' rows around it";
}

static void count_copy(const sdg_graph_maker_t *m, int i, const sdg_box_t *box,
                       int rank, sdg_window_work_t *io) {
  const sdg_operand_t *operand = &m->call->operand[i];
  sdg_box_t own = sdg_graph_own_box(m, i, rank);
  int own_copies =
      sdg_window_copies(box, &own, sdg_operand_nesting(operand), 1);
  io->copies += own_copies + !sdg_box_contains(&own, box);
  io->bytes += sdg_box_count(box) * operand->elem_bytes;
}

// What a rank does for the level's boxes, beside its calls.
static void count_inputs(const sdg_graph_maker_t *m,
                         const sdg_graph_boxes_t *boxes, int rank,
                         sdg_window_work_t *io) {
  for (int i = 0; i < m->main.pattern->operands; i++)
    for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++) {
      if (!is_input(m, i, (sdg_graph_level_t)level))
        continue;
      sdg_box_t own = sdg_graph_own_box(m, i, rank);
      sdg_box_t need =
          sdg_graph_operand_box(m->call, m->tagging, i, &boxes->level[level]);
      if (!sdg_box_equal(&own, &need))
        count_copy(m, i, &need, rank, io);
    }
}

// What both strategies cost a rank beside the program's own call, in
// microseconds. A rank on which nothing is right extends in either case, one on
// which all is right makes its own call.
static sdg_price_t rank_price(const sdg_graph_maker_t *m, int rank,
                              const sdg_cost_t *cost) {
  sdg_box_t wrong[2 * SDG_DIMS_MAX];
  int strips;
  sdg_window_work_t repair = {0}, extend = {0};
  bool can = wrong_find(&m->main, m->tagging, rank, wrong, &strips);
  sdg_graph_boxes_t boxes = sdg_graph_boxes(&m->main, m->tagging, rank);
  if (can && strips == 0)
    return (sdg_price_t){0, 0};
  count_inputs(m, &boxes, rank, &extend);
  for (int s = 0; s < strips; s++) {
    boxes = strip_boxes(&m->main, m->tagging, rank, &wrong[s]);
    repair.calls++;
    count_inputs(m, &boxes, rank, &repair);
    for (int i = 0; i < m->main.pattern->operands; i++)
      if (m->call->operand[i].is_output)
        count_copy(m, i, &wrong[s], rank, &repair);
  }
  if (!can)
    repair = extend;
  double call_us = m->main.op.mixes ? cost->strip_us : cost->launch_us;
  return (sdg_price_t){.repair_us = sdg_window_work_us(&repair, cost, call_us),
                       .extend_us = sdg_window_work_us(&extend, cost, call_us)};
}

// The slowest rank's, from agreed numbers only: the same on every rank. Zeros
// without such numbers.
static sdg_price_t price_find(const sdg_graph_maker_t *m) {
  const sdg_cost_t cost = sdg_cost_agreed();
  sdg_price_t most = {0, 0};
  for (int r = 0; r < m->tagging->ranks && cost.copy_bytes_s > 0; r++) {
    sdg_price_t price = rank_price(m, m->tagging->rank_list[r], &cost);
    if (price.repair_us > most.repair_us)
      most.repair_us = price.repair_us;
    if (price.extend_us > most.extend_us)
      most.extend_us = price.extend_us;
  }
  return most;
}

bool sdg_graph_repair_wanted(sdg_graph_maker_t *m) {
  sdg_box_t wrong[2 * SDG_DIMS_MAX];
  int strips;
  sdg_strategy_t strategy = m->tagging->section->strategy;
  if (strategy == SDG_STRATEGY_EXTEND || sdg_graph_repair_lacks(m))
    return false;
  if (strategy == SDG_STRATEGY_AUTO) {
    m->price = price_find(m);
    if (m->price.extend_us <= m->price.repair_us)
      return false;
  }
  if (wrong_find(&m->main, m->tagging, m->tagging->rank, wrong, &strips))
    return true;
  m->why = "the program's own plan computes no row of the rank's piece right: "
           "all see the neighbours' rows, or the piece does not begin at a "
           "stride";
  return false;
}

// ---- strips ----------------------------------------------------------------

// Scratch for what the strip reads, also where this rank has it: the program's
// own execution may overwrite that (z and y in one place).
static sdg_status_t strip_inputs(const sdg_graph_maker_t *m,
                                 sdg_graph_maker_t *strip) {
  for (int i = 0; i < m->main.pattern->operands; i++)
    for (int level = 0; level < SDG_GRAPH_LEVEL_W; level++) {
      if (!is_input(m, i, (sdg_graph_level_t)level))
        continue;
      sdg_box_t own = sdg_graph_own_box(m, i, m->tagging->rank);
      sdg_box_t need = sdg_graph_operand_box(m->call, m->tagging, i,
                                             &strip->boxes.level[level]);
      if (sdg_box_equal(&own, &need) || sdg_box_empty(&need))
        continue;
      sdg_graph_input_t *input = &strip->input[strip->inputs++];
      *input = (sdg_graph_input_t){.operand = i,
                                   .level = (sdg_graph_level_t)level,
                                   .own = m->operand_slab[i]};
      SDG_TRY(sdg_plan_scratch(m->plan, &need, input->own, &input->assembled));
    }
  return SDG_OK;
}

static sdg_status_t strip_open(const sdg_graph_maker_t *m, const sdg_box_t *y,
                               sdg_graph_maker_t *strip, int *out_refusal) {
  *strip = *m;
  strip->inputs = 0;
  strip->extents = NULL;
  strip->boxes = strip_boxes(&m->main, m->tagging, m->tagging->rank, y);
  SDG_TRY(strip_inputs(m, strip));
  for (int i = 0; i < m->main.pattern->operands; i++) {
    sdg_box_t box = sdg_graph_operand_box(m->call, m->tagging, i, y);
    if (m->call->operand[i].is_output)
      SDG_TRY(sdg_plan_scratch(m->plan, &box, m->operand_slab[i],
                               &strip->apart[i]));
  }
  return sdg_graph_piece_open(strip, out_refusal);
}

sdg_status_t sdg_graph_repair_open(sdg_graph_maker_t *m, int *out_refusal) {
  sdg_box_t wrong[2 * SDG_DIMS_MAX];
  (void)wrong_find(&m->main, m->tagging, m->tagging->rank, wrong, &m->strips);
  SDG_TRY(SDG_ALLOCATE(m->strip, m->strips + 1, "a plan"));
  SDG_TRY(sdg_graph_own_open(m));
  for (int s = 0; s < m->strips && !*out_refusal; s++)
    SDG_TRY(strip_open(m, &wrong[s], &m->strip[s], out_refusal));
  return SDG_OK;
}

void sdg_graph_repair_fini(sdg_graph_maker_t *m) {
  for (int s = 0; m->strip && s < m->strips; s++)
    free(m->strip[s].extents);
  free(m->strip);
  m->strip = NULL;
  m->strips = 0;
}

// ---- steps -----------------------------------------------------------------

// The messages of a strip's input; NULL: the rank has all of it.
static const sdg_graph_input_t *source_of(const sdg_graph_maker_t *m,
                                          const sdg_graph_input_t *input) {
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].operand == input->operand &&
        m->input[i].level == input->level)
      return &m->input[i];
  return NULL;
}

static sdg_status_t own_copy(const sdg_graph_maker_t *m,
                             const sdg_graph_input_t *input) {
  const sdg_graph_input_t *source = source_of(m, input);
  return source ? sdg_window_assemble_own(m->plan, &source->transfer,
                                          &m->plan->slab[input->assembled].box,
                                          input->own, input->assembled,
                                          SDG_COPY_STRIP)
                : sdg_plan_copy(m->plan, SDG_LANE_MAIN, input->own,
                                input->assembled, NULL, NULL, SDG_COPY_STRIP);
}

static sdg_status_t received_copy(const sdg_graph_maker_t *m,
                                  const sdg_graph_input_t *input) {
  const sdg_graph_input_t *source = source_of(m, input);
  return source
             ? sdg_window_assemble_received(m->plan, &source->transfer,
                                            source->message, input->assembled)
             : SDG_OK;
}

static sdg_status_t
inputs_each(const sdg_graph_maker_t *m,
            sdg_status_t (*copy)(const sdg_graph_maker_t *m,
                                 const sdg_graph_input_t *input)) {
  for (int s = 0; s < m->strips; s++)
    for (int i = 0; i < m->strip[s].inputs; i++)
      SDG_TRY(copy(m, &m->strip[s].input[i]));
  return SDG_OK;
}

sdg_status_t sdg_graph_repair_compute(sdg_graph_maker_t *m) {
  const int into = SDG_SLAB_SCRATCH;
  for (int i = 0; i < m->inputs; i++)
    SDG_TRY(sdg_plan_messages(m->plan, &m->input[i].transfer, m->input[i].own,
                              &into, 0, m->input[i].message));
  SDG_TRY(sdg_plan_exchange(m->plan));
  SDG_TRY(inputs_each(m, own_copy));
  SDG_TRY(sdg_plan_call(m->plan, m->call_index));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  SDG_TRY(inputs_each(m, received_copy));
  for (int s = 0; s < m->strips; s++) {
    SDG_TRY(sdg_graph_piece_compute(&m->strip[s]));
    SDG_TRY(sdg_graph_results_close(&m->strip[s]));
  }
  return SDG_OK;
}
