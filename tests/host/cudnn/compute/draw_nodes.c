// SPDX-License-Identifier: Apache-2.0
// Random operation graphs around other nodes than convolutions.
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"

/* Batch extents of an operand that divide c's. */
static int64_t shared(int64_t extent) {
  int choice = case_range(0, 3);
  return choice == 0 ? 1 : choice == 1 && extent % 2 == 0 ? extent / 2 : extent;
}

static int product(made_t *m, bool last) {
  int rank = case_range(2, 5), matrix = rank - 2, row = rank - 1;
  sdg_graph_tensor_t like = {.rank = rank};
  int64_t a[MADE_RANK], b[MADE_RANK];
  for (int d = 0; d < matrix; d++) {
    like.dim[d] = case_range(1, 4);
    a[d] = shared(like.dim[d]);
    b[d] = a[d] == like.dim[d] ? shared(like.dim[d]) : like.dim[d];
  }
  a[matrix] = like.dim[matrix] = case_range(1, 20);
  b[row] = like.dim[row] = case_range(1, 40);
  a[row] = b[matrix] = case_range(1, 12);
  int x = draw_input(m, rank, a), y = draw_input(m, rank, b);
  int c = draw_result(m, &like, last);
  made_matmul(m, CUDNN_DATA_FLOAT, x, y, c);
  return c;
}

void draw_product(made_t *m) {
  draw_around(m, product);
}
