// SPDX-License-Identifier: Apache-2.0
// Hints of memory, against a table of bytes.
#include "src/geometry/hint.h"

#include <string.h>

#include "tests/unit/random.h"

enum { BYTES = 48, FIRST = 4096 };

static const void *address(int64_t byte) {
  return (const void *)(uintptr_t)(FIRST + byte);
}

// What is known of a byte, and from which write on it is known.
typedef struct known {
  sdg_hint_t hint;
  int64_t by;
} known_t;

// The bytes behind a write into a range are a range of their own.
static void range_cut(known_t *table, int64_t end, int64_t by) {
  for (int64_t i = end, cut = table[end].by;
       i < BYTES && cut >= 0 && table[i].by == cut; i++)
    table[i].by = by;
}

static void everything_require(const known_t *table) {
  for (int64_t at = 0; at < BYTES; at++)
    for (int64_t end = at + 1; end <= BYTES; end++) {
      const void *from = address(at);
      size_t bytes = (size_t)(end - at);
      bool one = table[at].by >= 0, none = true;
      sdg_hint_t axes = 0;
      for (int64_t i = at; i < end; i++) {
        none &= !table[i].hint;
        one &= table[i].by == table[at].by;
        axes |= table[i].hint & SDG_HINT_AXES;
      }
      bool all = one && (at == 0 || table[at - 1].by != table[at].by) &&
                 (end == BYTES || table[end].by != table[at].by);
      REQUIRE(sdg_hint_of(from, bytes) == (all ? table[at].hint : 0));
      REQUIRE(sdg_hint_around(from, bytes) == (one ? table[at].hint : 0));
      REQUIRE((sdg_hint_within(from, bytes) & SDG_HINT_AXES) == axes);
      REQUIRE(sdg_hint_none(1, &from, &bytes) == none);
    }
}

START_TEST(the_last_write_decides_the_hint) {
  known_t table[BYTES];
  for (int i = 0; i < BYTES; i++)
    table[i] = (known_t){0, -1};
  for (int64_t n = random_cases(400), call = 1; n > 0; n--, call++) {
    int64_t at = random_in(0, BYTES - 1), bytes = random_in(1, BYTES - at);
    sdg_hint_t hint =
        random_in(0, 2) ? SDG_HINT_KNOWN | (sdg_hint_t)random_in(0, 3) : 0;
    sdg_hint_put(address(at), (size_t)bytes, false, hint);
    if (at + bytes < BYTES)
      range_cut(table, at + bytes, 2 * call + 1);
    for (int64_t i = at; i < at + bytes; i++)
      table[i] = hint ? (known_t){hint, 2 * call} : (known_t){0, -1};
    everything_require(table);
  }
  sdg_hint_forget();
  REQUIRE(!sdg_hint_any());
}
END_TEST

// Two slices of channels in one buffer: their samples alternate.
START_TEST(slices_become_the_buffer_that_they_make_up) {
  sdg_hint_t rows = SDG_HINT_KNOWN | 1, other = SDG_HINT_KNOWN | 2;
  sdg_hint_put(address(0), 30, true, rows);
  sdg_hint_put(address(10), 30, true, rows);
  REQUIRE(sdg_hint_of(address(0), 40) == rows);
  sdg_hint_put(address(20), 10, true, other);
  REQUIRE(sdg_hint_of(address(0), 40) == 0);
  REQUIRE(sdg_hint_of(address(20), 10) == other);
  REQUIRE(sdg_hint_of(address(0), 20) == rows);
  sdg_hint_forget();
}
END_TEST

START_TEST(writes_between_pieces_leave_them_pieces) {
  sdg_hint_t rows = SDG_HINT_KNOWN | 1;
  sdg_hint_put(address(0), 40, false, rows);
  sdg_hint_put(address(4), 30, true, 0);
  REQUIRE(sdg_hint_of(address(4), 30) == 0);
  REQUIRE(sdg_hint_within(address(4), 30) & 1);
  REQUIRE(sdg_hint_of(address(0), 4) == rows);
  REQUIRE(sdg_hint_of(address(34), 6) == rows);
  sdg_hint_forget();
  // The same tensor, written anew.
  sdg_hint_put(address(0), 40, true, rows);
  sdg_hint_put(address(0), 40, true, 0);
  REQUIRE(!sdg_hint_any());
  sdg_hint_put(address(0), 40, false, rows);
  sdg_hint_put(address(0), 40, true, 0); // the bytes between are those of rows
  sdg_hint_put(address(0), 40, true, 0);
  REQUIRE(sdg_hint_within(address(0), 40) == (rows | SDG_HINT_MIXED));
  sdg_hint_forget();
  sdg_hint_put(address(0), 40, false, rows);
  sdg_hint_put(address(0), 40, true, rows);
  sdg_hint_put(address(0), 40, true, 0);
  REQUIRE(sdg_hint_within(address(0), 40) == (rows | SDG_HINT_MIXED));
  sdg_hint_forget();
}
END_TEST

START_TEST(a_copy_gets_the_hint_of_its_source) {
  sdg_hint_t rows = SDG_HINT_KNOWN | 1, other = SDG_HINT_KNOWN | 2;
  sdg_hint_put(address(0), 10, false, rows);
  sdg_hint_put(address(12), 8, false, other);
  sdg_hint_put(address(20), 20, false, rows);
  sdg_hint_copy(address(4), address(24), 14);
  REQUIRE(sdg_hint_of(address(20), 4) == rows);
  REQUIRE(sdg_hint_of(address(24), 6) == rows);
  REQUIRE(sdg_hint_within(address(30), 2) == 0);
  REQUIRE(sdg_hint_of(address(32), 6) == other);
  REQUIRE(sdg_hint_of(address(38), 2) == rows);
  sdg_hint_copy(address(0), address(2), 10); // which overlap
  REQUIRE(sdg_hint_of(address(2), 10) == rows);
  sdg_hint_forget();
  for (int i = 0; i < 20; i++)
    sdg_hint_put(address(i), 1, false, rows);
  sdg_hint_copy(address(0), address(20), 20);
  REQUIRE(sdg_hint_of(address(39), 1) == rows);
  sdg_hint_forget();
}
END_TEST

START_TEST(pieces_that_may_have_been_overwritten_are_in_doubt) {
  sdg_hint_put(address(0), 8, false, SDG_HINT_KNOWN | SDG_HINT_GLOBAL | 1);
  sdg_hint_put(address(8), 8, false, SDG_HINT_KNOWN);
  sdg_hint_doubt(NULL, SIZE_MAX);
  REQUIRE(sdg_hint_of(address(0), 8) == 0);
  REQUIRE(sdg_hint_of(address(8), 8) == 0);
  REQUIRE(sdg_hint_within(address(0), 8) ==
          (SDG_HINT_KNOWN | SDG_HINT_MIXED | 1));
  REQUIRE(sdg_hint_within(address(8), 8) == 0);
  sdg_hint_forget();
}
END_TEST

START_TEST(counts_of_sums_go_with_copies_and_end_with_writes) {
  sdg_counts_t counts = {3, 8}, got;
  sdg_hint_put_contents(address(0), 16, false, SDG_HINT_KNOWN, 7);
  sdg_hint_set_counts(address(0), 8, counts); // not these bytes
  REQUIRE(sdg_hint_counts(address(0), 16).all == 0);
  sdg_hint_set_counts(address(0), 16, counts);
  got = sdg_hint_counts(address(4), 8);
  REQUIRE(got.own == 3 && got.all == 8);
  sdg_hint_copy(address(0), address(32), 16);
  REQUIRE(sdg_hint_counts(address(32), 16).all == 8);
  REQUIRE(sdg_hint_counts(address(32), 20).all == 0);
  sdg_hint_put(address(36), 4, false, SDG_HINT_KNOWN);
  REQUIRE(sdg_hint_counts(address(32), 16).all == 0);
  REQUIRE(sdg_hint_counts(address(40), 8).all == 8);
  sdg_hint_doubt(address(8), 4);
  REQUIRE(sdg_hint_counts(address(0), 16).all == 0);
  REQUIRE(sdg_hint_counts(address(0), 8).all == 8);
  sdg_hint_put(address(0), 8, false, SDG_HINT_KNOWN);
  REQUIRE(sdg_hint_counts(address(0), 8).all == 0);
  sdg_hint_forget();
}
END_TEST

START_TEST(a_part_that_may_have_been_overwritten_is_in_doubt) {
  sdg_hint_t rows = SDG_HINT_KNOWN | SDG_HINT_GLOBAL | 1;
  sdg_hint_put(address(0), 8, false, rows);
  sdg_hint_put(address(8), 8, false, rows);
  sdg_hint_doubt(address(4), 8);
  REQUIRE(sdg_hint_of(address(0), 4) == rows);
  REQUIRE(sdg_hint_of(address(12), 4) == rows);
  for (int i = 4; i < 12; i++)
    REQUIRE(sdg_hint_within(address(i), 1) ==
            (SDG_HINT_KNOWN | SDG_HINT_MIXED | 1));
  REQUIRE(!(sdg_hint_within(address(0), 16) & SDG_HINT_GLOBAL));
  sdg_hint_forget();
}
END_TEST

// Two ranks' memory: the same tensors at other addresses.
START_TEST(contents_do_not_depend_on_the_address) {
  uint64_t found[2][4];
  for (int64_t r = 0; r < 2; r++) {
    int64_t x = r ? 30 : 0, y = r ? 4 : 20;
    sdg_hint_put_contents(address(x), 8, false, SDG_HINT_KNOWN, 1);
    sdg_hint_put_contents(address(y), 8, false, SDG_HINT_KNOWN, 2);
    sdg_hint_put_contents(address(y + 8), 4, false, SDG_HINT_KNOWN, 3);
    found[r][0] = sdg_hint_renew_contents(address(x + 2), 4, 4);
    found[r][1] = sdg_hint_renew_contents(address(x + 6), 2, 5);
    found[r][2] = sdg_hint_renew_contents(address(y), 12, 6);
    found[r][3] = sdg_hint_renew_contents(address(x), 8, 7);
    sdg_hint_forget();
  }
  for (int i = 0; i < 4; i++) {
    REQUIRE(found[0][i] && found[0][i] == found[1][i]);
    for (int k = 0; k < i; k++)
      REQUIRE(found[0][i] != found[0][k]);
  }
}
END_TEST

START_TEST(contents_differ_between_parts_of_a_tensor) {
  sdg_hint_put_contents(address(0), 16, false, SDG_HINT_KNOWN, 1);
  sdg_hint_copy(address(0), address(20), 16);
  uint64_t front = sdg_hint_renew_contents(address(0), 8, 2);
  uint64_t back = sdg_hint_renew_contents(address(8), 8, 2);
  REQUIRE(front && back && front != back);
  // A copy contains the same; of two renewed halves each is one of its own.
  REQUIRE(sdg_hint_renew_contents(address(20), 8, 3) == front);
  REQUIRE(sdg_hint_renew_contents(address(28), 8, 3) == back);
  REQUIRE(sdg_hint_renew_contents(address(0), 8, 4) ==
          sdg_hint_renew_contents(address(8), 8, 4));
  sdg_hint_forget();
}
END_TEST

START_TEST(contents_are_unknown_after_any_write) {
  sdg_hint_put_contents(address(0), 16, false, SDG_HINT_KNOWN, 1);
  sdg_hint_put(address(4), 2, false, 0);
  REQUIRE(!sdg_hint_renew_contents(address(0), 16, 2));
  REQUIRE(sdg_hint_renew_contents(address(0), 16, 3));
  REQUIRE(!sdg_hint_renew_contents(address(8), 16, 4));
  sdg_hint_put(address(8), 16, false, SDG_HINT_KNOWN);
  REQUIRE(!sdg_hint_renew_contents(address(8), 16, 5));
  sdg_hint_doubt(NULL, SIZE_MAX);
  REQUIRE(!sdg_hint_renew_contents(address(8), 16, 6));
  sdg_hint_forget();
  REQUIRE(!sdg_hint_renew_contents(address(8), 16, 7));
  sdg_hint_forget();
}
END_TEST

START_TEST(pieces_have_the_contents_that_all_of_them_have) {
  sdg_hint_t rows = SDG_HINT_KNOWN | 1;
  sdg_hint_put_contents(address(0), 16, false, rows, 1);
  REQUIRE(sdg_hint_pieces_contents(address(0), 16) == 1);
  sdg_hint_put(address(4), 4, false, 0); // by this rank alone
  sdg_hint_put_contents(address(8), 2, false, SDG_HINT_KNOWN, 2);
  REQUIRE(sdg_hint_pieces_contents(address(0), 16) == 1);
  REQUIRE(sdg_hint_pieces_contents(address(4), 6) == 0);
  sdg_hint_put_contents(address(12), 4, false, rows, 3);
  REQUIRE(sdg_hint_pieces_contents(address(0), 16) == 0);
  REQUIRE(sdg_hint_pieces_contents(address(11), 5) == 0);
  REQUIRE(sdg_hint_pieces_contents(address(12), 4) == 3);
  sdg_hint_put(address(0), 2, false, rows);
  REQUIRE(sdg_hint_pieces_contents(address(0), 12) == 0);
  sdg_hint_forget();
}
END_TEST

// Slices of one buffer that alternate: those of another are others.
START_TEST(slices_have_known_contents_only_if_one_write_covers_them) {
  sdg_hint_t rows = SDG_HINT_KNOWN | 1;
  sdg_hint_put_contents(address(0), 30, true, rows, 1);
  sdg_hint_put_contents(address(0), 30, true, rows, 2);
  REQUIRE(sdg_hint_pieces_contents(address(0), 30) == 2);
  sdg_hint_put_contents(address(10), 30, true, rows, 3);
  REQUIRE(sdg_hint_of(address(0), 40) == rows);
  REQUIRE(sdg_hint_pieces_contents(address(0), 40) == 0);
  sdg_hint_forget();
}
END_TEST

START_TEST(a_hint_needs_an_address_bytes_and_an_axis) {
  sdg_hint_put(NULL, 8, false, SDG_HINT_KNOWN);
  sdg_hint_put(address(0), 0, false, SDG_HINT_KNOWN);
  sdg_hint_put(address(0), 8, false, 0);
  REQUIRE(!sdg_hint_any());
}
END_TEST

START_TEST(writes_are_watched_without_hints_if_asked) {
  sdg_hint_watch();
  REQUIRE(sdg_hint_any());
  sdg_hint_put(address(0), 8, false, SDG_HINT_KNOWN);
  sdg_hint_put(address(0), 8, false, 0);
  REQUIRE(sdg_hint_any() && !sdg_hint_of(address(0), 8));
  sdg_hint_forget();
  REQUIRE(sdg_hint_any());
}
END_TEST

int main(void) {
  Suite *suite = suite_create("hint");
  TCase *cases = tcase_create("hint");
  tcase_add_test(cases, the_last_write_decides_the_hint);
  tcase_add_test(cases, slices_become_the_buffer_that_they_make_up);
  tcase_add_test(cases, writes_between_pieces_leave_them_pieces);
  tcase_add_test(cases, a_copy_gets_the_hint_of_its_source);
  tcase_add_test(cases, pieces_that_may_have_been_overwritten_are_in_doubt);
  tcase_add_test(cases, counts_of_sums_go_with_copies_and_end_with_writes);
  tcase_add_test(cases, a_part_that_may_have_been_overwritten_is_in_doubt);
  tcase_add_test(cases, contents_do_not_depend_on_the_address);
  tcase_add_test(cases, contents_differ_between_parts_of_a_tensor);
  tcase_add_test(cases, contents_are_unknown_after_any_write);
  tcase_add_test(cases, pieces_have_the_contents_that_all_of_them_have);
  tcase_add_test(cases,
                 slices_have_known_contents_only_if_one_write_covers_them);
  tcase_add_test(cases, a_hint_needs_an_address_bytes_and_an_axis);
  tcase_add_test(cases, writes_are_watched_without_hints_if_asked);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
