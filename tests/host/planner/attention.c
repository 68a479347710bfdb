// SPDX-License-Identifier: Apache-2.0
// Prints random graphs of attention, as graphs.c does.
//
// usage: attention SEED COUNT
#include <stdio.h>
#include <stdlib.h>

#include "src/host/cudnn/plan/plan.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/attention/attend.h"

// Forward, backward or as one operation; some that no engine takes.
static void draw(made_t *m, uint64_t seed) {
  case_seed(seed);
  attend_t a = attend_draw();
  a.layout = MADE_DENSE; // NVIDIA's planner crashes on others
  a.rows = case_range(1, 300);
  a.columns = case_range(1, 300);
  a.d = case_range(1, 36) * (case_range(0, 9) ? 8 : 4);
  a.d_v = case_range(0, 1) ? a.d : case_range(1, 36) * 8;
  if (a.rows * a.columns == 1 || (a.bottom && a.rows > a.columns))
    a.rows = a.columns = 48;
  switch (case_range(0, 2)) {
  case 0:
    (void)attend_forward(m, &a);
    break;
  case 1:
    (void)attend_backward(m, &a);
    break;
  default:
    a.causal = a.bias = false;
    a.left = 0;
    (void)attend_as_one(m, &a);
  }
  for (int t = 0; t < m->graph.tensor_count; t++)
    m->graph.tensor[t].alignment = 16;
}

int main(int argc, char **argv) {
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
