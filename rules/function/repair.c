// SPDX-License-Identifier: Apache-2.0
// Plans a function on the program's memory, and again on strips at inner
// borders.
#include "rules/function/maker.h"
#include "src/job/cost.h"

// ---- which elements are wrong after the first call -------------------------

// Whether the function takes an end of the rank's range for an end of the
// domain, which it is not.
static bool is_inner(const sdg_function_maker_t *m, int d, int64_t end) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims);
  return m->function->border[dim] == SDG_BORDER_WRAP ||
         (end > 0 && end < sdg_placement_extent(lead, d));
}

// The reach in a dimension that is split; 0: in no other does a rank lack
// elements.
static int64_t reach_in(const sdg_function_maker_t *m, int d) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  return sdg_placement_splits(lead, d)
             ? m->function
                   ->reach[sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims)]
             : 0;
}

// What a rank has to compute again, in disjoint boxes; -1: all that it has.
static int strips_of(const sdg_function_maker_t *m, int rank,
                     sdg_box_t *out_want) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  sdg_box_t own = sdg_placement_box(lead, m->tagging->mesh, rank), right = own;
  for (int d = 0; d < own.dims; d++) {
    int64_t reach = reach_in(m, d);
    if (reach == SDG_REACH_ALL)
      return -1;
    if (reach == 0)
      continue;
    right.dim[d].lo += is_inner(m, d, own.dim[d].lo) ? reach : 0;
    right.dim[d].hi -= is_inner(m, d, own.dim[d].hi) ? reach : 0;
    if (right.dim[d].lo >= right.dim[d].hi)
      return -1;
  }
  return sdg_box_subtract(&own, &right, out_want);
}

// ---- whether to repair -----------------------------------------------------

// An output without a dimension in which strips lie would be written by each
// of them.
static bool outputs_allow(const sdg_function_maker_t *m) {
  for (int i = 0; i < m->call->operands; i++) {
    const sdg_operand_t *operand = &m->call->operand[i];
    int tensor = sdg_function_tensor_of(m->function, i);
    if (!operand->is_output)
      continue;
    if (sdg_function_is_combined(m, i))
      return false;
    for (int d = 0; d < operand->dims; d++)
      if (reach_in(m, d) != 0 &&
          sdg_function_extent_at(m->function, tensor, d) < 0)
        return false;
  }
  return true;
}

static int64_t bytes_in(const sdg_function_maker_t *m, int index,
                        const sdg_box_t *lead) {
  sdg_box_t box = sdg_function_box(m, index, lead);
  return sdg_box_count(&box) * m->call->operand[index].elem_bytes;
}

// What a rank copies besides messages, and the calls, in microseconds.
static double repair_us(const sdg_function_maker_t *m, const sdg_box_t *want,
                        int strips, const sdg_cost_t *cost) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  int64_t bytes = 0, copies = 0;
  for (int s = 0; s < strips; s++) {
    sdg_box_t around = sdg_function_around(m->function, lead, &want[s]);
    for (int i = 0; i < m->call->operands; i++) {
      const sdg_operand_t *operand = &m->call->operand[i];
      if (!sdg_function_extends(m, i))
        continue;
      copies += operand->is_output ? 2 : 1; // assembled or saved, and stored
      bytes += bytes_in(m, i, sdg_function_reads(m, i) ? &around : &want[s]);
      bytes += operand->is_output ? bytes_in(m, i, &want[s]) : 0;
    }
  }
  return (double)(copies + strips) * cost->launch_us +
         (double)bytes / cost->copy_bytes_s * 1e6;
}

static double extend_us(const sdg_function_maker_t *m, const sdg_box_t *own,
                        const sdg_cost_t *cost) {
  int64_t bytes = 0, copies = 0;
  for (int i = 0; i < m->call->operands; i++) {
    int times = m->call->operand[i].is_output ? 2 : 1;
    if (!sdg_function_extends(m, i))
      continue;
    copies += times;
    bytes += bytes_in(m, i, own) * times;
  }
  return (double)copies * cost->launch_us +
         (double)bytes / cost->copy_bytes_s * 1e6;
}

bool sdg_function_repairs(const sdg_function_maker_t *m,
                          sdg_price_t *out_price) {
  const sdg_strategy_t strategy = m->tagging->section->strategy;
  const sdg_cost_t cost = sdg_cost_agreed();
  sdg_box_t want[2 * SDG_DIMS_MAX];
  sdg_price_t price = {0, 0};
  // Ghosts are filled in the program's memory before the call.
  if (!m->function->pure || strategy == SDG_STRATEGY_EXTEND ||
      sdg_function_has_ghosts(m->function) ||
      sdg_function_has_results(m->function) || !outputs_allow(m))
    return false;
  bool compares = strategy != SDG_STRATEGY_REPAIR && cost.copy_bytes_s > 0;
  for (int r = 0; r < m->tagging->ranks; r++) {
    int rank = m->tagging->rank_list[r];
    int strips = strips_of(m, rank, want);
    if (strips < 0)
      return false;
    if (!compares || strips == 0)
      continue;
    sdg_box_t own =
        sdg_placement_box(&m->tagging->placement[0], m->tagging->mesh, rank);
    double repair = repair_us(m, want, strips, &cost);
    double extend = extend_us(m, &own, &cost);
    price.repair_us = repair > price.repair_us ? repair : price.repair_us;
    price.extend_us = extend > price.extend_us ? extend : price.extend_us;
  }
  *out_price = price;
  return price.repair_us <= price.extend_us;
}

// ---- the steps -------------------------------------------------------------

// Whether a piece has this operand in scratch: an output of a strip, or an
// input of which the strip does not have just what the rank has.
static bool is_apart(const sdg_function_maker_t *m,
                     const sdg_function_piece_t *piece, int index) {
  return piece->slab[index] != m->own_slab[index];
}

static sdg_status_t strip_open(sdg_function_maker_t *m, const sdg_box_t *want) {
  sdg_box_t around =
      sdg_function_around(m->function, &m->tagging->placement[0], want);
  sdg_function_piece_t *piece;
  SDG_TRY(sdg_function_piece_add(m, &around, &piece));
  for (int i = 0; i < m->call->operands; i++) {
    sdg_box_t own = sdg_function_box(m, i, &m->own);
    sdg_box_t box = sdg_function_box(m, i, &around);
    if (m->call->operand[i].is_output || !sdg_box_equal(&own, &box))
      SDG_TRY(sdg_function_scratch(m, i, piece));
  }
  return SDG_OK;
}

// The first call overwrites what is updated in place: its messages are copied
// before that.
static sdg_status_t messages_add(sdg_function_maker_t *m, int index) {
  int into[SDG_FUNCTION_PIECES], intos = 0;
  for (int p = 1; p < m->state->pieces; p++)
    if (is_apart(m, &m->state->piece[p], index))
      into[intos++] = m->state->piece[p].slab[index];
  m->plan->packs = m->call->operand[index].is_updated;
  sdg_status_t status = sdg_function_fetch(m, index, into, intos);
  m->plan->packs = false;
  return status;
}

static sdg_status_t exchange(sdg_function_maker_t *m) {
  bool updates = false;
  for (int i = 0; i < m->call->operands; i++) {
    if (sdg_function_reads(m, i) && sdg_function_extends(m, i))
      SDG_TRY(messages_add(m, i));
    updates |= m->call->operand[i].is_updated;
  }
  if (updates)
    SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  return sdg_plan_exchange(m->plan);
}

// What the first call overwrites: of an output, the elements that a strip's
// call may leave as they are; of what is updated, all that a strip reads.
static sdg_status_t outputs_save(sdg_function_maker_t *m, int p,
                                 const sdg_box_t *want) {
  for (int i = 0; i < m->call->operands; i++) {
    const sdg_operand_t *operand = &m->call->operand[i];
    int strip = m->state->piece[p].slab[i];
    sdg_box_t box = sdg_function_box(m, i, want);
    if (operand->is_updated)
      SDG_TRY(sdg_function_own(m, i, strip, SDG_COPY_STRIP));
    else if (operand->is_output)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->own_slab[i], strip, NULL,
                            &box, SDG_COPY_STRIP));
  }
  return SDG_OK;
}

static sdg_status_t outputs_store(sdg_function_maker_t *m, int p,
                                  const sdg_box_t *want) {
  for (int i = 0; i < m->call->operands; i++) {
    sdg_box_t box = sdg_function_box(m, i, want);
    if (m->call->operand[i].is_output)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->state->piece[p].slab[i],
                            m->own_slab[i], NULL, &box, SDG_COPY_STRIP));
  }
  return SDG_OK;
}

// Fills what a strip has of inputs in scratch: with the rank's own elements, or
// with those that have been received.
static sdg_status_t inputs_fill(sdg_function_maker_t *m, int p, bool own) {
  for (int i = 0; i < m->call->operands; i++) {
    int strip = m->state->piece[p].slab[i];
    if (!sdg_function_reads(m, i) || !is_apart(m, &m->state->piece[p], i))
      continue;
    if (!own)
      SDG_TRY(sdg_function_land(m, i, strip));
    else if (!m->call->operand[i].is_updated)
      SDG_TRY(sdg_function_own(m, i, strip, SDG_COPY_STRIP));
  }
  return SDG_OK;
}

sdg_status_t sdg_function_repair(sdg_function_maker_t *m) {
  sdg_box_t want[2 * SDG_DIMS_MAX];
  sdg_function_piece_t *first;
  int strips = strips_of(m, m->tagging->rank, want);
  SDG_TRY(sdg_function_piece_add(m, &m->own, &first));
  for (int s = 0; s < strips; s++)
    SDG_TRY(strip_open(m, &want[s]));
  SDG_TRY(exchange(m));
  for (int s = 0; s < strips; s++)
    SDG_TRY(outputs_save(m, 1 + s, &want[s]));
  SDG_TRY(sdg_plan_call(m->plan, SDG_FUNCTION_CALL));
  for (int s = 0; s < strips; s++)
    SDG_TRY(inputs_fill(m, 1 + s, true));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int s = 0; s < strips; s++)
    SDG_TRY(inputs_fill(m, 1 + s, false));
  for (int s = 0; s < strips; s++)
    SDG_TRY(sdg_plan_call(m->plan, SDG_FUNCTION_CALL + 1 + s));
  for (int s = 0; s < strips; s++)
    SDG_TRY(outputs_store(m, 1 + s, &want[s]));
  return SDG_OK;
}
