/* SPDX-License-Identifier: Apache-2.0 */
/* The two layers of doc/rules.md: tokens of `inputs` numbers go to hidden units
 * and on to `outputs` numbers, by cuBLAS.
 *
 * usage: layers [--hidden H] [--inputs I] [--tokens T] [--outputs O]
 *               [--ranks P --rank I] [--state native|piece|whole] [--slack]
 *               [--scale]
 *
 * With --ranks a process has its even pieces of the hidden units (in the
 * weights) and of the tokens (in inputs and outputs); with --slack its memory
 * has room for all. The sizes that calls state: `native`: those of its memory
 * (between the layers it has its hidden units of all tokens); `piece`: its
 * pieces of both; `whole`: all of both. Leading dimensions are always those of
 * its memory. Without --ranks a process has all. Prints how many of its outputs
 * are wrong. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hidden = 4096, inputs = 1024, tokens = 60, outputs = 1024;
static int ranks = 1, rank, slack, scale;

static void *memory(size_t count, const float *values, size_t room) {
  void *at;
  if (room < count || !slack)
    room = count;
  if (cudaMalloc(&at, room * sizeof(float)) ||
      cudaMemset(at, 0, room * sizeof(float)) ||
      (values &&
       cudaMemcpy(at, values, count * sizeof(float), cudaMemcpyHostToDevice)))
    exit(3);
  return at;
}

/* Even pieces: the first ones have one more. */
static int first_of(int total, int piece) {
  int more = total % ranks;
  return total / ranks * piece + (piece < more ? piece : more);
}

/* Numbers of few digits, so that sums in any order are the same. */
static float number(int which, int i, int j) {
  return (float)((which * 7 + i * 13 + j * 29 + i * j) % 5 - 2);
}

/* Rows [r0, r1) and columns [c0, c1), stored by columns. */
static float *block(int which, int r0, int r1, int c0, int c1) {
  float *at = malloc((size_t)(r1 - r0) * (size_t)(c1 - c0) * sizeof *at);
  if (!at)
    exit(3);
  for (int j = c0; j < c1; j++)
    for (int i = r0; i < r1; i++)
      at[(size_t)(j - c0) * (size_t)(r1 - r0) + (size_t)(i - r0)] =
          number(which, i, j);
  return at;
}

/* Compares y with columns [t0, t1) of down (up x), computed in double on the
 * host. */
static int wrong_count(const float *y, int t0, int t1) {
  double *h = malloc((size_t)hidden * sizeof *h);
  int wrong = 0;
  for (int t = t0; h && t < t1; t++) {
    for (int i = 0; i < hidden; i++) {
      h[i] = 0;
      for (int k = 0; k < inputs; k++)
        h[i] += (double)number(1, i, k) * (double)number(2, k, t);
    }
    for (int o = 0; o < outputs; o++) {
      double sum = 0, most = 1;
      for (int i = 0; i < hidden; i++) {
        double term = (double)number(3, o, i) * h[i] * (scale ? 0.375 : 1);
        sum += term;
        most += fabs(term);
      }
      double found = (double)y[(size_t)(t - t0) * (size_t)outputs + (size_t)o];
      wrong += !(fabs(found - sum) <= 1e-5 * most);
    }
  }
  free(h);
  return wrong;
}

static int words(int argc, char **argv, const char **state) {
  static const struct option table[] = {
      {"hidden", 1, 0, 'h'}, {"inputs", 1, 0, 'i'},
      {"tokens", 1, 0, 't'}, {"outputs", 1, 0, 'o'},
      {"ranks", 1, 0, 'n'},  {"rank", 1, 0, 'r'},
      {"state", 1, 0, 's'},  {"slack", 0, 0, 'l'},
      {"scale", 0, 0, 'c'},  {0}};
  int *const to[] = {&hidden, &inputs, &tokens, &outputs, &ranks, &rank};
  static const char keys[] = "hitonr";
  for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
    const char *key = strchr(keys, c);
    if (c == 's')
      *state = optarg;
    else if (c == 'l')
      slack = 1;
    else if (c == 'c')
      scale = 1;
    else if (key)
      *to[key - keys] = atoi(optarg);
    else
      return 0;
  }
  return ranks > 0 && rank >= 0 && rank < ranks;
}

int main(int argc, char **argv) {
  const char *state = "native";
  cublasHandle_t blas;
  if (!words(argc, argv, &state))
    return 2;
  int h0 = first_of(hidden, rank), h1 = first_of(hidden, rank + 1);
  int t0 = first_of(tokens, rank), t1 = first_of(tokens, rank + 1);
  int units = h1 - h0, own = t1 - t0;
  size_t all = (size_t)hidden * (size_t)(inputs + outputs + tokens);
  float *host[] = {block(1, h0, h1, 0, inputs), block(2, 0, inputs, t0, t1),
                   block(3, 0, outputs, h0, h1)};
  float *up = memory((size_t)units * (size_t)inputs, host[0], all);
  float *x = memory((size_t)inputs * (size_t)own, host[1], all);
  float *down = memory((size_t)outputs * (size_t)units, host[2], all);
  float *h = memory((size_t)units * (size_t)tokens, NULL, all);
  float *y = memory((size_t)outputs * (size_t)own, NULL, all);
  int piece = !strcmp(state, "piece"), whole = !strcmp(state, "whole");
  int m = whole ? hidden : units, n = piece ? own : tokens;
  const float one = 1, zero = 0;
  const float half = 0.5f, less = -0.25f;
  int all_units = units * tokens, bad = 0;
  bad |= cublasCreate(&blas);
  bad = bad || cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, inputs, &one,
                           up, units, x, inputs, &zero, h, units);
  if (scale)
    bad = bad || cublasSscal(blas, all_units, &half, h, 1) ||
          cublasSaxpy(blas, all_units, &less, h, 1, h, 1);
  bad = bad || cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, outputs, n, m, &one,
                           down, outputs, h, units, &zero, y, outputs);
  if (bad) {
    fprintf(stderr, "layers: cuBLAS failed\n");
    return 1;
  }
  size_t count = (size_t)outputs * (size_t)own;
  float *found = malloc(count * sizeof *found);
  if (!found ||
      cudaMemcpy(found, y, count * sizeof *found, cudaMemcpyDeviceToHost))
    return 3;
  printf("%d of %zu wrong\n", wrong_count(found, t0, t1), count);
  return 0;
}
