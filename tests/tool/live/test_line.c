// SPDX-License-Identifier: Apache-2.0
// What the line of `sundog run --progress` says of ranks, and when it may be
// drawn.
#include <stdio.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/unit/harness.h"
#include "tools/live/cursor.h"
#include "tools/live/line.h"

enum { RANKS = 64 };
static rank_rates_t rank[RANKS];
static rates_t rates;

// `size` ranks in step, which wait for `part` of the time.
static void in_step(int size, double calls_s, double part) {
  memset(rank, 0, sizeof rank);
  rates =
      (rates_t){.size = size, .known = true, .bytes_s = 12.34e6, .rank = rank};
  for (int r = 0; r < size; r++)
    rank[r] = (rank_rates_t){.presence = PRESENCE_HERE,
                             .calls_s = calls_s,
                             .waits_part = part,
                             .number = 314,
                             .name = "cudnnPoolingForward"};
}

static void is_line(int width, const char *text) {
  char line[LINE_BYTES];
  line_write(&rates, 41, width, line);
  ck_assert_str_eq(line, text);
}

START_TEST(ranks_in_step_are_one_number) {
  in_step(4, 812.3, 0.03);
  is_line(100, "sundog: 4 ranks x 812 calls/s, waiting 3%, 12.3 MB/s, 0:41");
  rank[1].calls_s = 805; // seen a call earlier
  is_line(100, "sundog: 4 ranks x 809 calls/s, waiting 3%, 12.3 MB/s, 0:41");
  in_step(1, 0.25, 0);
  is_line(100, "sundog: 1 rank x 0.25 calls/s, 0:41");
}
END_TEST

START_TEST(many_ranks_are_a_range_and_the_slowest) {
  in_step(RANKS, 812, 0.4);
  rank[12].waits_part = 0.031;
  rank[12].calls_s = 750;
  rank[63].waits_part = 0.45;
  is_line(79, "sundog: 64 ranks x 750-812 calls/s, waiting 3-45%, slowest rank "
              "12, 12.3 MB/s");
  rank[13].waits_part = 0.05;
  is_line(100, "sundog: 64 ranks x 750-812 calls/s, waiting 3-45%, slowest "
               "ranks 12, 13, 12.3 MB/s, 0:41");
}
END_TEST

START_TEST(a_small_difference_names_no_rank) {
  bool is[RANKS];
  in_step(4, 812, 0.4);
  rank[2].waits_part = 0.31;
  ck_assert_int_eq(line_slowest(&rates, is), 0);
  rank[2].waits_part = 0.29;
  ck_assert_int_eq(line_slowest(&rates, is), 1);
  ck_assert(is[2]);
  // More than half of the ranks: one of them is fast, none slow.
  rank[0].waits_part = rank[1].waits_part = 0.29;
  ck_assert_int_eq(line_slowest(&rates, is), 0);
  // A rank that has ended waits for nobody.
  in_step(4, 812, 0.4);
  rank[2] = (rank_rates_t){.presence = PRESENCE_ENDED};
  ck_assert_int_eq(line_slowest(&rates, is), 0);
}
END_TEST

START_TEST(no_number_is_cut) {
  static const char whole[] =
      "sundog: 4 ranks x 812 calls/s, waiting 3-40%, slowest rank 2, 12.3 "
      "MB/s, 0:41";
  char line[LINE_BYTES];
  in_step(4, 812, 0.4);
  rank[2].waits_part = 0.03;
  for (int width = 0; width <= (int)sizeof whole; width++) {
    line_write(&rates, 41, width, line);
    size_t bytes = strlen(line);
    ck_assert_int_le((int)bytes, width);
    ck_assert(strncmp(line, whole, bytes) == 0);
    // It ends where a part of it ends.
    ck_assert(whole[bytes] == ',' || whole[bytes] == '\0' || bytes <= 15);
  }
  ck_assert_str_eq(line, whole);
}
END_TEST

START_TEST(ranks_that_have_not_joined_are_named) {
  in_step(4, 0, 0);
  for (int r = 0; r < 4; r++)
    rank[r].presence = PRESENCE_ABSENT;
  is_line(100, "sundog: no rank has made a tagged call yet, 0:41");
  rank[0].presence = rank[1].presence = rank[3].presence = PRESENCE_COMING;
  is_line(100, "sundog: 3 of 4 ranks have joined, rank 2 has not, 0:41");
  rank[2].presence = PRESENCE_ENDED;
  is_line(100, "sundog: 3 of 4 ranks have joined, rank 2 has ended, 0:41");
  // All have just come: there are no rates yet.
  for (int r = 0; r < 4; r++)
    rank[r].presence = PRESENCE_HERE;
  rates.known = false;
  is_line(100, "sundog: 4 of 4 ranks have joined, 0:41");
  for (int r = 0; r < 4; r++)
    rank[r].presence = PRESENCE_ENDED;
  is_line(100, "sundog: 4 of 4 ranks have ended, 0:41");
}
END_TEST

START_TEST(ranks_that_stand_still_are_placed) {
  in_step(4, 0, 0);
  rates.still_s = 11;
  is_line(200, "sundog: no call for 11 s, all 4 ranks are busy since call 314 "
               "cudnnPoolingForward, 0:41");
  rank[0].waits = rank[1].waits = rank[3].waits = true;
  rank[2].number = 313;
  is_line(200, "sundog: no call for 11 s, rank 2 is busy since call 313 "
               "cudnnPoolingForward, ranks 0, 1, 3 wait at call 314 "
               "cudnnPoolingForward, 0:41");
  is_line(79, "sundog: no call for 11 s, rank 2 is busy since call 313 "
              "cudnnPoolingForward");
  rank[2].stopped = true;
  is_line(60, "sundog: no call for 11 s, rank 2 is stopped by a signal");
}
END_TEST

START_TEST(waits_are_a_part_of_the_time) {
  rank_now_t before = {.state = SDG_LIVE_JOINED}, after = before;
  after.stream_wait_ns[0] = 300;
  after.host_wait_ns[0] = 200;
  after.host_wait_ns[3] = 400;
  ck_assert(rates_waits(&before, &after, 1000) == 0.4);
  after.stream_wait_ns[0] = 1700; // of more than this second
  ck_assert(rates_waits(&before, &after, 1000) == 1);
}
END_TEST

// A second of a rank: 100 calls with 1000 bytes, half of it waiting.
static void second_pass(sdg_live_t *live, int r) {
  sdg_live_thread_t *thread = live->rank[r].thread;
  sdg_live_add(&thread[0].calls, 60);
  sdg_live_add(&thread[3].calls, 40);
  sdg_live_add(&thread[0].received_bytes, 1000);
  sdg_live_add(&thread[3].stream_wait_ns, 500000000);
}

START_TEST(rates_are_those_of_the_last_seconds) {
  const int64_t second = 1000000000;
  sdg_live_t *live;
  samples_t *samples;
  const rates_t *now;
  OK(totals_create(2, &live));
  OK(rates_create(2, "/nowhere", &samples));
  now = rates_take(samples, live, 0);
  ck_assert(!now->known && now->rank[0].presence == PRESENCE_ABSENT);
  live->rank[0].state = live->rank[1].state = SDG_LIVE_JOINED;
  second_pass(live, 0);
  // What was before all had joined is no rate.
  now = rates_take(samples, live, second);
  ck_assert(!now->known && now->rank[0].presence == PRESENCE_HERE);
  for (int s = 2; s < 10; s++) {
    second_pass(live, 0);
    if (s >= 8) // and before it rank 1 does nothing
      second_pass(live, 1);
    now = rates_take(samples, live, s * second);
    ck_assert(now->known && now->still_s == 0);
    ck_assert(now->rank[0].calls_s == 100 && now->rank[0].waits_part == 0.5);
    ck_assert_double_eq_tol(now->bytes_s,
                            s < 8 ? 1000 : (s - 7 + 3) * 1000. / 3, 1e-6);
    ck_assert_double_eq_tol(now->rank[1].calls_s,
                            s < 8 ? 0 : (s - 7) * 100. / 3, 1e-6);
  }
  // A wait in progress counts, and nothing moves.
  live->rank[1].thread[0].waits_since_ns = 9 * second;
  now = rates_take(samples, live, 12 * second);
  ck_assert(now->still_s == 3);
  ck_assert(now->rank[1].waits && !now->rank[0].waits);
  ck_assert(now->rank[1].waits_part == 3. / 5);
  // Another process of the rank: the totals go on, the rates begin again.
  live->rank[1].state = SDG_LIVE_LEFT;
  now = rates_take(samples, live, 13 * second);
  ck_assert(!now->known && now->rank[1].presence == PRESENCE_ENDED);
}
END_TEST

static const struct {
  const char *text;
  bool in_line, taken;
} texts[] = {
    {"", false, false},
    {"a line\n", false, false},
    {"a line\r\n", false, false},
    {"name? ", true, false},
    {" 40%\r", true, false},
    {"\x1b[31mred\x1b[0m\n", false, false},
    {"red\n\x1b[0m\x1b[K", false, false},
    {"\x1b]0;a title\a", false, false},
    {"\x1b]0;a title\x1b\\", false, false},
    {"\x1b(B\x1b[m", false, false}, // `tput sgr0`
    {"bold\x1b(B\x1b[m\n", false, false},
    {"\x1b)0\x1b*0\x1b+0", false, false},
    {"two bars\n\x1b[2A", false, true},
    {"\x1b[?1049h", false, true},
    {"\x1b"
     "7",
     false, true},
};

START_TEST(the_cursor_is_followed) {
  cursor_t cursor = {.in_line = false};
  const char *text = texts[_i].text;
  for (size_t i = 0; text[i]; i++) // in parts
    cursor_follow(&cursor, text + i, 1);
  ck_assert_int_eq(cursor.in_line, texts[_i].in_line);
  ck_assert_int_eq(cursor.taken, texts[_i].taken);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("line");
  TCase *cases = tcase_create("line");
  tcase_add_test(cases, ranks_in_step_are_one_number);
  tcase_add_test(cases, many_ranks_are_a_range_and_the_slowest);
  tcase_add_test(cases, a_small_difference_names_no_rank);
  tcase_add_test(cases, no_number_is_cut);
  tcase_add_test(cases, ranks_that_have_not_joined_are_named);
  tcase_add_test(cases, ranks_that_stand_still_are_placed);
  tcase_add_test(cases, waits_are_a_part_of_the_time);
  tcase_add_test(cases, rates_are_those_of_the_last_seconds);
  tcase_add_loop_test(cases, the_cursor_is_followed, 0,
                      sizeof texts / sizeof *texts);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
