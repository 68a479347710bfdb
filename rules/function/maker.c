// SPDX-License-Identifier: Apache-2.0
// The pieces of a function's plan, their memory and messages.
#include "rules/function/maker.h"

#include <stdlib.h>
#include <string.h>

#include "rules/function/fit.h"
#include "src/job/job.h"

// ---- boxes -----------------------------------------------------------------

static sdg_range_t range_around(const sdg_function_t *function,
                                const sdg_placement_t *lead, int d,
                                sdg_range_t range) {
  sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims);
  int64_t extent = sdg_placement_extent(lead, d), reach = function->reach[dim];
  if (!sdg_placement_splits(lead, d) || reach == 0 ||
      sdg_function_ghosts(function, dim) > 0) // which are in the tensors
    return range;
  if (reach == SDG_REACH_ALL)
    return (sdg_range_t){0, extent};
  sdg_range_t need = {range.lo - reach, range.hi + reach};
  if (function->border[dim] == SDG_BORDER_WRAP)
    return need;
  return (sdg_range_t){sdg_max64(need.lo, 0), sdg_min64(need.hi, extent)};
}

sdg_box_t sdg_function_around(const sdg_function_t *function,
                              const sdg_placement_t *lead,
                              const sdg_box_t *box) {
  sdg_box_t around = *box;
  for (int d = 0; d < box->dims && !sdg_box_empty(box); d++)
    around.dim[d] = range_around(function, lead, d, box->dim[d]);
  return around;
}

sdg_box_t sdg_function_need(const sdg_call_t *call,
                            const sdg_tagging_t *tagging, int rank) {
  const sdg_placement_t *lead = &tagging->placement[0];
  sdg_box_t box = sdg_placement_box(lead, tagging->mesh, rank);
  return sdg_function_around(sdg_function_call_of(call)->function, lead, &box);
}

sdg_box_t sdg_function_box(const sdg_function_maker_t *m, int index,
                           const sdg_box_t *lead) {
  sdg_box_t box = *lead;
  int tensor = sdg_function_tensor_of(m->function, index);
  for (int d = 0; d < box.dims; d++)
    if (sdg_function_extent_at(m->function, tensor, d) < 0)
      box.dim[d] = (sdg_range_t){0, m->call->operand[index].extent[d]};
  return box;
}

bool sdg_function_is_combined(const sdg_function_maker_t *m, int index) {
  return m->call->operand[index].role == SDG_ROLE_RESULT;
}

bool sdg_function_reads(const sdg_function_maker_t *m, int index) {
  const sdg_operand_t *operand = &m->call->operand[index];
  return !operand->is_output || operand->is_updated;
}

bool sdg_function_has_ghosts(const sdg_function_t *function) {
  bool has = false;
  for (int t = 0; t < function->tensors; t++)
    has |= function->tensor[t].has_ghosts;
  return has;
}

bool sdg_function_extends(const sdg_function_maker_t *m, int index) {
  for (int r = 0; r < m->tagging->ranks; r++) {
    int rank = m->tagging->rank_list[r];
    sdg_box_t own =
        sdg_placement_box(&m->tagging->placement[0], m->tagging->mesh, rank);
    sdg_box_t need = sdg_function_need(m->call, m->tagging, rank);
    own = sdg_function_box(m, index, &own);
    need = sdg_function_box(m, index, &need);
    if (!sdg_box_equal(&own, &need))
      return true;
  }
  return false;
}

// ---- pieces ----------------------------------------------------------------

static sdg_status_t number_check(const sdg_function_t *function, int argument,
                                 int64_t value) {
  sdg_number_t number = function->argument[argument].number[0];
  int64_t written = 0;
  memcpy(&written, &value, (size_t)number.bytes); // little endian
  return sdg_function_integer(number, &written) == value
             ? SDG_OK
             : sdg_fail(SDG_E_FUNCTION_PIECE,
                        "%s: '%s' has %d bytes, and %lld does not fit into it",
                        function->name, function->argument[argument].name,
                        number.bytes, (long long)value);
}

// Other ranks do not know the numbers of this one, so that a wrong one ends the
// job.
static sdg_status_t numbers_check(const sdg_function_maker_t *m,
                                  const sdg_function_piece_t *piece) {
  const sdg_function_call_t *c = sdg_function_call_of(m->call);
  sdg_status_t status = SDG_OK;
  for (int a = 0; a < m->function->arguments && status == SDG_OK; a++)
    if (piece->changed >> a & 1)
      status = number_check(m->function, a, piece->integer[a]);
    else if (piece->offset[a])
      status = number_check(m->function, a, c->integer[a] + piece->offset[a]);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

sdg_status_t sdg_function_piece_add(sdg_function_maker_t *m,
                                    const sdg_box_t *box,
                                    sdg_function_piece_t **out) {
  const sdg_function_call_t *c = sdg_function_call_of(m->call);
  sdg_function_piece_t *piece = &m->state->piece[m->state->pieces++];
  piece->box = *box;
  SDG_TRY(sdg_function_fit(c, box, piece->integer));
  for (int a = 0; a < m->function->arguments; a++)
    if (piece->integer[a] != c->integer[a])
      piece->changed |= 1u << a;
  for (int o = 0; o < m->function->offsets; o++) {
    int d = sdg_function_dim(m->function, m->function->offset[o].dim);
    if (d >= 0)
      piece->offset[m->function->offset[o].argument] = box->dim[d].lo;
  }
  for (int i = 0; i < m->call->operands; i++)
    piece->slab[i] = m->own_slab[i];
  *out = piece;
  return numbers_check(m, piece);
}

sdg_status_t sdg_function_scratch(sdg_function_maker_t *m, int index,
                                  sdg_function_piece_t *piece) {
  const sdg_operand_t *operand = &m->call->operand[index];
  sdg_box_t box = sdg_function_box(m, index, &piece->box);
  int64_t stride[SDG_DIMS_MAX];
  SDG_TRY(sdg_function_strides(m->function,
                               sdg_function_tensor_of(m->function, index), &box,
                               piece->integer, stride));
  return sdg_plan_strided(m->plan, &box, stride, sdg_operand_nesting(operand),
                          operand->elem_bytes, &piece->slab[index]);
}

// ---- messages --------------------------------------------------------------

void sdg_function_periods(const sdg_function_maker_t *m, int64_t *out) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  for (int d = 0; d < lead->dims; d++) {
    sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims);
    bool wraps = m->function->border[dim] == SDG_BORDER_WRAP &&
                 m->function->reach[dim] != SDG_REACH_ALL;
    out[d] = wraps ? sdg_placement_extent(lead, d) : 0;
  }
}

sdg_status_t sdg_function_fetch(sdg_function_maker_t *m, int index,
                                const int *into, int intos) {
  sdg_fetch_t *fetch = &m->fetch[index];
  int64_t period[SDG_DIMS_MAX] = {0};
  sdg_box_t *need;
  sdg_function_periods(m, period);
  SDG_TRY(SDG_ALLOCATE(need, m->tagging->ranks, "boxes of %d ranks",
                       m->tagging->ranks));
  for (int r = 0; r < m->tagging->ranks; r++) {
    need[r] = sdg_function_need(m->call, m->tagging, m->tagging->rank_list[r]);
    need[r] = sdg_function_box(m, index, &need[r]);
  }
  sdg_status_t status =
      sdg_fetch_transfer(m->tagging, &m->tagging->placement[index], need,
                         period, &fetch->transfer);
  free(need);
  SDG_TRY(status);
  SDG_TRY(SDG_ALLOCATE(fetch->landed, fetch->transfer.recvs + 1, "a transfer"));
  fetch->from = m->own_slab[index];
  return sdg_plan_messages(m->plan, &fetch->transfer, fetch->from, into, intos,
                           fetch->landed);
}

sdg_status_t sdg_function_own(sdg_function_maker_t *m, int index, int into,
                              sdg_copy_kind_t kind) {
  const sdg_fetch_t *fetch = &m->fetch[index];
  for (int i = 0; i < fetch->transfer.locals; i++) {
    const sdg_message_t *local = &fetch->transfer.local[i];
    sdg_box_t to = sdg_box_shift(&local->box, local->shift);
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, fetch->from, into,
                          local->shift, &to, kind));
  }
  return SDG_OK;
}

sdg_status_t sdg_function_land(sdg_function_maker_t *m, int index, int into) {
  m->fetch[index].into = into;
  return sdg_fetch_land(m->plan, &m->fetch[index]);
}
