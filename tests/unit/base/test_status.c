// SPDX-License-Identifier: Apache-2.0
// The table of failures, and how a failure is reported.
#include "src/base/status.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
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

// Reads what a pipe holds.
static const char *read_out(int file) {
  static char text[65536];
  ssize_t n = read(file, text, sizeof text - 1);
  text[n > 0 ? n : 0] = '\0';
  return text;
}

START_TEST(a_message_goes_to_the_first_file_that_can_be_written) {
  int first[2], second[2];
  char page[4096] = {0};
  ck_assert_int_eq(pipe2(first, O_NONBLOCK), 0);
  ck_assert_int_eq(pipe2(second, O_NONBLOCK), 0);
  sdg_log_set_files(first[1], second[1]);
  sdg_log("one");
  ck_assert_str_eq(read_out(first[0]), "sundog: one\n");
  while (write(first[1], page, sizeof page) > 0)
    continue;
  sdg_log("the first is full");
  ck_assert_str_eq(read_out(second[0]), "sundog: the first is full\n");
  close(first[0]);
  sdg_log("nobody reads the first");
  ck_assert_str_eq(read_out(second[0]), "sundog: nobody reads the first\n");
  // Another file gets its number.
  ck_assert_int_eq(dup2(open("/dev/null", O_RDWR), first[1]), first[1]);
  sdg_log("the first is another file");
  ck_assert_str_eq(read_out(second[0]), "sundog: the first is another file\n");
  // The second one is gone, too: messages go to standard error.
  int before = dup(STDERR_FILENO);
  sdg_log_set_files(-1, second[1]);
  close(second[0]);
  ck_assert_int_eq(pipe2(first, O_NONBLOCK), 0);
  dup2(first[1], STDERR_FILENO);
  sdg_log("nobody reads the second");
  dup2(before, STDERR_FILENO);
  ck_assert_str_eq(read_out(first[0]), "sundog: nobody reads the second\n");
  sdg_log_set_files(-1, -1);
}
END_TEST

START_TEST(a_probe_says_nothing_but_its_status) {
  (void)sdg_fail(SDG_E_INTERNAL, "before");
  sdg_probe_begin();
  sdg_probe_begin();
  ck_assert_int_eq((int)sdg_fail(SDG_E_EXTENTS, "asked"), (int)SDG_E_EXTENTS);
  sdg_probe_end();
  ck_assert_int_eq((int)sdg_fail(SDG_E_EXTENTS, "asked"), (int)SDG_E_EXTENTS);
  ck_assert_str_eq(sdg_last_error(), "SDG-002 internal error: before");
  ck_assert_int_eq((int)sdg_fail(SDG_E_NO_MEMORY, "no answer"),
                   (int)SDG_E_NO_MEMORY);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "no answer"));
  sdg_probe_end();
  (void)sdg_fail(SDG_E_INTERNAL, "after");
  ck_assert_str_eq(sdg_last_error(), "SDG-002 internal error: after");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("status");
  TCase *cases = tcase_create("status");
  tcase_add_test(cases, codes_are_unique_and_ascending);
  tcase_add_test(cases, every_row_has_a_summary_and_a_remedy);
  tcase_add_test(cases, a_failure_keeps_code_and_details);
  tcase_add_test(cases, a_message_goes_to_the_first_file_that_can_be_written);
  tcase_add_test(cases, a_probe_says_nothing_but_its_status);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
