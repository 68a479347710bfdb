// SPDX-License-Identifier: Apache-2.0
// Decides on extents of 1: by hints, by the op; and finds calls in which
// neither decides.
#include "rules/place/ones.h"

#include <cudnn.h>
#include <stdio.h>

#include "rules/file/setup.h"
#include "rules/place/place.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "src/job/job.h"

typedef enum reading {
  UNKNOWN,
  PIECES, // a row of each rank
  WHOLE,  // the same on all of them
} reading_t;

static bool takes_hints(const sdg_call_t *call) {
  return sdg_family_is(call->family,
                       SDG_FAMILY_HINTS | SDG_FAMILY_REPEATS_ONES) ||
         (sdg_family_is(call->family, SDG_FAMILY_HINTS_OF_X) &&
          call->operand[0].role == SDG_ROLE_X);
}

// Ops whose call on a rank's own elements is right in both cases.
static bool is_literal(const sdg_call_t *call) {
  return sdg_family_is(call->family, SDG_FAMILY_ELEMENTWISE) &&
         call->entry != SDG_ENTRY_cudnnDropoutForward &&
         call->entry != SDG_ENTRY_cudnnDropoutBackward;
}

static bool reads(const sdg_call_t *call, int index) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_role_is_activation(operand->role) && !operand->label &&
         (!operand->is_output || operand->is_updated ||
          (is_literal(call) && sdg_call_scalar(call, SDG_BETA) != 0));
}

// ---- what is looked up -----------------------------------------------------

static bool all_one(const sdg_tag_vector_t *vector, int d) {
  for (int r = 0; r < vector->ranks; r++)
    if (vector->extent[(size_t)r * (size_t)vector->dims + (size_t)d] != 1)
      return false;
  return true;
}

// No row of any rank, and nothing that all of them have.
static bool is_absent(const sdg_operand_t *operand, int d) {
  return operand->absent >> d & 1;
}

// Whether a dimension that some section splits is 1: on all ranks, or here if
// `vector` is NULL.
static bool has_one(const sdg_call_t *call, const sdg_operand_t *operand,
                    const sdg_tag_vector_t *vector, const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++) {
    const sdg_section_t *section = &rules->section[s];
    for (int i = 0; i < section->splits && !section->is_local; i++) {
      int d = sdg_dim_index(call->family, section->split[i].dim, operand->dims);
      if (d >= 0 && !is_absent(operand, d) &&
          (vector ? all_one(vector, d) : operand->extent[d] == 1))
        return true;
    }
  }
  return false;
}

bool sdg_ones_look(sdg_call_t *call, const sdg_rules_t *rules) {
  bool any = false;
  if (!takes_hints(call) || call->is_query)
    return false;
  for (int i = 0; i < call->operands; i++) {
    sdg_operand_t *operand = &call->operand[i];
    bool looked = reads(call, i) && operand->data && operand->elem_bytes > 0 &&
                  has_one(call, operand, NULL, rules);
    operand->looked_up = looked && !is_literal(call);
    operand->hint =
        looked ? sdg_hint_of(operand->data,
                             sdg_operand_access(operand, true, false).width)
               : 0;
    any |= looked;
  }
  return any;
}

static const sdg_tag_vector_t *vector_of(const sdg_operand_t *operand) {
  return sdg_tag_vector(operand->descriptor, operand->generation);
}

// Whether such a dimension is 1 on all ranks.
static bool all_have_one(const sdg_call_t *call, const sdg_operand_t *operand,
                         const sdg_rules_t *rules) {
  const sdg_tag_vector_t *vector = vector_of(operand);
  return vector && has_one(call, operand, vector, rules);
}

// Whether a section splits the operand. Others may pass the probe on some
// ranks.
static bool is_split(const sdg_call_t *call, int index,
                     const sdg_rules_t *rules) {
  sdg_seen_t seen;
  const sdg_section_t *section = sdg_place_section(call, index, rules, &seen);
  return section && !section->is_local;
}

bool sdg_ones_due(const sdg_call_t *call, const sdg_rules_t *rules) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    const sdg_tag_vector_t *vector =
        operand->looked_up ? vector_of(operand) : NULL;
    if (vector && !vector->hints.exchanged &&
        all_have_one(call, operand, rules) && is_split(call, i, rules))
      return true;
  }
  return false;
}

void sdg_ones_settle(sdg_call_t *call, const sdg_rules_t *rules) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].looked_up &&
        !all_have_one(call, &call->operand[i], rules)) {
      call->operand[i].looked_up = false;
      call->operand[i].hint = 0;
    }
}

// ---- readings --------------------------------------------------------------

static reading_t reading_by(sdg_hint_t hint, sdg_axes_t axes) {
  sdg_axes_t pieces = hint & SDG_HINT_AXES;
  if (!(hint & SDG_HINT_KNOWN))
    return UNKNOWN;
  return (pieces & axes) == axes ? PIECES : pieces & axes ? UNKNOWN : WHOLE;
}

static reading_t agreed(const sdg_call_t *call, int index, int d,
                        sdg_axes_t axes) {
  const sdg_operand_t *operand = &call->operand[index];
  if (!reads(call, index) || d >= operand->dims || is_absent(operand, d))
    return UNKNOWN;
  const sdg_tag_vector_t *vector = vector_of(operand);
  if (!vector || !all_one(vector, d))
    return UNKNOWN;
  reading_t reading = reading_by(vector->hints.hint, axes);
  bool same = vector->hints.differs < 0 ||
              reading_by(vector->hints.other, axes) == reading;
  return same ? reading : UNKNOWN;
}

static sdg_axes_t axes_of(const sdg_split_t *split) {
  sdg_axes_t axes = 0;
  for (int a = 0; a < split->axes; a++)
    axes |= 1u << split->axis[a];
  return axes;
}

// The reading by the hint of the operand, or of another operand of the call
// that has the same rows.
static reading_t known(const sdg_call_t *call, int index, int d,
                       sdg_axes_t axes) {
  if (!takes_hints(call) || is_literal(call))
    return UNKNOWN;
  reading_t reading = agreed(call, index, d, axes);
  for (int i = 0; i < call->operands && reading == UNKNOWN; i++)
    reading = agreed(call, i, d, axes);
  return reading;
}

static bool is_n(const sdg_call_t *call, int d, int dims) {
  return sdg_dim_at(call->family, d, dims) == SDG_DIM_N;
}

// Whether an op repeats this input along d: its result has more there, on some
// rank. Pieces of one row each would have the result's sizes.
static bool is_repeated(const sdg_call_t *call, int index, int d) {
  const sdg_operand_t *input = &call->operand[index];
  for (int i = 0; i < call->operands && !input->is_output; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    const sdg_tag_vector_t *vector =
        operand->is_output && operand->dims == input->dims ? vector_of(operand)
                                                           : NULL;
    if (vector && !all_one(vector, d))
      return true;
  }
  return false;
}

// The reading without a hint.
static reading_t assumed(const sdg_call_t *call, int index, int d) {
  return sdg_family_is(call->family, SDG_FAMILY_REPEATS_ONES) &&
                 (!is_n(call, d, call->operand[index].dims) ||
                  is_repeated(call, index, d))
             ? WHOLE
             : PIECES;
}

static reading_t read_input(const sdg_call_t *call, int index, int d,
                            sdg_axes_t axes) {
  reading_t reading = known(call, index, d, axes);
  return reading == UNKNOWN ? assumed(call, index, d) : reading;
}

static bool all_ones(const sdg_tag_vector_t *vector) {
  int d = 0;
  while (d < vector->dims && all_one(vector, d))
    d++;
  return d == vector->dims;
}

enum { REDUCED, RESULT }; // operands of a reduction

// The reading of the result of a reduction of pieces of one row: the same row
// on all ranks if rows are reduced, otherwise a row of each. Extents do not
// show which, except for a result of one number. *out_clear: the reading is
// certain.
static reading_t read_result(const sdg_call_t *call, int d, sdg_axes_t axes,
                             const sdg_section_t *section, bool *out_clear) {
  const sdg_rules_t *rules;
  const sdg_operand_t *a = &call->operand[REDUCED];
  const sdg_operand_t *c = &call->operand[RESULT];
  const sdg_tag_vector_t *from = vector_of(a), *to = vector_of(c);
  *out_clear = true;
  if (!from || from->dims != to->dims || !all_one(from, d) ||
      read_input(call, REDUCED, d, axes) == WHOLE || all_ones(to))
    return WHOLE;
  sdg_seen_t seen;
  const sdg_section_t *own = sdg_setup_ready(&rules)
                                 ? sdg_place_section(call, RESULT, rules, &seen)
                                 : NULL;
  if (own && own->is_local)
    return WHOLE;
  sdg_split_t split[SDG_DIMS_MAX];
  if (!sdg_place_splits(section, call->family, c->dims, split))
    return WHOLE;
  bool pieces = sdg_place_would(call, RESULT, section, split).no < 0;
  split[d].axes = 0;
  bool whole = sdg_place_would(call, RESULT, section, split).no < 0;
  *out_clear = !(pieces && whole);
  return pieces && !whole ? PIECES : WHOLE;
}

static reading_t read_one(const sdg_call_t *call, int index, int d,
                          sdg_axes_t axes, const sdg_section_t *section) {
  const sdg_operand_t *operand = &call->operand[index];
  bool clear;
  if (sdg_role_is_scale(operand->role))
    return WHOLE; // it is cut as the activation is
  if (operand->label)
    return PIECES; // what the program says of a tensor it says of rows, too
  if (sdg_family_is(call->family, SDG_FAMILY_REDUCES) && operand->is_output &&
      section && call->operands == 2)
    return read_result(call, d, axes, section, &clear);
  return read_input(call, index, d, axes);
}

void sdg_ones_unsplit(const sdg_call_t *call, int index,
                      const sdg_section_t *section, sdg_split_t *split) {
  const sdg_tag_vector_t *vector = vector_of(&call->operand[index]);
  for (int d = 0; d < vector->dims; d++)
    if (split[d].axes && !is_absent(&call->operand[index], d) &&
        all_one(vector, d) &&
        read_one(call, index, d, axes_of(&split[d]), section) == WHOLE)
      split[d].axes = 0;
}

// ---- all dimensions that a section splits ----------------------------------

static bool all_read_as(const sdg_call_t *call, int index,
                        const sdg_section_t *section, bool whole) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector = vector_of(operand);
  sdg_split_t split[SDG_DIMS_MAX];
  if (operand->label || !vector ||
      !sdg_place_splits(section, call->family, operand->dims, split))
    return false;
  for (int d = 0; d < operand->dims; d++) {
    if (!split[d].axes)
      continue;
    reading_t reading = all_one(vector, d) && !is_absent(operand, d)
                            ? known(call, index, d, axes_of(&split[d]))
                            : PIECES;
    if (whole ? reading != WHOLE : reading == UNKNOWN)
      return false;
  }
  return true;
}

bool sdg_ones_are_whole(const sdg_call_t *call, int index,
                        const sdg_section_t *section) {
  return takes_hints(call) &&
         !sdg_family_is(call->family, SDG_FAMILY_REPEATS_ONES) &&
         all_read_as(call, index, section, true);
}

bool sdg_ones_are_known(const sdg_call_t *call, int index,
                        const sdg_section_t *section) {
  return all_read_as(call, index, section, false);
}

// ---- what has to be asked --------------------------------------------------

static const char *reading_text(reading_t reading) {
  return reading == PIECES  ? "a row of each rank"
         : reading == WHOLE ? "the same on every rank"
                            : "not known";
}

static sdg_status_t fail(const sdg_call_t *call, int index, int d,
                         const char *what) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_fail(SDG_E_ONE_EACH, "%s of %s: %s is 1 on every rank, %s",
                  sdg_role_name(operand->role), call->entry_name,
                  sdg_tagging_name(call->family, operand->dims, d), what);
}

// Whether D, H or W has more than one row: it is not the head of a classifier.
static bool has_rows(const sdg_tag_vector_t *vector) {
  for (int d = 2; d < vector->dims; d++)
    if (!all_one(vector, d))
      return true;
  return false;
}

static sdg_status_t input_check(const sdg_call_t *call, const sdg_op_t *op,
                                int index, int d, const sdg_section_t *section,
                                const sdg_split_t *split) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector = vector_of(operand);
  sdg_axes_t axes = axes_of(&split[d]);
  char text[256];
  const sdg_tag_hints_t *hints = &vector->hints;
  const int *rank = sdg_job_group()->rank;
  reading_t first = reading_by(hints->hint, axes);
  reading_t other = hints->differs >= 0   ? reading_by(hints->other, axes)
                    : hints->unknown >= 0 ? assumed(call, index, d)
                                          : first;
  if (first != UNKNOWN && other != first) {
    snprintf(
        text, sizeof text,
        "%s according to the tagged call that wrote it, but rank %d does not "
        "know that or knows otherwise: other calls wrote this memory there",
        reading_text(first),
        rank[hints->differs >= 0 ? hints->differs : hints->unknown]);
    return fail(call, index, d, text);
  }
  reading_t own = reading_by(operand->hint, axes);
  reading_t is = read_input(call, index, d, axes);
  if (own != UNKNOWN && own != is) {
    snprintf(text, sizeof text,
             "%s when the ranks agreed on this descriptor, but %s in the "
             "memory at %p (use one descriptor for each kind)",
             reading_text(is), reading_text(own), operand->data);
    return sdg_job_fail(fail(call, index, d, text));
  }
  if (known(call, index, d, axes) != UNKNOWN || is != WHOLE || !op ||
      !op->shard || !op->shard->sums || !op->shard->sums(call, d) ||
      !has_rows(vector))
    return SDG_OK;
  sdg_split_t whole[SDG_DIMS_MAX];
  for (int k = 0; k < SDG_DIMS_MAX; k++)
    whole[k] = split[k];
  whole[d].axes = 0;
  if (sdg_place_would(call, index, section, split).no >= 0 ||
      sdg_place_would(call, index, section, whole).no >= 0)
    return SDG_OK;
  return fail(call, index, d,
              "and nothing says whether it is a row of each rank or the same "
              "on all of them");
}

static sdg_status_t operand_check(const sdg_call_t *call, const sdg_op_t *op,
                                  int index, const sdg_section_t *section) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector = vector_of(operand);
  sdg_split_t split[SDG_DIMS_MAX];
  bool clear = true;
  bool result = sdg_family_is(call->family, SDG_FAMILY_REDUCES) &&
                operand->is_output && call->operands == 2 && !operand->label;
  if ((!operand->looked_up && !result) || !vector ||
      !sdg_place_splits(section, call->family, operand->dims, split))
    return SDG_OK;
  for (int d = 0; d < operand->dims; d++) {
    if (!split[d].axes || is_absent(operand, d) || !all_one(vector, d) ||
        sdg_split_pieces(&split[d], sdg_job_mesh()) < 2)
      continue;
    if (operand->looked_up)
      SDG_TRY(input_check(call, op, index, d, section, split));
    if (result)
      (void)read_result(call, d, axes_of(&split[d]), section, &clear);
    if (!clear)
      return fail(call, index, d,
                  "and so is this dimension of the reduced tensor, which has a "
                  "row of each rank: the result may also be a row of each "
                  "rank, or the reduction of all rows");
  }
  return SDG_OK;
}

sdg_status_t sdg_ones_check(const sdg_call_t *call, const sdg_op_t *op,
                            const sdg_section_t *section) {
  if (!takes_hints(call) || call->is_query || is_literal(call))
    return SDG_OK;
  for (int i = 0; i < call->operands; i++)
    if (sdg_role_is_activation(call->operand[i].role))
      SDG_TRY(operand_check(call, op, i, section));
  return SDG_OK;
}

// ---- what is known after a call --------------------------------------------

// The reading of the output of an op that treats both cases alike: that of its
// inputs.
static reading_t literal_result(const sdg_call_t *call, int d,
                                sdg_axes_t axes) {
  reading_t all = WHOLE;
  bool any = false;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!reads(call, i) || d >= operand->dims || operand->extent[d] != 1)
      continue;
    reading_t own = reading_by(operand->hint, axes);
    if (own == PIECES)
      return PIECES;
    if (own == UNKNOWN)
      all = UNKNOWN;
    any = true;
  }
  return any ? all : UNKNOWN;
}

// A sum over a dimension that is split is the same on every rank. If each rank
// has one element of it, it may be a sum, or not.
static sdg_hint_t sum_written(const sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++)
    if (placement->split[d].axes &&
        sdg_part_extent(&placement->part[d]) == placement->part[d].pieces)
      return 0;
  return SDG_HINT_KNOWN | (placement->dims ? sdg_placement_axes(placement) : 0);
}

sdg_hint_t sdg_ones_written(const sdg_call_t *call, int index,
                            const sdg_section_t *section,
                            const sdg_placement_t *placement) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector =
      operand->descriptor ? vector_of(operand) : NULL;
  sdg_split_t split[SDG_DIMS_MAX];
  if (operand->role == SDG_ROLE_SUM)
    return sum_written(placement);
  if (placement->dims == 0 || (!sdg_role_is_activation(operand->role) &&
                               operand->role != SDG_ROLE_FIELD &&
                               operand->kind != SDG_OPERAND_COORDINATES))
    return 0;
  sdg_hint_t hint = SDG_HINT_KNOWN | sdg_placement_axes(placement);
  if (!sdg_family_is(call->family, SDG_FAMILY_REPEATS_ONES) || operand->label ||
      !section || !vector ||
      !sdg_place_splits(section, call->family, operand->dims, split))
    return hint;
  for (int d = 0; d < operand->dims; d++) {
    sdg_axes_t axes = axes_of(&split[d]);
    if (!axes || !all_one(vector, d))
      continue;
    const sdg_tag_vector_t *from =
        call->operands > 1 && call->operand[0].dims == operand->dims
            ? vector_of(&call->operand[0])
            : NULL;
    reading_t reading = is_literal(call) ? literal_result(call, d, axes)
                                         : known(call, 0, d, axes);
    // It was reduced: rows, or pieces of one row each.
    if (sdg_family_is(call->family, SDG_FAMILY_REDUCES) && from &&
        (!all_one(from, d) ||
         (reading == UNKNOWN && assumed(call, 0, d) == PIECES)))
      continue;
    if (reading == UNKNOWN)
      return 0;
    if (is_literal(call))
      hint = reading == PIECES ? hint | axes : hint & ~axes;
  }
  return hint;
}
