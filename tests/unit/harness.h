/* SPDX-License-Identifier: Apache-2.0 */
/* One main for the unit tests: TAP on stdout, one case per behaviour. */
#ifndef SDG_TESTS_UNIT_HARNESS_H
#define SDG_TESTS_UNIT_HARNESS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

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
