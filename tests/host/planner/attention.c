// SPDX-License-Identifier: Apache-2.0
// Prints random graphs of attention.
//
// usage: attention SEED COUNT
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/attention/attend.h"
#include "tests/host/planner/print.h"

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
  return planner_print(argc, argv, draw);
}
