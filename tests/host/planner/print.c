// SPDX-License-Identifier: Apache-2.0
// The arguments and the output of programs that draw graphs.
#include "tests/host/planner/print.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/host/cudnn/plan/plan.h"

int planner_print(int argc, char **argv, planner_draw_t *draw) {
  if (argc != 3)
    return 2;
  uint64_t seed = strtoull(argv[1], NULL, 10);
  for (long i = 0, count = atol(argv[2]); i < count; i++) {
    made_t m;
    const sdg_graph_config_t none = {0};
    draw(&m, seed + (uint64_t)i);
    const char *why = host_plan_refuses(&m.graph);
    char *text = host_plan_write(&m.graph, &none, NULL);
    if (!text)
      return 2;
    printf("%s\t%s\n", why ? why : "taken", text);
    free(text);
    made_destroy(&m);
  }
  return 0;
}
