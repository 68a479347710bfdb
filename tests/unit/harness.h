/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of tests share: one main with TAP on stdout, a cheap assertion,
 * the number of random cases, limits of time. */
#ifndef SDG_TESTS_UNIT_HARNESS_H
#define SDG_TESTS_UNIT_HARNESS_H

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Check's assertions tell the parent process about every success; millions of
 * them take minutes. This one speaks only when it fails. */
#define REQUIRE(condition) REQUIRE_MSG((condition), "%s is false", #condition)
#define REQUIRE_MSG(condition, ...)                                            \
  do {                                                                         \
    if (!(condition))                                                          \
      ck_abort_msg(__VA_ARGS__);                                               \
  } while (0)

/* How many times as many cases as usual are asked for: SDG_TEST_CASES. */
static inline double cases_factor(void) {
  const char *text = getenv("SDG_TEST_CASES");
  double factor = text ? atof(text) : 0;
  return factor > 0 ? factor : 1;
}

/* Cases of a test: SDG_TEST_CASES times the default if that is set. */
static inline int64_t random_cases(int64_t cases) {
  double factor = cases_factor();
  return factor != 1 ? (int64_t)((double)cases * factor) + 1 : cases;
}

/* Whether the next one of all cases is tested, where only `share` of them are:
 * cases that are equally far apart. io_due begins with 1. */
static inline bool case_is_due(double share, double *io_due) {
  *io_due += share;
  bool is_due = *io_due >= 1;
  if (is_due)
    *io_due = *io_due < 2 ? *io_due - 1 : 1;
  return is_due;
}

/* A limit catches a test that hangs, not a machine that is busy or a program
 * that is instrumented: Check's own, four seconds, would. It reads these when a
 * case is created, hence before main. */
__attribute__((constructor)) static void harness_patience(void) {
  setenv("CK_DEFAULT_TIMEOUT", "30", 0);
  setenv("CK_TIMEOUT_MULTIPLIER", "4", 0);
}

/* A time that something must not take, in seconds: longer where Check is told
 * to be patient with instrumented programs. */
static inline double harness_soon(double seconds) {
  const char *text = getenv("CK_TIMEOUT_MULTIPLIER");
  double factor = text ? atof(text) / 4 : 1;
  return factor > 1 ? seconds * factor : seconds;
}

/* What follows ends this process by SIGSEGV under sanitizers, too, which would
 * make an exit of it. */
static inline void harness_crash_plainly(void) {
  signal(SIGSEGV, SIG_DFL);
}

/* Runs the tests of `suite`; returns main's exit status. Check forks each test,
 * so a crash is one failure. */
static inline int harness_run(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_set_tap(runner, "-");
  srunner_run_all(runner, CK_SILENT);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
