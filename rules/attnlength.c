// SPDX-License-Identifier: Apache-2.0
// Reads lengths of sequences, and cuts them as tensors are cut.
#include "rules/attnlength.h"

#include <stdlib.h>
#include <string.h>

#include "rules/sequence.h"

static size_t count_of(const sdg_attnlengths_t *l) {
  return (size_t)(l->batches * l->beams);
}

sdg_status_t sdg_attnlengths_read(const sdg_operand_t *operand,
                                  const sdg_box_t *own,
                                  sdg_attnlengths_t *out) {
  sdg_attnlengths_t l = {
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

void sdg_attnlengths_fini(sdg_attnlengths_t *lengths) {
  free(lengths->length);
  lengths->length = NULL;
}

bool sdg_attnlengths_equal(const sdg_attnlengths_t *a,
                           const sdg_attnlengths_t *b) {
  if (!a->length || !b->length)
    return !a->length && !b->length;
  return a->batches == b->batches && a->beams == b->beams &&
         memcmp(a->length, b->length, count_of(a) * sizeof *a->length) == 0;
}

sdg_status_t sdg_attnlengths_hash(const sdg_operand_t *operand,
                                  uint64_t *out_hash) {
  static int *length; // kept: every forward call in training comes here
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
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < count; i++) {
    full &= length[i] == operand->extent[SDG_SEQUENCE_TIME];
    hash = (hash ^ (uint32_t)length[i]) * UINT64_C(1099511628211); // FNV-1a
  }
  *out_hash = full ? 0 : hash;
  return SDG_OK;
}

int64_t sdg_attnlengths_in(const sdg_attnlengths_t *l, int64_t batch,
                           int64_t beam, sdg_range_t time) {
  int64_t room = time.hi - time.lo;
  if (!l->length)
    return room;
  int64_t i = (batch - l->batch) * l->beams + beam - l->beam;
  int64_t left = l->time + l->length[i] - time.lo;
  return left < 0 ? 0 : left < room ? left : room;
}

sdg_status_t sdg_attnlengths_cut(const sdg_attnlengths_t *lengths,
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
      int64_t here = sdg_attnlengths_in(lengths, b, e, *time);
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
