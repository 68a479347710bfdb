/* SPDX-License-Identifier: Apache-2.0 */
/* One main for the unit tests: TAP on stdout, one case per behaviour. */
#ifndef SDG_TESTS_UNIT_HARNESS_H
#define SDG_TESTS_UNIT_HARNESS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* A limit catches a test that hangs, not a machine that is busy or a program
 * that is instrumented: Check's own, four seconds, would. It reads these when a
 * case is created, hence before main. */
__attribute__((constructor)) static void harness_patience(void) {
  setenv("CK_DEFAULT_TIMEOUT", "30", 0);
  setenv("CK_TIMEOUT_MULTIPLIER", "4", 0);
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
