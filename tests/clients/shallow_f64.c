/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the same as shallow.c in plain loops and double precision, as a
 * reference.
 *
 * usage: shallow_f64 LEVEL DEPTH OUT STEPS ORDER DX DT FRICTION */
#include <stdio.h>
#include <stdlib.h>

#include "npy.h"

static int rows, columns;

/* The value of cell (r, c); outside is zero. */
static double cell(const double *field, int r, int c) {
  return r < 0 || c < 0 || r >= rows || c >= columns ? 0
                                                     : field[r * columns + c];
}

/* Staggered difference at (r, c) along (dr, dc): centred half a cell after
 * (r, c) where first = 0, half a cell before where first = -1. */
static double difference(const double *field, int order, int first, int r,
                         int c, int dr, int dc) {
  double a = cell(field, r + first * dr, c + first * dc);
  double b = cell(field, r + (first + 1) * dr, c + (first + 1) * dc);
  if (order == 2)
    return b - a;
  double before = cell(field, r + (first - 1) * dr, c + (first - 1) * dc);
  double after = cell(field, r + (first + 2) * dr, c + (first + 2) * dc);
  return (before - 27 * a + 27 * b - after) / 24;
}

static double *zeros(size_t count) {
  double *field = calloc(count, sizeof *field);
  if (!field)
    abort();
  return field;
}

static double least(double a, double b) {
  return a < b ? a : b;
}

int main(int argc, char **argv) {
  if (argc != 9) {
    fprintf(stderr, "usage: shallow_f64 LEVEL DEPTH OUT STEPS ORDER DX DT "
                    "FRICTION\n");
    return 2;
  }
  npy_field_t in = npy_read(argv[1]), bed = npy_read(argv[2]);
  int steps = atoi(argv[4]), order = atoi(argv[5]);
  double dx = atof(argv[6]), dt = atof(argv[7]), friction = atof(argv[8]);
  rows = in.rows;
  columns = in.columns;
  size_t count = (size_t)rows * (size_t)columns;
  double *level = zeros(count), *depth = zeros(count);
  double *p = zeros(count), *q = zeros(count);
  for (size_t i = 0; i < count; i++) {
    level[i] = in.at[i];
    depth[i] = bed.at[i];
  }
  for (int step = 0; step < steps; step++) {
    for (int r = 0; r < rows; r++)
      for (int c = 0; c < columns; c++) {
        int i = r * columns + c;
        double right = least(depth[i], cell(depth, r, c + 1));
        double below = least(depth[i], cell(depth, r + 1, c));
        p[i] = (1 - friction) * p[i] -
               9.81 * dt / dx * right * difference(level, order, 0, r, c, 0, 1);
        q[i] = (1 - friction) * q[i] -
               9.81 * dt / dx * below * difference(level, order, 0, r, c, 1, 0);
      }
    for (int r = 0; r < rows; r++)
      for (int c = 0; c < columns; c++)
        level[r * columns + c] -= dt / dx *
                                  (difference(p, order, -1, r, c, 0, 1) +
                                   difference(q, order, -1, r, c, 1, 0));
  }
  for (size_t i = 0; i < count; i++)
    in.at[i] = (float)level[i];
  npy_write(argv[3], in);
  free(level);
  free(depth);
  free(p);
  free(q);
  free(in.at);
  free(bed.at);
  return EXIT_SUCCESS;
}
