/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions of a solver twice each, and prints what they wrote: lines
 * "NAME ROW COLUMN VALUE" with the row in the whole.
 * usage: calls ROWS FIRST NAME... */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/tool/cut/stencils.h"

enum { COLUMNS = 10, APART = 12 };
static int rows, first;

void _ZN6solver5limitIfEEvPT_mmPKS1_(float *r, unsigned long n,
                                     unsigned long columns, const float *most);

static void *managed(size_t bytes) {
  void *memory;
  CHECK(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
  memset(memory, 0, bytes);
  return memory;
}

static double value(int row, int column) {
  return (double)((row * 37 + column * 17 + row * column * 5) % 101) / 8 - 3;
}

static float *floats(int ghosts, int apart) {
  float *u = managed((size_t)(rows + 2 * ghosts) * (size_t)apart * sizeof *u);
  for (int r = 0; r < rows + 2 * ghosts; r++)
    for (int c = 0; c < COLUMNS; c++)
      u[r * apart + c] = (float)value(first + r - ghosts + 1, c);
  return u;
}

static double *doubles(int more) {
  double *u = managed((size_t)(rows + more) * COLUMNS * sizeof *u);
  for (int r = 0; r < rows + more; r++)
    for (int c = 0; c < COLUMNS; c++)
      u[r * COLUMNS + c] = value(first + r + 1, c);
  return u;
}

static void floats_print(const char *name, const float *w, int apart) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < COLUMNS; c++)
      printf("%s %d %d %a\n", name, first + r, c, (double)w[r * apart + c]);
}

static void doubles_print(const char *name, const double *w) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < COLUMNS; c++)
      printf("%s %d %d %a\n", name, first + r, c, w[r * COLUMNS + c]);
}

static void number_print(const char *name, double number) {
  printf("%s - - %.10g\n", name, number); /* sums are rounded */
}

static void on_device(const char *name) {
  size_t bytes = (size_t)rows * COLUMNS * sizeof(float);
  float *u = floats(0, COLUMNS), *from, *to;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc((void **)&from, bytes));
  CHECK(cudaMalloc((void **)&to, bytes));
  CHECK(cudaMemcpy(from, u, bytes, cudaMemcpyDefault));
  CHECK(cudaMemset(to, 0, bytes));
  cut_shift(from, to, rows, COLUMNS, stream);
  cut_shift(to, from, rows, COLUMNS, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(u, from, bytes, cudaMemcpyDefault));
  floats_print(name, u, COLUMNS);
}

static void numbers_call(const char *name) {
  float *u = floats(0, COLUMNS);
  double *both = managed(2 * sizeof *both), *d = doubles(0);
  int columns = COLUMNS;
  if (strcmp(name, "total") == 0) {
    cut_total(u, rows, COLUMNS, &both[0], &both[1]);
    number_print("sum", both[0]);
    number_print("most", both[1]);
  } else if (strcmp(name, "energy") == 0) {
    number_print(name, cut_energy(u, rows, COLUMNS));
  } else if (strcmp(name, "fsum") == 0) {
    cut_fsum_(d, &columns, &rows, both);
    number_print(name, both[0]);
  }
}

static void doubles_call(const char *name) {
  double *u = doubles(1), *w = doubles(1);
  int columns = COLUMNS;
  for (int time = 0; time < 2; time++) {
    double *from = time ? w : u, *to = time ? u : w;
    if (strcmp(name, "wide") == 0)
      cut_wide(from, to, rows, COLUMNS);
    else if (strcmp(name, "ramp") == 0)
      cut_ramp(u, rows, COLUMNS, 0);
    else if (strcmp(name, "faces") == 0)
      cut_faces(from, to, rows, COLUMNS);
    else
      cut_shear(from, to, &rows, &columns, 0.25);
  }
  doubles_print(name, u);
}

static void floats_call(const char *name, int ghosts, int apart) {
  float *u = floats(ghosts, apart), *w = floats(ghosts, apart), weight = 0.25f;
  float *most = managed((size_t)rows * sizeof *most);
  int columns = COLUMNS;
  struct weights by = {0.25f, 0.75};
  for (int time = 0; time < 2; time++) {
    float *from = time ? w : u, *to = time ? u : w;
    if (strcmp(name, "step") == 0)
      cut_step(from, to, rows, COLUMNS, 0.1);
    else if (strcmp(name, "decay") == 0)
      cut_decay(u, rows, COLUMNS, 0.7f);
    else if (strcmp(name, "rotate") == 0)
      cut_rotate(from, to, rows, COLUMNS);
    else if (strcmp(name, "mean") == 0)
      cut_mean(from, to, rows, COLUMNS);
    else if (strcmp(name, "blend") == 0)
      cut_blend(from, to, rows, COLUMNS, by);
    else if (strcmp(name, "padded") == 0)
      cut_padded(from, to, rows, COLUMNS, APART);
    else if (strcmp(name, "heat") == 0)
      cut_heat(from, to, rows, COLUMNS);
    else if (strcmp(name, "corners") == 0)
      cut_corners(from, to, rows, COLUMNS);
    else if (strcmp(name, "count") == 0)
      cut_count(from, to, rows, COLUMNS);
    else if (strcmp(name, "smooth") == 0)
      cut_smooth_(from, to, &columns, &rows, &weight);
    else if (strcmp(name, "limit") == 0)
      _ZN6solver5limitIfEEvPT_mmPKS1_(u, (unsigned long)rows, COLUMNS, most);
  }
  floats_print(name, u + ghosts * apart, apart);
}

int main(int count, char **words) {
  static const char *const numbers[] = {"total", "energy", "fsum"};
  static const char *const wide[] = {"wide", "ramp", "faces", "shear"};
  rows = atoi(words[1]), first = atoi(words[2]);
  for (int i = 3; i < count; i++) {
    bool done = strcmp(words[i], "shift") == 0;
    if (done)
      on_device(words[i]);
    for (int k = 0; k < 4 && !done; k++) {
      if (k < 3 && strcmp(words[i], numbers[k]) == 0)
        numbers_call(words[i]), done = true;
      else if (strcmp(words[i], wide[k]) == 0)
        doubles_call(words[i]), done = true;
    }
    bool ghosts = strcmp(words[i], "heat") == 0,
         padded = strcmp(words[i], "padded") == 0;
    if (!done)
      floats_call(words[i], ghosts, padded ? APART : COLUMNS);
  }
  return 0;
}
