// SPDX-License-Identifier: Apache-2.0
// Sets of bytes against a set of single ones.
#include "src/geometry/spans.h"

#include <string.h>

#include "tests/unit/harness.h"

enum { BYTES = 64, STEPS = 4000 };

static bool has[BYTES];

static void compare(const sdg_spans_t *spans) {
  for (size_t i = 0; i < spans->count; i++) {
    REQUIRE(spans->span[i].bytes > 0);
    REQUIRE(i == 0 || spans->span[i - 1].at + spans->span[i - 1].bytes <
                          spans->span[i].at);
  }
  for (int from = 0; from < BYTES; from++)
    for (int bytes = 1; bytes <= BYTES - from; bytes += 5) {
      bool all = true, any = false;
      for (int i = from; i < from + bytes; i++) {
        all &= has[i];
        any |= has[i];
      }
      sdg_span_t span = {1000 + (uintptr_t)from, (size_t)bytes};
      REQUIRE(sdg_spans_contain(spans, span) == all);
      REQUIRE(sdg_spans_overlap(spans, span) == any);
    }
}

START_TEST(sets_are_those_of_single_bytes) {
  sdg_spans_t spans = {.count = 0};
  srand(7);
  for (int64_t step = 0; step < random_cases(STEPS); step++) {
    int from = rand() % BYTES, bytes = rand() % (BYTES - from + 1);
    bytes = rand() % 3 ? bytes % 9 : bytes;
    bool add = rand() % 2;
    sdg_span_t span = {1000 + (uintptr_t)from, (size_t)bytes};
    REQUIRE(add ? sdg_spans_add(&spans, span) : sdg_spans_remove(&spans, span));
    memset(has + from, add, (size_t)bytes);
    compare(&spans);
  }
  sdg_spans_fini(&spans);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("spans");
  TCase *cases = tcase_create("spans");
  tcase_add_test(cases, sets_are_those_of_single_bytes);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
