// SPDX-License-Identifier: Apache-2.0
// Reads the lengths of sequences, and cuts them like the tensors.
#include "rules/attention/call/length.h"

#include <stdlib.h>
#include <string.h>

#include "rules/vendor/sequence.h"
#include "src/base/hash.h"
#include "src/call/tag.h"
#include "src/job/job.h"

static size_t count_of(const sdg_attention_lengths_t *l) {
  return (size_t)(l->batches * l->beams);
}

sdg_status_t sdg_attention_lengths_read(const sdg_operand_t *operand,
                                        const sdg_box_t *own,
                                        sdg_attention_lengths_t *out) {
  sdg_attention_lengths_t l = {
      .batch = own->dim[SDG_SEQUENCE_BATCH].lo,
      .beam = own->dim[SDG_SEQUENCE_BEAM].lo,
      .time = own->dim[SDG_SEQUENCE_TIME].lo,
      .batches = operand->extent[SDG_SEQUENCE_BATCH],
      .beams = operand->extent[SDG_SEQUENCE_BEAM],
      .times = operand->extent[SDG_SEQUENCE_TIME],
  };
  bool full = true;
  l.length = malloc(count_of(&l) * sizeof *l.length);
  if (!l.length)
    return sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", count_of(&l));
  if (sdg_sequence_lengths(operand, l.length))
    for (size_t i = 0; i < count_of(&l); i++)
      full &= l.length[i] == l.times;
  if (full) {
    free(l.length);
    l.length = NULL;
  }
  *out = l;
  return SDG_OK;
}

// Bounds of a sequence's end: at least `min`, because rank `at_min` has
// elements up to there, and at most `max`, because rank `at_max` has none
// after.
typedef struct bound {
  int64_t min, max;
  int at_min, at_max;
} bound_t;

static void bound_note(bound_t *bound, int rank, sdg_range_t time,
                       int64_t length) {
  int64_t end = time.lo + length;
  if (length > 0 && end > bound->min) {
    bound->min = end;
    bound->at_min = rank;
  }
  if (end < time.hi && end < bound->max) {
    bound->max = end;
    bound->at_max = rank;
  }
}

// Narrows the bounds of all sequences by the lengths that one rank has stated.
static sdg_status_t piece_note(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, int index,
                               int rank, const sdg_attention_lengths_t *l,
                               bound_t *bound) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  const sdg_group_t *group = sdg_job_group();
  sdg_box_t box =
      sdg_placement_box(&tagging->placement[index], tagging->mesh, rank);
  int member = 0;
  while (group->rank[member] != rank)
    member++;
  for (int d = 0; d < SDG_SEQUENCE_VECTOR; d++)
    if (vector->extent[member * vector->dims + d] !=
        box.dim[d].hi - box.dim[d].lo)
      return sdg_fail(SDG_E_ATTENTION,
                      "%s: padded sequences of %s would have to move: rank %d "
                      "has an extent of %lld where the op needs %lld",
                      call->entry_name, sdg_role_name(operand->role), rank,
                      (long long)vector->extent[member * vector->dims + d],
                      (long long)(box.dim[d].hi - box.dim[d].lo));
  const int *length = vector->detail + (size_t)member * (size_t)vector->details;
  sdg_range_t time = box.dim[SDG_SEQUENCE_TIME];
  for (int64_t b = box.dim[SDG_SEQUENCE_BATCH].lo, at = 0;
       b < box.dim[SDG_SEQUENCE_BATCH].hi; b++)
    for (int64_t e = 0; e < l->beams; e++, at++)
      bound_note(&bound[b * l->beams + e], rank, time,
                 length[0] < 0 ? time.hi - time.lo : length[at]);
  return SDG_OK;
}

static sdg_status_t bounds_read(const sdg_call_t *call, int index,
                                const bound_t *bound,
                                const sdg_attention_lengths_t *l) {
  const char *role = sdg_role_name(call->operand[index].role);
  for (size_t i = 0; i < count_of(l); i++) {
    if (bound[i].min > bound[i].max)
      return sdg_fail(SDG_E_ATTENTION,
                      "%s: sequence %zu of %s ends at %lld according to rank "
                      "%d, but rank %d has elements up to %lld",
                      call->entry_name, i, role, (long long)bound[i].max,
                      bound[i].at_max, bound[i].at_min,
                      (long long)bound[i].min);
    if (bound[i].min == 0)
      return sdg_fail(SDG_E_ATTENTION,
                      "%s: sequence %zu of %s has no elements on any rank",
                      call->entry_name, i, role);
    l->length[i] = (int)bound[i].min;
  }
  return SDG_OK;
}

sdg_status_t sdg_attention_lengths_agreed(const sdg_call_t *call,
                                          const sdg_tagging_t *tagging,
                                          int index,
                                          sdg_attention_lengths_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *placement = &tagging->placement[index];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  sdg_attention_lengths_t l = {
      .batches = sdg_placement_extent(placement, SDG_SEQUENCE_BATCH),
      .beams = sdg_placement_extent(placement, SDG_SEQUENCE_BEAM),
      .times = sdg_placement_extent(placement, SDG_SEQUENCE_TIME),
  };
  *out = l;
  if (!vector || vector->details == 0)
    return SDG_OK;
  bound_t *bound = malloc(count_of(&l) * sizeof *bound);
  l.length = malloc(count_of(&l) * sizeof *l.length);
  sdg_status_t status = SDG_OK;
  if (!bound || !l.length)
    status =
        sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", count_of(&l));
  for (size_t i = 0; i < count_of(&l) && status == SDG_OK; i++)
    bound[i] = (bound_t){.max = l.times};
  for (int r = 0; r < tagging->ranks && status == SDG_OK; r++)
    status = piece_note(call, tagging, index, tagging->rank_list[r], &l, bound);
  if (status == SDG_OK)
    status = bounds_read(call, index, bound, &l);
  free(bound);
  if (status == SDG_OK)
    *out = l;
  else
    free(l.length);
  return status;
}

bool sdg_attention_lengths_none(const sdg_operand_t *operand) {
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  for (int i = 0; vector && i < vector->ranks * vector->details; i++)
    if (vector->detail[i] == 0)
      return true;
  return false;
}

void sdg_attention_lengths_fini(sdg_attention_lengths_t *lengths) {
  free(lengths->length);
  lengths->length = NULL;
}

bool sdg_attention_lengths_equal(const sdg_attention_lengths_t *a,
                                 const sdg_attention_lengths_t *b) {
  if (!a->length || !b->length)
    return !a->length && !b->length;
  return a->batches == b->batches && a->beams == b->beams &&
         memcmp(a->length, b->length, count_of(a) * sizeof *a->length) == 0;
}

sdg_status_t sdg_attention_lengths_hash(const sdg_operand_t *operand,
                                        uint64_t *out_hash) {
  static int *length; // kept, because every forward call in training uses it
  static size_t room;
  size_t count = (size_t)(operand->extent[SDG_SEQUENCE_BATCH] *
                          operand->extent[SDG_SEQUENCE_BEAM]);
  *out_hash = 0;
  if (count > room) {
    int *grown = realloc(length, count * sizeof *grown);
    if (!grown)
      return sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", count);
    length = grown;
    room = count;
  }
  if (!sdg_sequence_lengths(operand, length))
    return SDG_OK;
  bool full = true;
  uint64_t hash = SDG_HASH_SEED;
  for (size_t i = 0; i < count; i++) {
    full &= length[i] == operand->extent[SDG_SEQUENCE_TIME];
    hash = sdg_hash_word(hash, (uint32_t)length[i]);
  }
  *out_hash = full ? 0 : hash;
  return SDG_OK;
}

int64_t sdg_attention_lengths_in(const sdg_attention_lengths_t *l,
                                 int64_t batch, int64_t beam,
                                 sdg_range_t time) {
  int64_t room = time.hi - time.lo;
  if (!l->length)
    return room;
  int64_t i = (batch - l->batch) * l->beams + beam - l->beam;
  int64_t left = l->time + l->length[i] - time.lo;
  return left < 0 ? 0 : left < room ? left : room;
}

sdg_status_t sdg_attention_lengths_cut(const sdg_attention_lengths_t *lengths,
                                       const sdg_box_t *box, int **out_length,
                                       bool *out_blank) {
  const sdg_range_t *time = &box->dim[SDG_SEQUENCE_TIME];
  const sdg_range_t *batch = &box->dim[SDG_SEQUENCE_BATCH];
  const sdg_range_t *beam = &box->dim[SDG_SEQUENCE_BEAM];
  *out_length = NULL;
  *out_blank = false;
  if (!lengths->length)
    return SDG_OK;
  size_t count = (size_t)((batch->hi - batch->lo) * (beam->hi - beam->lo)),
         at = 0;
  int *length = malloc(count * sizeof *length);
  if (!length)
    return sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", count);
  bool full = true;
  for (int64_t b = batch->lo; b < batch->hi; b++)
    for (int64_t e = beam->lo; e < beam->hi; e++) {
      int64_t here = sdg_attention_lengths_in(lengths, b, e, *time);
      full &= here == time->hi - time->lo;
      *out_blank |= here == 0;
      length[at++] = here > 0 ? (int)here : 1;
    }
  if (full)
    free(length);
  else
    *out_length = length;
  return SDG_OK;
}
