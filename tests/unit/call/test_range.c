// SPDX-License-Identifier: Apache-2.0
// Tags of memory, against a table of bytes.
#include "src/call/range.h"

#include <string.h>

#include "tests/unit/random.h"

enum { BYTES = 48, TAGS = 3, FIRST = 4096 };

static const void *address(int64_t byte) {
  return (const void *)(uintptr_t)(FIRST + byte);
}

// The tag of a byte, and the number of the call that set it.
typedef struct said {
  const sdg_tag_label_t *label;
  int64_t by;
} said_t;

START_TEST(the_last_tag_of_memory_holds) {
  static const sdg_tag_label_t tag[TAGS];
  said_t table[BYTES] = {{NULL, -1}};
  for (int64_t n = random_cases(20000), call = 1; n > 0; n--, call++) {
    int64_t at = random_in(0, BYTES - 1), bytes = random_in(1, BYTES - at);
    const sdg_tag_label_t *label =
        random_in(0, 2) ? &tag[random_in(0, TAGS - 1)] : NULL;
    REQUIRE(!sdg_range_set(address(at), (size_t)bytes, label));
    // Tags of ranges that overlap it are removed as a whole.
    for (int64_t i = at; i < at + bytes; i++)
      for (int64_t k = 0, by = table[i].by; k < BYTES && table[i].label; k++)
        if (table[k].by == by && k != i)
          table[k].label = NULL;
    for (int64_t i = at; i < at + bytes; i++)
      table[i] = (said_t){label, call};
    for (int64_t i = 0; i < BYTES; i++)
      REQUIRE(sdg_range_label(address(i)) == table[i].label);
    REQUIRE(!sdg_range_label(address(-1)) && !sdg_range_label(address(BYTES)));
  }
  REQUIRE(sdg_range_any());
}
END_TEST

START_TEST(a_range_without_memory_is_not_tagged) {
  static const sdg_tag_label_t tag;
  REQUIRE(sdg_range_set(NULL, 8, &tag) == SDG_E_TAG);
  REQUIRE(sdg_range_set(address(0), 0, &tag) == SDG_E_TAG);
  REQUIRE(sdg_range_set(address(0), SIZE_MAX, &tag) == SDG_E_TAG);
  REQUIRE(!sdg_range_set(address(0), 8, NULL));
  REQUIRE(!sdg_range_any());
}
END_TEST

int main(void) {
  Suite *suite = suite_create("range");
  TCase *cases = tcase_create("range");
  tcase_add_test(cases, the_last_tag_of_memory_holds);
  tcase_add_test(cases, a_range_without_memory_is_not_tagged);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
