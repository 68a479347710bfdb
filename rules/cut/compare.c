// SPDX-License-Identifier: Apache-2.0
// Compares the pieces of a call with the whole, and says where they differ and
// what may be the reason.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rules/cut/attempt.h"

// ---- where arrays differ ---------------------------------------------------

// The elements that differ.
typedef struct differing {
  int64_t count, elements;
  int64_t first[SDG_DIMS_MAX]; // the first one's index
  char got[8], wanted[8];      // its bytes
  // The largest distances of such an element from the nearest cut, from the
  // nearest end, and from either of them; 1: beside it.
  int64_t from_cut[SDG_DIMS_MAX], from_end[SDG_DIMS_MAX],
      from_both[SDG_DIMS_MAX];
  bool in_first; // some of them lie in the first piece
} differing_t;

static int64_t distance(int64_t index, int64_t boundary) {
  return index >= boundary ? index - boundary + 1 : boundary - index;
}

static int64_t cut_distance(const sdg_part_t *part, int64_t index) {
  int64_t least = INT64_MAX;
  for (int p = 1; p < part->pieces; p++)
    least = sdg_min64(least, distance(index, part->offset[p]));
  return least;
}

static void element_note(const sdg_cut_t *cut, int operand, bool first,
                         const int64_t *index, const char *got,
                         const char *wanted, differing_t *io) {
  const sdg_placement_t *placement = &cut->placement[operand];
  const sdg_cut_array_t *array = &cut->array[operand];
  size_t bytes = (size_t)array->operand.elem_bytes;
  if (io->count++ == 0) {
    memcpy(io->first, index, sizeof io->first);
    memcpy(io->got, got, bytes);
    memcpy(io->wanted, wanted, bytes);
  }
  io->in_first |= first;
  for (int d = 0; d < placement->dims; d++) {
    int64_t extent = sdg_placement_extent(placement, d);
    int64_t at = index[d] - array->before[d];
    if (!sdg_placement_splits(placement, d))
      continue;
    int64_t cut_away = cut_distance(&placement->part[d], at);
    int64_t end_away = sdg_min64(at + 1, extent - at);
    io->from_cut[d] = sdg_max64(io->from_cut[d], cut_away);
    io->from_end[d] = sdg_max64(io->from_end[d], end_away);
    io->from_both[d] =
        sdg_max64(io->from_both[d], sdg_min64(cut_away, end_away));
  }
}

// What a rank has to have computed.
static sdg_box_t own_box(const sdg_cut_t *cut, const sdg_cut_rank_t *rank,
                         int number, int operand) {
  const sdg_share_t *share = rank->plan ? rank->plan->share : NULL;
  const sdg_placement_t *placement =
      share ? sdg_share_placement(share, operand) : NULL;
  return placement ? sdg_placement_box(placement, cut->mesh, number)
                   : rank->piece[operand].own;
}

static void rank_compare(const sdg_cut_t *cut, const sdg_cut_rank_t *rank,
                         int number, int operand, const char *now,
                         differing_t *io) {
  const sdg_cut_array_t *array = &cut->array[operand];
  const sdg_cut_piece_t *piece = &rank->piece[operand];
  const char *after = rank->piece[array->twin].after;
  sdg_box_t own = own_box(cut, rank, number, operand);
  int64_t index[SDG_DIMS_MAX] = {0};
  int bytes = array->operand.elem_bytes;
  bool first = true;
  if (sdg_box_empty(&own))
    return;
  for (int d = 0; d < own.dims; d++) {
    index[d] = own.dim[d].lo;
    first &= own.dim[d].lo == 0;
  }
  do {
    const char *got = after + sdg_cut_byte_of_piece(piece, bytes, index);
    const char *wanted = now + sdg_cut_byte(array, index);
    io->elements++;
    if (memcmp(got, wanted, (size_t)bytes) != 0)
      element_note(cut, operand, first, index, got, wanted, io);
  } while (sdg_cut_next(&own, index));
}

// ---- text ------------------------------------------------------------------

static void number_format(sdg_number_t type, const void *at, char *out,
                          size_t bytes) {
  float single;
  double number;
  if (type.kind == 'f' && type.bytes == sizeof number) {
    memcpy(&number, at, sizeof number);
    snprintf(out, bytes, "%.17g", number);
  } else if (type.kind == 'f') {
    memcpy(&single, at, sizeof single);
    snprintf(out, bytes, "%.9g", (double)single);
  } else if (type.kind == 'i' || type.kind == 'u') {
    snprintf(out, bytes, "%" PRId64, sdg_function_integer(type, at));
  } else {
    snprintf(out, bytes, "?");
  }
}

static sdg_number_t type_of(const sdg_cut_t *cut, int operand) {
  int tensor = sdg_function_tensor_of(cut->function, operand);
  return cut->function->tensor[tensor].element;
}

static void place_format(const sdg_cut_t *cut, int operand,
                         const int64_t *index, char *out, size_t bytes) {
  const sdg_operand_t *of = &cut->array[operand].operand;
  int tensor = sdg_function_tensor_of(cut->function, operand);
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < of->dims && used < bytes; d++)
    if (sdg_function_extent_at(cut->function, tensor, d) >= 0)
      used += (size_t)snprintf(
          out + used, bytes - used, "%s%s %" PRId64, used ? ", " : "",
          sdg_dim_name(sdg_dim_at(SDG_FAMILY_FUNCTION, d, of->dims)), index[d]);
}

// The farthest that an element can be from a cut; or also from an end.
static int64_t most_from_cut(const sdg_part_t *part, bool ends) {
  int64_t most = 0, extent = sdg_part_extent(part);
  for (int64_t i = 0; i < extent; i++) {
    int64_t away = cut_distance(part, i);
    int64_t end_away = sdg_min64(i + 1, extent - i);
    most = sdg_max64(most, ends ? sdg_min64(away, end_away) : away);
  }
  return most;
}

static const char *const border_name[] = {
    [SDG_BORDER_OWN] = "own",
    [SDG_BORDER_WRAP] = "wrap",
    [SDG_BORDER_ZERO] = "zero",
};

static void reach_format(const sdg_function_t *function, sdg_dim_t dim,
                         char *out, size_t bytes) {
  if (function->reach[dim] < 0)
    snprintf(out, bytes, "%s:all", sdg_dim_name(dim));
  else if (function->sees[dim].before != function->sees[dim].behind)
    snprintf(out, bytes, "%s:%" PRId64 ":%" PRId64, sdg_dim_name(dim),
             function->sees[dim].before, function->sees[dim].behind);
  else
    snprintf(out, bytes, "%s:%" PRId64, sdg_dim_name(dim),
             function->reach[dim]);
}

// What is likely to be wrong with the section.
static void cause_format(const sdg_cut_t *cut, int operand,
                         const differing_t *found, const char *now, char *out,
                         size_t bytes) {
  const sdg_placement_t *placement = &cut->placement[operand];
  differing_t alone = {0};
  char reach[64];
  rank_compare(cut, &cut->alone[0], SDG_CUT_ALONE, operand, now, &alone);
  if (alone.count > 0) {
    snprintf(out, bytes,
             "also if the whole call is made with the section's arguments and "
             "tensors: compare their number, order, types and extents with the "
             "declaration");
    return;
  }
  for (int d = 0; d < placement->dims; d++) {
    sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, placement->dims);
    if (!sdg_placement_splits(placement, d))
      continue;
    const sdg_part_t *part = &placement->part[d];
    // Ends of a dimension that wraps are cuts, too.
    bool wraps = cut->function->border[dim] == SDG_BORDER_WRAP;
    bool at_cuts = found->from_cut[d] < most_from_cut(part, false);
    bool at_ends =
        found->from_end[d] < (sdg_placement_extent(placement, d) + 1) / 4;
    bool at_both = wraps && found->from_both[d] < most_from_cut(part, true);
    reach_format(cut->function, dim, reach, sizeof reach);
    if (at_cuts || (at_both && !at_ends))
      snprintf(out, bytes,
               "only up to %" PRId64 " from a cut in %s: reach %s is too small",
               at_cuts ? found->from_cut[d] : found->from_both[d],
               sdg_dim_name(dim), reach);
    else if (at_ends)
      snprintf(out, bytes,
               "only up to %" PRId64 " from the ends of %s: border %s or the "
               "extents are wrong",
               found->from_end[d], sdg_dim_name(dim),
               border_name[cut->function->border[dim]]);
    else
      continue;
    return;
  }
  snprintf(
      out, bytes,
      found->in_first
          ? "not only near cuts: compare the order of extents, strides and "
            "reach with the declaration"
          : "but not in the first piece: does an argument say where a "
            "piece begins (offset)?");
}

static void differing_format(const sdg_cut_t *cut, int operand,
                             const differing_t *found, const char *now,
                             char *out, size_t bytes) {
  char place[96], got[40], wanted[40], cause[200];
  sdg_number_t type = type_of(cut, operand);
  place_format(cut, operand, found->first, place, sizeof place);
  number_format(type, found->got, got, sizeof got);
  number_format(type, found->wanted, wanted, sizeof wanted);
  cause_format(cut, operand, found, now, cause, sizeof cause);
  snprintf(out, bytes,
           "'%s' differs in %" PRId64 " of %" PRId64
           " elements, first at %s (%s in pieces, %s as a whole), %s",
           sdg_cut_name(cut, operand), found->count, found->elements, place,
           got, wanted, cause);
}

// ---- results ---------------------------------------------------------------

static double number_read(sdg_number_t type, const void *at) {
  float single;
  double number;
  if (type.kind != 'f')
    return (double)sdg_function_integer(type, at);
  if (type.bytes == sizeof number) {
    memcpy(&number, at, sizeof number);
    return number;
  }
  memcpy(&single, at, sizeof single);
  return (double)single;
}

// Sums may differ by rounding: the ranks add in another order.
static bool is_near(sdg_number_t type, sdg_function_combine_t combine,
                    double terms, const void *got, const void *wanted) {
  if (memcmp(got, wanted, (size_t)type.bytes) == 0)
    return true;
  if (type.kind != 'f' ||
      (combine != SDG_FUNCTION_SUM && combine != SDG_FUNCTION_MEAN))
    return false;
  double a = number_read(type, got), b = number_read(type, wanted);
  double apart = a > b ? a - b : b - a, size = b > 0 ? b : -b;
  return apart <= (type.bytes == 8 ? 1e-12 : 5e-4) * (size + terms);
}

static void result_format(const char *name, sdg_number_t type, const void *got,
                          const void *wanted, char *out, size_t bytes) {
  char a[40], b[40];
  number_format(type, got, a, sizeof a);
  number_format(type, wanted, b, sizeof b);
  snprintf(out, bytes,
           "%s is %s in pieces, and %s as a whole: is result right?", name, a,
           b);
}

static bool result_compare(const sdg_cut_t *cut,
                           const sdg_cut_attempt_t *attempt, int number,
                           char *const *now, char *out, size_t bytes) {
  const sdg_function_t *function = cut->function;
  int operand = 0;
  while (sdg_function_tensor_of(function, operand) !=
         function->result[number].tensor)
    operand++;
  const sdg_cut_piece_t *piece = &attempt->rank[0].piece[operand];
  sdg_number_t type = type_of(cut, operand);
  for (size_t at = 0; at < cut->array[operand].bytes; at += (size_t)type.bytes)
    if (!is_near(type, function->result[number].combine, attempt->terms[number],
                 piece->after + piece->margin + at, now[operand] + at)) {
      char name[64];
      snprintf(name, sizeof name, "'%s'", sdg_cut_name(cut, operand));
      result_format(name, type, piece->after + piece->margin + at,
                    now[operand] + at, out, bytes);
      return false;
    }
  return true;
}

static bool returned_compare(const sdg_cut_t *cut,
                             const sdg_cut_attempt_t *attempt,
                             const void *returned, char *out, size_t bytes) {
  sdg_number_t type = cut->function->returned.number;
  const char *got = attempt->rank[0].returned;
  if (type.bytes == 0 || !returned ||
      is_near(type, cut->function->returned.combine,
              attempt->terms[cut->function->results], got, returned))
    return true;
  result_format("what it returns", type, got, returned, out, bytes);
  return false;
}

// ---- what it must not write ------------------------------------------------

static bool margins_check(const sdg_cut_t *cut, const sdg_cut_rank_t *rank,
                          int number, char *out, size_t bytes) {
  for (int i = 0; i < cut->call.operands; i++) {
    const sdg_cut_piece_t *piece = &rank->piece[i];
    const char *before = piece->after;
    const char *behind = piece->after + piece->margin + piece->bytes;
    if (cut->array[i].twin != i)
      continue;
    bool in_front = memcmp(before, piece->given, piece->margin) != 0;
    bool at_back = memcmp(behind, piece->given + piece->margin + piece->bytes,
                          piece->margin) != 0;
    if (!in_front && !at_back)
      continue;
    snprintf(out, bytes,
             "it writes memory %s '%s' of piece %d: compare its extents, "
             "strides and type with the declaration",
             in_front ? "in front of" : "behind", sdg_cut_name(cut, i), number);
    return false;
  }
  return true;
}

static bool inputs_check(const sdg_cut_t *cut, char *const *now, char *out,
                         size_t bytes) {
  for (int i = 0; i < cut->call.operands; i++) {
    bool writes = false;
    for (int k = 0; k < cut->call.operands; k++)
      writes |= cut->call.operand[k].is_output &&
                cut->array[k].twin == cut->array[i].twin;
    if (writes || memcmp(now[i], cut->array[i].old, cut->array[i].bytes) == 0)
      continue;
    snprintf(out, bytes, "'%s' is said to be in, and the function writes it",
             sdg_cut_name(cut, i));
    return false;
  }
  return true;
}

// Numbers behind addresses that are no tensors' are the same on all ranks, or
// have to be results.
static bool told_check(const sdg_cut_t *cut, const sdg_cut_attempt_t *attempt,
                       char *out, size_t bytes) {
  for (int a = 0; a < cut->function->arguments; a++) {
    if (!cut->told_at[a] || cut->told_alone[a] == cut->told[a] ||
        cut->told_alone[a] == attempt->told[a])
      continue;
    snprintf(out, bytes,
             "it writes a number at '%s' that the pieces differ in: is that a "
             "result?",
             cut->function->argument[a].name);
    return false;
  }
  return true;
}

bool sdg_cut_repeats(const sdg_cut_t *cut) {
  for (int i = 0; i < cut->call.operands; i++) {
    const sdg_cut_piece_t *first = &cut->alone[0].piece[i];
    const sdg_cut_piece_t *second = &cut->alone[1].piece[i];
    // Sums of a device are made in any order.
    if (cut->call.operand[i].is_output && !sdg_cut_is_result(cut, i) &&
        memcmp(first->after, second->after, first->bytes + 2 * first->margin) !=
            0)
      return false;
  }
  return true;
}

bool sdg_cut_compare(const sdg_cut_t *cut, const sdg_cut_attempt_t *attempt,
                     char *const *now, const void *returned, char *out_text,
                     size_t text_bytes) {
  if (!inputs_check(cut, now, out_text, text_bytes) ||
      !told_check(cut, attempt, out_text, text_bytes))
    return false;
  for (int r = 0; r < sdg_cut_ranks(cut); r++)
    if (!margins_check(cut, &attempt->rank[r], r, out_text, text_bytes))
      return false;
  for (int i = 0; i < cut->call.operands; i++) {
    differing_t found = {0};
    if (!cut->call.operand[i].is_output || sdg_cut_is_result(cut, i))
      continue;
    for (int r = 0; r < sdg_cut_ranks(cut); r++)
      rank_compare(cut, &attempt->rank[r], r, i, now[i], &found);
    if (found.count > 0) {
      differing_format(cut, i, &found, now[i], out_text, text_bytes);
      return false;
    }
  }
  for (int k = 0; k < cut->function->results; k++)
    if (!result_compare(cut, attempt, k, now, out_text, text_bytes))
      return false;
  return returned_compare(cut, attempt, returned, out_text, text_bytes);
}
