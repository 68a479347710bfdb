// SPDX-License-Identifier: Apache-2.0
// A program that keeps a plan for each extent of its piece, as frameworks do,
// while the pieces of some ranks change and those of others do not. Each of
// two ranks has so many rows of x, and checks y = the sums of three rows.
#include <cuda_runtime_api.h>
#include <math.h>

#include "tests/clients/graphs/build.h"

enum { ROWS_MAX = 12, STEPS = 6 };

static build_t plan_make(cudnnHandle_t handle, int64_t rows,
                         int64_t *out_bytes) {
  const int64_t dim[] = {1, 1, rows, 1}, w_dim[] = {1, 1, 3, 3};
  build_t x = build_tensor(1, CUDNN_DATA_FLOAT, dim, 4),
          w = build_tensor(2, CUDNN_DATA_FLOAT, w_dim, 4),
          y = build_tensor(3, CUDNN_DATA_FLOAT, dim, 4);
  build_t op = build_conv(BUILD_FORWARD, 1, 1, x, w, y);
  build_t graph = build_graph(handle, &op, 1);
  build_t plan =
      build_first_plan(handle, graph, CUDNN_HEUR_MODE_INSTANT, out_bytes);
  CHECK(!plan);
  return plan;
}

// Row i of x is i + 1, outside is 0.
static void check(const float *y, int64_t first, int64_t rows, int64_t all) {
  for (int64_t i = 0; i < rows; i++) {
    int64_t row = first + i;
    double right = 3. * (double)(row + 1) - (row == all - 1 ? row + 2. : 0);
    if (!(fabs((double)y[i] - right) < 1e-4)) {
      fprintf(stderr, "row %d of %d: wrong: %g, not %g\n", (int)row, (int)all,
              (double)y[i], right);
      exit(EXIT_FAILURE);
    }
  }
}

int main(void) {
  static const int64_t pieces[STEPS][2] = {{12, 12}, {12, 10}, {12, 12},
                                           {10, 12}, {12, 12}, {12, 10}};
  static const int64_t uids[] = {1, 2, 3};
  static build_t kept[ROWS_MAX + 1];
  static int64_t bytes[ROWS_MAX + 1];
  const char *text = getenv("SUNDOG_RANK");
  int rank = text ? atoi(text) : 0;
  float x[ROWS_MAX], y[ROWS_MAX], w[9] = {0, 1, 0, 0, 1, 0, 0, 1, 0};
  void *at[3], *space;
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  CHECK(cudaMalloc(&at[0], sizeof x));
  CHECK(cudaMalloc(&at[1], sizeof w));
  CHECK(cudaMalloc(&at[2], sizeof y));
  CHECK(cudaMalloc(&space, 1 << 20));
  CHECK(cudaMemcpy(at[1], w, sizeof w, cudaMemcpyHostToDevice));
  for (int step = 0; step < STEPS; step++) {
    int64_t rows = pieces[step][rank], first = rank ? pieces[step][0] : 0;
    for (int64_t i = 0; i < rows; i++)
      x[i] = (float)(first + i + 1);
    CHECK(cudaMemcpy(at[0], x, sizeof x, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(at[2], 0xff, sizeof y));
    if (!kept[rows])
      kept[rows] = plan_make(handle, rows, &bytes[rows]);
    CHECK(bytes[rows] > 1 << 20);
    CHECK(build_execute(handle, kept[rows], uids, at, 3, space));
    CHECK(cudaMemcpy(y, at[2], sizeof y, cudaMemcpyDeviceToHost));
    check(y, first, rows, pieces[step][0] + pieces[step][1]);
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
