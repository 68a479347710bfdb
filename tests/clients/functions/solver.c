/* SPDX-License-Identifier: Apache-2.0 */
/* A solver whose stencils are functions of a library of its own.
 *
 * usage: solver ROWS COLUMNS STEPS RANK [HOW]
 *
 * ROWS, COLUMNS: those of the ranks, as in 5,4,7 and 9; there is a rank for
 * each pair, and columns vary faster. RANK -1 has all of them, -2 too, and
 * counts as rank 1. Writes its values, each with its place, to the standard
 * output, and energies to the standard error.
 *
 * HOW
 *   look   finds a function in the library as it runs
 *   version  the same, by the version WAVE_1
 *   heap   the fields are in memory of malloc
 *   fork   a process made by fork takes a step, too
 *   null   rank 1 gives no field
 *   alias  rank 1 gives a field that is read and written
 *   time   rank 1 has another time step
 *   rows   rank 1 says that it has more rows than it has
 *   leave  rank 1 ends early */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/calls.h"
#include "tests/clients/functions/wave.h"
#include "tests/clients/parts.h"

void wave_limit(float *r, unsigned long rows, unsigned long columns,
                float most);

static const char *how;

static bool is(const char *word) {
  return strcmp(how, word) == 0;
}

static void *managed(size_t bytes) {
  void *memory;
  if (is("heap"))
    return malloc(bytes);
  CHECK(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
  return memory;
}

static void swap(float **a, float **b) {
  float *old = *a;
  *a = *b;
  *b = old;
}

#ifdef HAVE_FORTRAN
void wave_smooth_(const float *u, float *w, const int *columns, const int *rows,
                  const float *weight);
#endif

typedef int step_t(const float *, const float *, float *, int, int, double);

int main(int argc, char **argv) {
  if (argc < 5)
    return 2;
  how = argc > 5 ? argv[5] : "";
  int steps = atoi(argv[3]), rank = atoi(argv[4]), beside = parts_of(argv[2]);
  int first, left, zero = 0, returned = 0;
  int rows = part_of(argv[1], rank < 0 ? -1 : rank / beside, &first);
  int columns = part_of(argv[2], rank < 0 ? -1 : rank % beside, &left);
  bool odd = rank == 1 || rank == -2;
  size_t count = (size_t)rows * (size_t)columns, many = (size_t)rows;
  float *u = managed(count * sizeof *u), *v = managed(count * sizeof *v),
        *w = managed(count * sizeof *w);
  double *f = managed(many * sizeof *f), total = 0, largest = 0;
  const struct wave_shift by = {2, 0};
  step_t *step_by = wave_step;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  if (is("look") || is("version")) {
    void *library = dlopen("./libwave.so", RTLD_NOW);
    CHECK(library == NULL);
    step_by = (step_t *)(is("look") ? dlsym(library, "wave_step")
                                    : dlvsym(library, "wave_step", "WAVE_1"));
    CHECK(step_by == NULL);
  }
  if (is("leave") && odd)
    return 0;
  for (int i = 0; i < rows; i++) {
    f[i] = 0.5 + 0.25 * sin(0.7 * (first + i));
    for (int j = 0; j < columns; j++) {
      size_t at = (size_t)i * (size_t)columns + (size_t)j;
      int x = left + j;
      u[at] = v[at] = (float)cos(0.004 * (first + i) * x + x);
      w[at] = (float)(x % 5); /* the columns at the sides keep this */
    }
  }
  for (int step = 0; step < steps; step++) {
    returned +=
        step_by(is("null") && odd ? NULL : u, v, is("alias") && odd ? u : w,
                is("rows") && odd ? 1000 * rows : rows, columns,
                is("time") && odd ? 0.2 : 0.1);
    wave_force(w, 0, &zero, &rows, &columns, 0.01f);
    wave_energy(w, rows, columns, &total, &largest);
    fprintf(stderr, "%.4f %.4f %.4f\n", total, largest,
            wave_total(w, rows, columns));
    swap(&v, &w), swap(&u, &v);
    wave_rotate(f, u, w, rows, columns);
    swap(&u, &w);
    wave_limit(u, many, (unsigned long)columns, 0.1f);
    wave_shift(u, w, &many, columns, by, stream);
    CHECK(cudaStreamSynchronize(stream));
    swap(&u, &w);
#ifdef HAVE_FORTRAN
    float weight = 0.3f;
    wave_smooth_(u, w, &columns, &rows, &weight);
    swap(&u, &w);
#endif
  }
  CHECK(cudaDeviceSynchronize());
  if (is("fork")) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
      _exit(step_by(u, v, w, rows, columns, 0.1) == 7 ? 0 : 4);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  if (returned != 7 * steps)
    return 3;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      printf("%d %d %a\n", first + i, left + j,
             (double)u[(size_t)i * (size_t)columns + (size_t)j]);
  return 0;
}
