// SPDX-License-Identifier: Apache-2.0
// The report that a rank writes at its end: which file it is.
#include "src/observe/report.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "src/base/options.h"
#include "tests/unit/harness.h"
#include "tests/unit/job.h"

enum { NUMBERS = 9999 }; // that a rank's reports may have

static char folder[] = "/tmp/sdg-reports-XXXXXX", path[PATH_MAX];

// Borrowed until the next call.
static const char *report_path(int number) {
  if (number == 1)
    snprintf(path, sizeof path, "%s/rank-0.json", folder);
  else
    snprintf(path, sizeof path, "%s/rank-0-%d.json", folder, number);
  return path;
}

static void others_make(int count) {
  for (int i = 1; i <= count; i++) {
    FILE *file = fopen(report_path(i), "w");
    REQUIRE(file && fputs("another's", file) >= 0 && fclose(file) == 0);
  }
}

static bool is_anothers(int number) {
  char text[16] = "";
  FILE *file = fopen(report_path(number), "r");
  bool read = file && fgets(text, sizeof text, file);
  if (file)
    fclose(file);
  return read && strcmp(text, "another's") == 0;
}

static void report_make(void) {
  char option[PATH_MAX];
  snprintf(option, sizeof option, "SUNDOG_REPORT=%s", folder);
  char split[] = "SUNDOG_SPLIT=H";
  REQUIRE(!sdg_options_load((char *[]){split, option, NULL}));
  sdg_report_begin();
  sdg_report_write(0);
}

static void setup(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
  for (int i = 1; i <= NUMBERS; i++)
    (void)unlink(report_path(i));
  rmdir(folder);
}

static void second_body(int rank) {
  (void)rank;
  others_make(1);
  report_make();
  REQUIRE(sdg_report_process() == 2);
  REQUIRE(is_anothers(1) && !is_anothers(2) && access(path, F_OK) == 0);
}

START_TEST(a_later_process_of_a_rank_has_a_file_of_its_own) {
  job_run("y=1", 1, "20", second_body);
}
END_TEST

static void full_body(int rank) {
  (void)rank;
  others_make(NUMBERS);
  report_make();
  REQUIRE(strstr(sdg_last_error(), "File exists"));
  REQUIRE(sdg_report_process() == 0);
  for (int i = 1; i <= NUMBERS; i++)
    REQUIRE(is_anothers(i));
}

START_TEST(no_report_is_overwritten_when_all_numbers_are_taken) {
  job_run("y=1", 1, "20", full_body);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("report");
  TCase *cases = tcase_create("report");
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, a_later_process_of_a_rank_has_a_file_of_its_own);
  tcase_add_test(cases, no_report_is_overwritten_when_all_numbers_are_taken);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
