// SPDX-License-Identifier: Apache-2.0
// Random graphs against loops over doubles.
#include <stdio.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 20 };

START_TEST(random_graphs_compute_what_their_nodes_say) {
  for (int64_t i = 0, n = random_cases(50); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 4000000;
    case_seed(seed);
    made_t m;
    draw_graph(&m);
    m.part = case_range(0, 1) ? case_range(1, 300) : 0;
    char name[32];
    snprintf(name, sizeof name, "graph %lu", seed);
    reference_run(&m, name);
    made_destroy(&m);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_random");
  TCase *tests = tcase_create("random");
  tcase_add_loop_test(tests, random_graphs_compute_what_their_nodes_say, 0,
                      BLOCKS);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
