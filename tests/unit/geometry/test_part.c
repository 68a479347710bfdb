// SPDX-License-Identifier: Apache-2.0
// Parts: methods, alignment, the words of `parts =`, formatting.
#include "src/geometry/part.h"

#include <string.h>

#include "tests/unit/random.h"

enum { CASES = 100000 };

// Parses and formats: "300+300" or the failure's text.
static const char *parsed(const char *text, int64_t extent, int pieces) {
  static char out[256];
  sdg_part_t part;
  if (sdg_part_parse(text, extent, pieces, &part) != SDG_OK)
    return sdg_last_error();
  sdg_part_format(&part, out, sizeof out);
  sdg_part_fini(&part);
  return out;
}

START_TEST(words_are_split_at_separators) {
  static const struct {
    const char *text;
    int64_t extent;
    int pieces;
    const char *part;
  } good[] = {
      {"even", 10, 4, "3+3+2+2"},
      {" even ", 10, 4, "3+3+2+2"},
      {"chunk", 10, 4, "3+3+3+1"},
      {"chunk", 5, 4, "2+2+1+0"},
      {"even", 5, 4, "2+1+1+1"},
      {"even", 2, 4, "1+1+0+0"},
      {"even", 0, 3, "0+0+0"},
      {"even", 7, 1, "7"},
      {"even/32", 70, 3, "32+32+6"},
      {"even / 32", 128, 3, "64+32+32"},
      {"even/1", 10, 4, "3+3+2+2"},
      {"even/1000", 10, 2, "10+0"},
      {"even/9223372036854775807", 10, 2, "10+0"},
      {"300,300,212,212", 1024, 4, "300+300+212+212"},
      {" 5 , 0 ,5 ", 10, 3, "5+0+5"},
      {"0,0", 0, 2, "0+0"},
      {"010", 10, 1, "10"},
      {"9223372036854775807", INT64_MAX, 1, "9223372036854775807"},
  };
  for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert_str_eq(parsed(good[i].text, good[i].extent, good[i].pieces),
                     good[i].part);
}
END_TEST

START_TEST(listed_numbers_add_up) {
  ck_assert_int_eq(sdg_part_listed(" 5 , 0 ,7"), 12);
  ck_assert_int_eq(sdg_part_listed("0"), 0);
  ck_assert_int_eq(sdg_part_listed("9223372036854775807,1"), INT64_MAX);
  ck_assert_int_eq(sdg_part_listed("even/32"), -1);
  ck_assert_int_eq(sdg_part_listed("agree"), -1);
}
END_TEST

START_TEST(bad_text_is_refused_by_its_fault) {
  static const struct {
    const char *text;
    int64_t extent;
    int pieces;
    const char *says;
  } bad[] = {
      {"", 10, 2, "number 1 of \"\", \"\", is not a size"},
      {"  ", 10, 2, "number 1"},
      {"agree", 10, 2, "number 1 of \"agree\", \"agree\", is not a size"},
      {"evenly", 10, 2, "is not a size"},
      {"Even", 10, 2, "is not a size"},
      {"even 3", 10, 2, "is not a size"},
      {"even,5", 10, 2, "number 1 of \"even,5\", \"even\", is not a size"},
      {"even/", 10, 2, "a unit is a number"},
      {"even/0", 10, 2, "a unit is a number"},
      {"even/-1", 10, 2, "a unit is a number"},
      {"even/x", 10, 2, "a unit is a number"},
      {"even/4x", 10, 2, "a unit is a number"},
      {"even/4,4", 10, 2, "a unit is a number"},
      {"even/99999999999999999999", 10, 2, "a unit is a number"},
      {"chunk/4", 10, 2, "a unit is a number"},
      {"5,5,", 10, 2, "number 3 of \"5,5,\", \"\", is not a size"},
      {",5,5", 10, 2, "number 1"},
      {"5,,5", 10, 2, "number 2 of \"5,,5\", \"\", is not a size"},
      {"5;5", 10, 2, "number 1 of \"5;5\", \"5;5\", is not a size"},
      {"5 5", 10, 2, "number 1 of \"5 5\", \"5 5\", is not a size"},
      {"5,-5", 10, 2, "number 2 of \"5,-5\", \"-5\", is not a size"},
      {"5,+5", 10, 2, "number 2"},
      {"5,5.0", 10, 2, "number 2 of \"5,5.0\", \"5.0\", is not a size"},
      {"5,0x5", 10, 2, "number 2"},
      {"99999999999999999999", 10, 1, "number 1"},
      {"5,5", 10, 3, "has 2 numbers; 3 are needed"},
      {"5,5,0", 10, 2, "has more than 2 numbers"},
      {"5,6", 10, 2, "number 2 of \"5,6\" goes beyond the extent, which is 10"},
      {"5,9223372036854775807", 10, 2, "number 2"},
      {"5,4", 10, 2, "add up to 9; the extent is 10"},
      {"even", -1, 2, "extent -1"},
      {"even", 10, 0, "0 pieces"},
      {"10", 10, 0, "0 pieces"},
  };
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sdg_part_t part = {.pieces = -7};
    ck_assert_msg(sdg_part_parse(bad[i].text, bad[i].extent, bad[i].pieces,
                                 &part) == SDG_E_PARTS,
                  "%s", bad[i].text);
    ck_assert_msg(strstr(sdg_last_error(), bad[i].says), "%s: %s", bad[i].text,
                  sdg_last_error());
    ck_assert_int_eq(part.pieces, -7);
  }
}
END_TEST

START_TEST(sizes_must_not_be_negative_nor_overflow) {
  sdg_part_t part;
  ck_assert(sdg_part_from_sizes(2, (int64_t[]){3, -1}, &part) == SDG_E_PARTS);
  ck_assert(strstr(sdg_last_error(), "size 2 of 2 is -1"));
  ck_assert(sdg_part_from_sizes(2, (int64_t[]){INT64_MAX, 1}, &part) ==
            SDG_E_PARTS);
}
END_TEST

START_TEST(division_is_ordered_aligned_and_complete) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    int64_t extent = random_in(0, 300), align = random_in(1, 40);
    int pieces = (int)random_in(1, 9);
    sdg_part_method_t method = random_in(0, 1) ? SDG_PART_EVEN : SDG_PART_CHUNK;
    sdg_part_t part;
    REQUIRE(sdg_part_divide(extent, pieces, method, align, &part) == SDG_OK);
    REQUIRE(part.pieces == pieces && part.offset[0] == 0);
    REQUIRE(sdg_part_extent(&part) == extent);
    int64_t units = (extent + align - 1) / align, left = units;
    for (int p = 0; p < pieces; p++) {
      int64_t want = method == SDG_PART_EVEN
                         ? units / pieces + (p < units % pieces)
                         : (units + pieces - 1) / pieces;
      want = want < left ? want : left;
      left -= want;
      int64_t size = sdg_part_size(&part, p);
      REQUIRE((size + align - 1) / align == want);
      REQUIRE(part.offset[p] % align == 0 || part.offset[p] == extent);
    }
    sdg_part_fini(&part);
  }
}
END_TEST

START_TEST(copies_are_equal_and_their_own) {
  sdg_part_t a, b;
  ck_assert(sdg_part_from_sizes(3, (int64_t[]){4, 0, 6}, &a) == SDG_OK);
  ck_assert(sdg_part_copy(&a, &b) == SDG_OK);
  ck_assert(sdg_part_equal(&a, &b));
  b.offset[1] = 5;
  ck_assert(!sdg_part_equal(&a, &b));
  ck_assert_int_eq(a.offset[1], 4);
  sdg_part_fini(&b);
  sdg_part_fini(&b); // again is fine
  ck_assert(sdg_part_from_sizes(2, (int64_t[]){4, 6}, &b) == SDG_OK);
  ck_assert(!sdg_part_equal(&a, &b));
  sdg_part_fini(&a);
  sdg_part_fini(&b);
}
END_TEST

START_TEST(format_fits_any_buffer) {
  sdg_part_t part;
  ck_assert(sdg_part_from_sizes(4, (int64_t[]){300, 300, 212, 212}, &part) ==
            SDG_OK);
  static const char whole[] = "300+300+212+212";
  for (int bytes = 0; bytes <= (int)sizeof whole + 2; bytes++) {
    char out[32];
    memset(out, '#', sizeof out);
    sdg_part_format(&part, out, bytes);
    ck_assert_int_eq(out[bytes], '#');
    if (bytes == 0)
      continue;
    ck_assert_int_lt((int)strlen(out), bytes);
    if (bytes >= (int)sizeof whole)
      ck_assert_str_eq(out, whole);
    else if (bytes >= 4)
      ck_assert_str_eq(out + strlen(out) - 3, "...");
  }
  char out[12];
  sdg_part_format(&part, out, sizeof out);
  ck_assert_str_eq(out, "300+300...");
  sdg_part_fini(&part);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("part");
  TCase *cases = tcase_create("part");
  tcase_set_timeout(cases, 120);
  tcase_add_test(cases, words_are_split_at_separators);
  tcase_add_test(cases, listed_numbers_add_up);
  tcase_add_test(cases, bad_text_is_refused_by_its_fault);
  tcase_add_test(cases, sizes_must_not_be_negative_nor_overflow);
  tcase_add_test(cases, division_is_ordered_aligned_and_complete);
  tcase_add_test(cases, copies_are_equal_and_their_own);
  tcase_add_test(cases, format_fits_any_buffer);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
