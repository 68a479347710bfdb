// SPDX-License-Identifier: Apache-2.0
// The table of failures and the way a failure is reported.
#include "src/status.h"

#include <string.h>

#include "tests/unit/harness.h"

START_TEST(codes_are_unique_and_ascending) {
  int last = 0;
  const sdg_error_info_t *info;
  for (unsigned i = 0; (info = sdg_error_at(i)); i++) {
    ck_assert_int_gt((int)info->status, last);
    last = (int)info->status;
  }
  ck_assert_int_gt(last, 0);
}
END_TEST

START_TEST(every_row_has_a_summary_and_a_remedy) {
  const sdg_error_info_t *info;
  for (unsigned i = 0; (info = sdg_error_at(i)); i++) {
    ck_assert_msg(strlen(info->summary) > 5, "%s", info->name);
    ck_assert_msg(info->summary[strlen(info->summary) - 1] != '.', "%s",
                  info->name);
    ck_assert_msg(strlen(info->remedy) > 20, "%s", info->name);
  }
}
END_TEST

START_TEST(a_failure_keeps_code_and_details) {
  ck_assert_int_eq((int)sdg_fail(SDG_E_INTERNAL, "of kind %d", 7),
                   (int)SDG_E_INTERNAL);
  ck_assert_str_eq(sdg_last_error(), "SDG-002 internal error: of kind 7");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("status");
  TCase *cases = tcase_create("status");
  tcase_add_test(cases, codes_are_unique_and_ascending);
  tcase_add_test(cases, every_row_has_a_summary_and_a_remedy);
  tcase_add_test(cases, a_failure_keeps_code_and_details);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
