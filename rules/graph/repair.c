// SPDX-License-Identifier: Apache-2.0
// "repair": the program's own execution, on its own tensors, while messages
// travel. The results which that gets wrong are computed as pieces of their own
// ("strips") in scratch, and overwrite.
#include "rules/graph/repair.h"

#include <stdlib.h>
#include <string.h>

#include "rules/graph/strips.h"
#include "rules/kit/subcall.h"
#include "rules/vendor/vendor.h"
#include "rules/window/cost.h"
#include "rules/window/plan.h"

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
           "neighbours' rows around it: repair would count rows at inner "
           "borders twice";
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

// Received rows need no copy where they are one run of what is assembled.
static int received_copies(const sdg_box_t *box, const sdg_box_t *own,
                           const int64_t *like) {
  sdg_box_t halo[2 * SDG_DIMS_MAX];
  int halos = sdg_box_subtract(box, own, halo), copies = 0;
  for (int i = 0; i < halos; i++)
    copies += sdg_window_copies(&halo[i], box, like, 2) > 1;
  return copies;
}

// The copies of what one of `size` strips in a stack reads. Those of rows that
// the rank has go together.
static void count_reads(const sdg_graph_maker_t *m,
                        const sdg_graph_strip_t *strip, int size, bool leads,
                        int rank, sdg_window_work_t *io) {
  for (int r = 0; r < strip->reads; r++) {
    const sdg_operand_t *operand = &m->call->operand[strip->read[r].operand];
    const int64_t *like = sdg_operand_nesting(operand);
    sdg_box_t own = sdg_graph_own_box(m, strip->read[r].operand, rank);
    const sdg_box_t *box = &strip->read[r].box;
    io->copies += leads ? sdg_window_copies(box, &own, like, size) : 0;
    io->copies += received_copies(box, &own, like);
    io->bytes += sdg_box_count(box) * operand->elem_bytes;
  }
}

static void count_results(const sdg_graph_maker_t *m,
                          const sdg_graph_strip_t *strip, int size, bool leads,
                          int rank, sdg_window_work_t *io) {
  for (int i = 0; i < m->main.pattern->operands; i++) {
    const sdg_operand_t *operand = &m->call->operand[i];
    if (!operand->is_output)
      continue;
    sdg_box_t own = sdg_graph_own_box(m, i, rank);
    sdg_box_t box = sdg_graph_operand_box(
        m->call, m->tagging, i, &strip->boxes.level[m->main.pattern->after]);
    io->copies += leads ? sdg_window_copies(&box, &own,
                                            sdg_operand_nesting(operand), size)
                        : 0;
    io->bytes += sdg_box_count(&box) * operand->elem_bytes;
  }
}

// What both strategies cost a rank beside the program's own call, in
// microseconds. A rank on which nothing is right extends in either case, one on
// which all is right makes its own call. Uses m->strip.
static sdg_price_t rank_price(const sdg_graph_maker_t *m, int rank,
                              const sdg_cost_t *cost) {
  sdg_graph_strip_t *strip = m->strip;
  int strips;
  sdg_window_work_t repair = {0}, extend = {0};
  bool can = sdg_graph_strips_find(m, rank, strip, &strips);
  if (can && strips == 0)
    return (sdg_price_t){0, 0};
  for (int s = 0; s < strips; s++) {
    int first = strip[s].first;
    int size = sdg_graph_stack_size(strip, strips, first);
    repair.calls += first == s;
    count_reads(m, &strip[s], size, first == s, rank, &repair);
    count_results(m, &strip[s], size, first == s, rank, &repair);
  }
  strip[0].boxes = sdg_graph_boxes(&m->main, m->tagging, rank);
  sdg_graph_reads_find(m, rank, &strip[0]);
  count_reads(m, &strip[0], 1, true, rank, &extend);
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

sdg_status_t sdg_graph_repair_choose(sdg_graph_maker_t *m) {
  sdg_strategy_t strategy = m->tagging->section->strategy;
  m->repairs = false;
  if (strategy == SDG_STRATEGY_EXTEND || sdg_graph_repair_lacks(m))
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(m->strip, SDG_GRAPH_STRIPS_MAX, "a plan"));
  if (strategy == SDG_STRATEGY_AUTO) {
    m->price = price_find(m);
    if (m->price.extend_us <= m->price.repair_us)
      return SDG_OK;
  }
  m->repairs = sdg_graph_strips_find(m, m->tagging->rank, m->strip, &m->strips);
  if (!m->repairs)
    m->why = "the program's own plan computes no row of the rank's piece "
             "right: all see the neighbours' rows, or the piece does not begin "
             "at a stride";
  return SDG_OK;
}

// ---- parts -----------------------------------------------------------------

sdg_status_t sdg_graph_repair_open(sdg_graph_maker_t *m, int *out_refusal) {
  SDG_TRY(SDG_ALLOCATE(m->stack, m->strips + 1, "a plan"));
  SDG_TRY(sdg_graph_own_open(m));
  return sdg_graph_strips_open(m, out_refusal);
}

void sdg_graph_repair_fini(sdg_graph_maker_t *m) {
  for (int s = 0; m->stack && s < m->strips; s++)
    free(m->stack[s].extents);
  free(m->stack);
  free(m->strip);
  m->stack = NULL;
  m->strip = NULL;
  m->strips = 0;
}

// ---- steps -----------------------------------------------------------------

static sdg_status_t messages_add(sdg_graph_maker_t *m,
                                 sdg_graph_input_t *input) {
  int into[SDG_GRAPH_STRIPS_MAX], intos = 0;
  for (int s = 0; s < m->strips; s++)
    for (int r = 0; r < m->strip[s].reads; r++)
      if (m->strip[s].read[r].operand == input->operand &&
          m->strip[s].read[r].level == input->level)
        into[intos++] = m->strip[s].read[r].slab;
  return sdg_plan_messages(m->plan, &input->transfer, input->own, into, intos,
                           input->message);
}

// The messages of a strip's input; NULL: the rank has all of it.
static const sdg_graph_input_t *source_of(const sdg_graph_maker_t *m,
                                          const sdg_graph_read_t *read) {
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].operand == read->operand &&
        m->input[i].level == read->level)
      return &m->input[i];
  return NULL;
}

static sdg_status_t own_copy(const sdg_graph_maker_t *m,
                             const sdg_graph_read_t *read) {
  const sdg_graph_input_t *source = source_of(m, read);
  int own = m->operand_slab[read->operand];
  return source
             ? sdg_window_assemble_own(m->plan, &source->transfer, &read->box,
                                       own, read->slab, SDG_COPY_STRIP)
             : sdg_plan_copy(m->plan, SDG_LANE_MAIN, own, read->slab, NULL,
                             NULL, SDG_COPY_STRIP);
}

static sdg_status_t received_copy(const sdg_graph_maker_t *m,
                                  const sdg_graph_read_t *read) {
  const sdg_graph_input_t *source = source_of(m, read);
  return source ? sdg_window_assemble_received(m->plan, &source->transfer,
                                               source->message, read->slab)
                : SDG_OK;
}

// Whether the program's own execution may overwrite what is read: a residual
// may be where the result will be. The main op's input cannot be there.
static bool is_overwritten(const sdg_graph_maker_t *m,
                           const sdg_graph_read_t *read) {
  return read->level == m->main.pattern->after;
}

static sdg_status_t copy_before(const sdg_graph_maker_t *m,
                                const sdg_graph_read_t *read) {
  return is_overwritten(m, read) ? own_copy(m, read) : SDG_OK;
}

static sdg_status_t copy_behind(const sdg_graph_maker_t *m,
                                const sdg_graph_read_t *read) {
  return is_overwritten(m, read) ? SDG_OK : own_copy(m, read);
}

// Copies of equal boxes follow one another, so that they may go together.
static sdg_status_t
stack_each(const sdg_graph_maker_t *m, int first,
           sdg_status_t (*copy)(const sdg_graph_maker_t *m,
                                const sdg_graph_read_t *read)) {
  for (int r = 0; r < m->strip[first].reads; r++)
    for (int s = first; s < m->strips; s++)
      if (m->strip[s].first == first)
        SDG_TRY(copy(m, &m->strip[s].read[r]));
  return SDG_OK;
}

static sdg_status_t results_store(const sdg_graph_maker_t *m, int first) {
  for (int i = 0; i < m->main.pattern->operands; i++)
    for (int s = first; s < m->strips && m->call->operand[i].is_output; s++)
      if (m->strip[s].first == first)
        SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->strip[s].written[i],
                              m->operand_slab[i], NULL, NULL, SDG_COPY_STRIP));
  return SDG_OK;
}

sdg_status_t sdg_graph_repair_compute(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->inputs; i++)
    SDG_TRY(messages_add(m, &m->input[i]));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int s = 0; s < m->strips; s++)
    SDG_TRY(stack_each(m, s, copy_before));
  SDG_TRY(sdg_plan_call(m->plan, m->call_index));
  for (int s = 0; s < m->strips; s++)
    SDG_TRY(stack_each(m, s, copy_behind));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int s = 0; s < m->strips; s++) {
    if (m->strip[s].first != s)
      continue;
    SDG_TRY(stack_each(m, s, received_copy));
    SDG_TRY(sdg_graph_piece_compute(&m->stack[s]));
    SDG_TRY(results_store(m, s));
  }
  return SDG_OK;
}
