// SPDX-License-Identifier: Apache-2.0
// What calls of a program's own functions cost.
//
// usage: bench_function free|untagged|beside|tagged
//        bench_function water STEPS ROWS COLUMNS
//
// free, untagged, beside: nanoseconds per call of a function of nine arguments
// that does nothing, the median over many batches: one that no rule names, one
// of tensors that no section matches, and the same after a call that was split.
// tagged: of a call that is split, the first decile, and sundog's part of the
// mean; times are those of the calling thread's CPU. water: milliseconds a step
// of shallow water, by the clock and in CPU time.
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "tests/bench/sample.h"
#include "tests/bench/water.h"
#include "tests/clients/nets/net.h"

enum { BATCHES = 301, CALLS = 2000, SPLIT_CALLS = 20, SAMPLED = 30, ROWS = 8 };
enum { UNMATCHED = 5, MATCHED = 16 }; // columns

typedef void step_t(const float *, const float *, const float *, float *,
                    float *, float *, int, int, float);

static float *field(size_t count) {
  float *memory;
  CUDA(cudaMallocManaged((void **)&memory, count * sizeof *memory,
                         cudaMemAttachGlobal));
  memset(memory, 0, count * sizeof *memory);
  return memory;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double batch(step_t *step, float *const *f, int columns, int calls) {
  double start = now_ns();
  for (int i = 0; i < calls; i++)
    step(f[0], f[1], f[2], f[3], f[4], f[5], ROWS, columns, 0.5f);
  return (now_ns() - start) / calls;
}

static int calls_measure(const char *how) {
  static double ns[BATCHES];
  bool split = strcmp(how, "tagged") == 0;
  step_t *step = split                      ? water_tagged
                 : strcmp(how, "free") == 0 ? water_free
                                            : water_untagged;
  int columns = split ? MATCHED : UNMATCHED;
  int calls = split ? SPLIT_CALLS : CALLS, samples;
  double mean = 0;
  float *f[6], *other[6];
  for (int i = 0; i < 6; i++) {
    f[i] = field(ROWS * MATCHED);
    other[i] = field(ROWS * MATCHED);
  }
  if (strcmp(how, "beside") == 0)
    batch(water_tagged, other, MATCHED, 3);
  for (int b = -20; b < BATCHES; b++) {
    double took = batch(step, f, columns, calls);
    if (b >= 0)
      ns[b] = took;
  }
  qsort(ns, BATCHES, sizeof ns[0], compare);
  printf("%.2f ns", ns[split ? BATCHES / 10 : BATCHES / 2]);
  if (split && sample_start() == 0) {
    for (int b = 0; b < SAMPLED * BATCHES; b++)
      mean += batch(step, f, columns, calls) / (SAMPLED * BATCHES);
    double share = sample_stop(&samples);
    printf(", own %.1f ns, %d samples", share * mean, samples);
  }
  printf("\n");
  batch(water_tagged, other, MATCHED, 1); // a run without a split is an error
  return EXIT_SUCCESS;
}

static int water(int steps, int rows, int columns) {
  size_t count = (size_t)rows * (size_t)columns;
  net_clock_t clock = {0};
  float *f[6];
  for (int i = 0; i < 6; i++)
    f[i] = field(count);
  for (size_t i = 0; i < count; i++)
    f[0][i] = f[3][i] = 1 + 0.1f * (float)sin(0.01 * (double)(i % 7919));
  for (int s = 0; s < steps; s++) {
    float *const *from = s % 2 ? f + 3 : f, *const *to = s % 2 ? f : f + 3;
    water_step(from[0], from[1], from[2], to[0], to[1], to[2], rows, columns,
               0.02f);
    net_clock_tick(&clock);
  }
  net_clock_print(&clock);
  return EXIT_SUCCESS;
}

int main(int count, char **words) {
  if (count == 5 && strcmp(words[1], "water") == 0)
    return water(atoi(words[2]), atoi(words[3]), atoi(words[4]));
  return count == 2 ? calls_measure(words[1]) : 2;
}
