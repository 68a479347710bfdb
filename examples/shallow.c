/* SPDX-License-Identifier: Apache-2.0 */
/* Waves on shallow water, as legacy solvers are: no cuDNN, every stencil is a
 * function of the solver's own library, libshallow.so.
 *
 *   shallow --sample H.npy        writes heights with a hill of water
 *   shallow H.npy END.npy [STEPS] lets it run down, writes the heights, prints
 *   "400 steps to time 83.9, fastest 0.1832"
 *
 * One process:         sundog run -n 1 -- ./shallow h.npy end.npy
 * Four, whole input:   sundog run -n 4 --view whole --rules shallow.rules -- \
 *                        ./shallow h.npy end.npy
 * Four, each its rows: sundog split -n 4 h.npy
 *                      sundog run -n 4 --view shard --rules shallow.rules -- \
 *                        ./shallow h.{rank}.npy end.{rank}.npy
 *                      sundog join end.npy end.[0-3].npy */
#include <math.h>
#include <string.h>

#include "common.h"
#include "libshallow.h"

static int sample_write(const char *path) {
  enum { ROWS = 70, COLUMNS = 90 };
  static float h[ROWS][COLUMNS];
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++) {
      float y = (float)r - 22, x = (float)c - 30;
      h[r][c] = expf(-(x * x + y * y) / 50);
    }
  field_write(path, h[0], ROWS, COLUMNS);
  return EXIT_SUCCESS;
}

/* Memory that functions on the host and the device can use: zeros. */
static float *managed_floats(size_t count) {
  float *at;
  CHECK(
      cudaMallocManaged((void **)&at, count * sizeof *at, cudaMemAttachGlobal));
  memset(at, 0, count * sizeof *at);
  return at;
}

int main(int argc, char **argv) {
  int rows, columns, steps = argc > 3 ? atoi(argv[3]) : 400;
  if (argc == 3 && strcmp(argv[1], "--sample") == 0)
    return sample_write(argv[2]);
  require(argc > 2 && steps > 0, "usage", "shallow H.npy END.npy [STEPS]");
  float *start = field_read(argv[1], &rows, &columns);
  size_t count = (size_t)rows * (size_t)columns;
  float *h = managed_floats(count), *next = managed_floats(count),
        *u = managed_floats(count), *v = managed_floats(count),
        *speed = managed_floats(1);
  memcpy(h, start, count * sizeof *h);
  free(start);

  double time = 0, dt = 0.1;
  for (int i = 0; i < steps; i++) {
    momentum(h, u, v, rows, columns, (float)dt);
    continuity(h, u, v, next, rows, columns, (float)dt);
    float *old = h;
    h = next;
    next = old;
    walls(h, u, v, rows, columns);
    fastest(u, v, rows, columns, speed);
    time += dt;
    dt = fmin(0.5, 0.05 / *speed); /* water moves 0.05 of a cell at most */
  }
  printf("%d steps to time %.1f, fastest %.4f\n", steps, time, (double)*speed);
  field_write(argv[2], h, rows, columns);
  return EXIT_SUCCESS;
}
