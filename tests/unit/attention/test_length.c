// SPDX-License-Identifier: Apache-2.0
// Lengths of sequences in pieces, against the definition: an element is in its
// sequence, or it is padding.
#include "rules/attention/call/length.h"

#include <stdlib.h>

#include "rules/vendor/sequence.h"
#include "tests/unit/random.h"

enum { CASES = 20000, LONGEST = 12, MOST = 4 };

static sdg_range_t part_of(int64_t lo, int64_t count) {
  int64_t first = lo + random_in(0, count - 1);
  return (sdg_range_t){first, random_in(first + 1, lo + count)};
}

typedef struct world {
  sdg_attention_lengths_t lengths;
  int length[MOST * MOST];
  sdg_box_t box; // the whole, parts of which are cut
} world_t;

static void world_init(world_t *w) {
  w->lengths = (sdg_attention_lengths_t){.batch = random_in(0, 2),
                                         .beam = random_in(0, 2),
                                         .time = random_in(0, LONGEST),
                                         .batches = random_in(1, MOST),
                                         .beams = random_in(1, MOST),
                                         .times = random_in(1, LONGEST)};
  for (int i = 0; i < MOST * MOST; i++)
    w->length[i] = random_in(0, 2) ? (int)random_in(0, w->lengths.times)
                                   : (int)w->lengths.times;
  w->lengths.length = random_in(0, 9) ? w->length : NULL;
  w->box = (sdg_box_t){.dims = SDG_SEQUENCE_DIMS};
  w->box.dim[SDG_SEQUENCE_TIME] = part_of(w->lengths.time, w->lengths.times);
  w->box.dim[SDG_SEQUENCE_BATCH] =
      part_of(w->lengths.batch, w->lengths.batches);
  w->box.dim[SDG_SEQUENCE_BEAM] = part_of(w->lengths.beam, w->lengths.beams);
}

// Counts the elements of one sequence in a piece, one by one.
static int64_t counted(const world_t *w, int64_t batch, int64_t beam) {
  const sdg_range_t *time = &w->box.dim[SDG_SEQUENCE_TIME];
  int64_t i =
      (batch - w->lengths.batch) * w->lengths.beams + beam - w->lengths.beam;
  int64_t end = w->lengths.time +
                (w->lengths.length ? w->length[i] : w->lengths.times),
          count = 0;
  for (int64_t t = time->lo; t < time->hi; t++)
    count += t < end;
  return count;
}

START_TEST(a_piece_has_the_elements_before_the_end) {
  for (int n = 0; n < CASES; n++) {
    world_t w;
    int *length;
    bool blank, full = true, none = false;
    world_init(&w);
    ck_assert_int_eq(
        (int)sdg_attention_lengths_cut(&w.lengths, &w.box, &length, &blank), 0);
    const sdg_range_t *time = &w.box.dim[SDG_SEQUENCE_TIME];
    size_t at = 0;
    for (int64_t b = w.box.dim[SDG_SEQUENCE_BATCH].lo;
         b < w.box.dim[SDG_SEQUENCE_BATCH].hi; b++)
      for (int64_t e = w.box.dim[SDG_SEQUENCE_BEAM].lo;
           e < w.box.dim[SDG_SEQUENCE_BEAM].hi; e++) {
        int64_t count = counted(&w, b, e);
        ck_assert_int_eq(sdg_attention_lengths_in(&w.lengths, b, e, *time),
                         count);
        if (length)
          ck_assert_int_eq(length[at], count > 0 ? count : 1);
        at++;
        full &= count == time->hi - time->lo;
        none |= count == 0;
      }
    ck_assert_int_eq(length == NULL, full);
    ck_assert_int_eq(blank, none);
    free(length);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("attnlength");
  TCase *tests = tcase_create("attnlength");
  tcase_add_test(tests, a_piece_has_the_elements_before_the_end);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
