/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the demo's input: real terrain on a finer grid, the depth of the
 * sea, and the raised water that starts the waves.
 *
 * usage: scene TERRAIN.npy ROWS COLUMNS FOLDER
 *        writes FOLDER/{terrain,depth,level}.npy */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "npy.h"

/* The deepest metre that counts: a trench in one corner would otherwise
 * dictate the time step of the whole domain. */
static const float deepest = 600;

/* Raised water: place as a fraction of the domain, radius as a fraction of its
 * rows, metres. In the Strait of Georgia, Juan de Fuca, and off the shelf. */
static const struct {
  double row, column, radius, height;
} sources[] = {
    {0.395, 0.500, 0.022, 4.0}, {0.240, 0.345, 0.022, 3.0},
    {0.755, 0.330, 0.022, 1.2}, {0.880, 0.130, 0.040, 1.5},
    {0.640, 0.085, 0.030, 1.0}, {0.770, 0.690, 0.022, 2.0},
};

/* Catmull-Rom: a cubic through the samples b and c, t of the way along. */
static double cubic(double a, double b, double c, double d, double t) {
  return b + 0.5 * t *
                 (c - a +
                  t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

static int clamp(int i, int count) {
  return i < 0 ? 0 : i >= count ? count - 1 : i;
}

static double sample(npy_field_t f, double row, double column) {
  int r = (int)floor(row), c = (int)floor(column);
  double along[4];
  for (int i = 0; i < 4; i++) {
    const float *line =
        f.at + (size_t)clamp(r - 1 + i, f.rows) * (size_t)f.columns;
    along[i] = cubic(line[clamp(c - 1, f.columns)], line[clamp(c, f.columns)],
                     line[clamp(c + 1, f.columns)],
                     line[clamp(c + 2, f.columns)], column - c);
  }
  return cubic(along[0], along[1], along[2], along[3], row - r);
}

static void write_field(const char *folder, const char *name, npy_field_t f) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  npy_write(path, f);
}

int main(int argc, char **argv) {
  int rows = argc == 5 ? atoi(argv[2]) : 0;
  int columns = argc == 5 ? atoi(argv[3]) : 0;
  if (rows < 1 || columns < 1) {
    fprintf(stderr, "usage: scene TERRAIN.npy ROWS COLUMNS FOLDER\n");
    return 2;
  }
  npy_field_t coarse = npy_read(argv[1]);
  npy_field_t terrain = npy_zeros(rows, columns);
  npy_field_t depth = npy_zeros(rows, columns);
  npy_field_t level = npy_zeros(rows, columns);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      size_t i = (size_t)r * (size_t)columns + (size_t)c;
      float z = (float)sample(coarse, (r + 0.5) * coarse.rows / rows - 0.5,
                              (c + 0.5) * coarse.columns / columns - 0.5);
      terrain.at[i] = z;
      depth.at[i] = z >= 0 ? 0 : fminf(-z, deepest);
      if (z >= 0)
        continue;
      for (size_t k = 0; k < sizeof sources / sizeof *sources; k++) {
        double dr = r - sources[k].row * rows;
        double dc = c - sources[k].column * columns;
        double radius = sources[k].radius * rows;
        level.at[i] += (float)(sources[k].height *
                               exp(-(dr * dr + dc * dc) / (radius * radius)));
      }
    }
  write_field(argv[4], "terrain", terrain);
  write_field(argv[4], "depth", depth);
  write_field(argv[4], "level", level);
  free(coarse.at);
  free(terrain.at);
  free(depth.at);
  free(level.at);
  return EXIT_SUCCESS;
}
