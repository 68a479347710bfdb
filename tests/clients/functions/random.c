/* SPDX-License-Identifier: Apache-2.0 */
/* A program of random calls of the functions of random.h, with copies between
 * them.
 *
 * usage: random SEED | random SEED rules
 *
 * With `rules`: prints the rules that split it, in whose first line is the
 * number of ranks. Otherwise prints all fields after the calls; to the standard
 * error how many elements this rank has computed. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/clients/functions/random.h"

enum { FIELDS = 4, CALLS = 14, ROWS = 20 };

static struct {
  uint64_t state;
  int planes, rows, columns, ld;
  bool managed; /* the last field */
  char plane;   /* the dimension of planes */
  float *field[FIELDS];
  double *f, *g;
  size_t count;
  cudaStream_t stream;
} g;

static int draw(int below) {
  g.state = g.state * 6364136223846793005u + 1442695040888963407u;
  return (int)((g.state >> 33) % (uint64_t)below);
}

static bool chance(int one_in) {
  return draw(one_in) == 0;
}

static void how_draw(void) {
  int order = draw(3);
  g.planes = 1 + (chance(2) ? draw(4) : 0);
  g.rows = 1 + draw(ROWS);
  g.columns = 1 + draw(9);
  g.ld = g.planes * g.columns + draw(3);
  g.plane = "DNC"[draw(3)];
  g.managed = chance(6);
  for (int k = 0; k < RANDOM_FUNCTIONS; k++) {
    struct random_how *how = &random_how[k];
    how->order = chance(4) ? draw(3) : order;
    how->leaves = chance(2) && k < 2 ? 2 + draw(4) : 0;
    how->staggered = chance(4);
    for (int d = 0; d < RANDOM_DIMS; d++) {
      how->reach[d] = k == 2 || chance(3) ? 0
                      : chance(8)         ? RANDOM_ALL
                                          : draw(4);
      how->border[d] = draw(3);
    }
  }
}

/* ---- rules --------------------------------------------------------------- */

/* Pieces of any size: each element goes to a rank by chance. Rarely one has
 * none. */
static void parts_say(int extent, int ranks) {
  int part[8] = {0};
  bool any = extent < ranks || chance(4);
  for (int i = 0; i < extent; i++)
    part[!any && i < ranks ? i : draw(ranks)]++;
  printf("parts = ");
  for (int r = 0; r < ranks; r++)
    printf("%s%d", r ? "," : "", part[r]);
  printf("\n");
}

static void split_say(void) {
  int y = 1 + draw(8), x = y <= 4 ? 1 + draw(8 / y) : 1, which = draw(5);
  char first = "HWHHP"[which], second = which == 3 ? 'W' : 'H';
  bool both = which >= 3;
  first = first == 'P' ? g.plane : first;
  if (!both) /* perhaps an axis over which nothing is split */
    x = y <= 4 && chance(3) ? 2 : 1;
  printf("; %d\n[mesh]\ny = %d\nx = %d\n\n[shard field]\nview = whole\n", y * x,
         y, x);
  printf(both ? "split = %c:y, %c:x\n" : "split = %c:y\n", first, second);
  if (!both && chance(2))
    parts_say(first == 'H' ? g.rows : g.columns, y);
}

static void sizes_say(const struct random_how *how, const char *names) {
  const char *less = how->staggered ? "-1" : "";
  printf("tensor = %s: float ", names);
  if (how->order == 1)
    printf("[W=columns%s H=rows%s %c=planes%s]\n", less, less, g.plane, less);
  else
    printf("[%c=planes%s H=rows%s W=columns%s]", g.plane, less, less, less);
  if (how->order == 2)
    printf(" strides [columns%s ld 1]", less);
  if (how->order != 1)
    printf("\n");
}

static void function_say(int k, const char *arguments, const char *fields) {
  static const char *const border[] = {"own", "wrap", "zero"};
  const struct random_how *how = &random_how[k];
  const char dim[] = {g.plane, 'H', 'W'};
  printf("\n[function random_%d]\narguments = %s\n", k, arguments);
  sizes_say(how, fields);
  printf("reach =");
  for (int d = 0; d < RANDOM_DIMS; d++)
    if (how->reach[d] == RANDOM_ALL)
      printf(" %c:all", dim[d]);
    else
      printf(" %c:%d", dim[d], how->reach[d]);
  printf("\nborder =");
  for (int d = 0; d < RANDOM_DIMS; d++)
    printf(" %c:%s", dim[d], border[how->border[d]]);
  printf("\n");
}

static void rules_say(void) {
  split_say();
  function_say(0,
               "in a, in f, out w, int planes, int rows, int columns, int "
               "ld, int row0, int column0, stream",
               "a w");
  printf("tensor = f: double [H=rows%s]\n",
         random_how[0].staggered ? "-1" : "");
  printf("offset = row0 H, column0 W\n");
  function_say(
      1,
      "inout w, int *planes, long *rows, unsigned *columns, in a, "
      "long *row0, short column0, double factor, int ld, pointer scale",
      "w a");
  printf("offset = row0 H, column0 W\ncopy = yes\nstream = default\n");
  function_say(2,
               "out total, out most, out least, in a, long planes, long "
               "rows, long columns, long ld",
               "a");
  printf("tensor = total: double []\ntensor = most: float []\ntensor = least: "
         "int []\nresult = sum total, max most, min least\nstream = default\n");
  function_say(3,
               "int ld, int columns, int rows, int planes, out w, out g, "
               "in a, in b, in f, stream",
               "w a b");
  printf("tensor = f g: double [H=rows%s]\n",
         random_how[3].staggered ? "-1" : "");
}

/* ---- calls --------------------------------------------------------------- */

static void *allocate(size_t bytes, bool managed) {
  void *memory;
  CHECK(managed ? cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal)
                : cudaMalloc(&memory, bytes));
  return memory;
}

static void fill(void *to, size_t bytes, size_t each) {
  char *host = malloc(bytes);
  CHECK(host == NULL);
  for (size_t i = 0; i < bytes / each; i++)
    if (each == sizeof(float))
      ((float *)(void *)host)[i] = (float)draw(200) / 16 - 6;
    else
      ((double *)(void *)host)[i] = draw(200) / 16.0 - 6;
  CHECK(cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice));
  free(host);
}

static void function_call(int k) {
  const struct random_how *how = &random_how[k];
  int w = draw(FIELDS), a = draw(FIELDS), b = draw(FIELDS), zero = 0;
  int planes = g.planes + how->staggered, rows = g.rows + how->staggered;
  int columns = g.columns + how->staggered;
  long many = rows, first = 0;
  unsigned wide = (unsigned)columns;
  a = a == w && !chance(4) ? (w + 1) % FIELDS : a;
  b = b == w && !chance(4) ? (w + 2) % FIELDS : b;
  if (k == 0)
    random_0(g.field[a], g.f, g.field[w], planes, rows, columns, g.ld, zero,
             zero, g.stream);
  else if (k == 1)
    random_1(g.field[w], &planes, &many, &wide, g.field[a], &first, 0, 0.5,
             g.ld, g.field[b] + draw((int)g.count));
  else if (k == 3)
    random_3(g.ld, columns, rows, planes, g.field[w], g.g, g.field[a],
             g.field[b], g.f, g.stream);
  else {
    double total;
    float most;
    int least;
    random_2(&total, &most, &least, g.field[a], planes, rows, columns, g.ld);
    printf("%a %a %d\n", total, (double)most, least);
  }
}

static void other_call(void) {
  int to = draw(FIELDS), from = (to + 1 + draw(FIELDS - 1)) % FIELDS;
  size_t bytes = g.count * sizeof(float), first = 0, part = bytes;
  if (chance(2)) {
    first = (size_t)draw((int)g.count) * sizeof(float);
    part = bytes - first;
  }
  float one;
  double *old = g.f;
  switch (draw(6)) {
  case 0:
    CHECK(cudaMemcpyAsync((char *)g.field[to] + first, g.field[from], part,
                          cudaMemcpyDeviceToDevice, g.stream));
    break;
  case 1:
    CHECK(cudaMemsetAsync((char *)g.field[to] + first, 0, part, g.stream));
    break;
  case 2: /* what a value says decides on what is next */
    CHECK(cudaMemcpy(&one, (char *)g.field[to] + first, sizeof one,
                     cudaMemcpyDeviceToHost));
    if (one > 0)
      function_call(0);
    break;
  case 3:
    CHECK(cudaFree(g.field[to]));
    g.field[to] = allocate(bytes, g.managed && to == FIELDS - 1);
    fill(g.field[to], bytes, sizeof(float));
    break;
  case 4:
    g.f = g.g, g.g = old;
    break;
  default: /* memory of the program itself */
    CHECK(cudaStreamSynchronize(g.stream));
    for (size_t i = 0; g.managed && i < g.count; i++)
      g.field[FIELDS - 1][i] = 0.5f * g.field[FIELDS - 1][i];
  }
  CHECK(cudaStreamSynchronize(g.stream));
}

static void all_print(const void *from, size_t count, size_t each) {
  char *host = malloc(count * each);
  CHECK(host == NULL);
  CHECK(cudaMemcpy(host, from, count * each, cudaMemcpyDefault));
  for (size_t i = 0; i < count; i++)
    printf("%a\n", each == sizeof(float) ? (double)((float *)(void *)host)[i]
                                         : ((double *)(void *)host)[i]);
  free(host);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  g.state = strtoull(argv[1], NULL, 10) * 77 + 1;
  how_draw();
  if (argc > 2) {
    rules_say();
    return 0;
  }
  CHECK(cudaStreamCreate(&g.stream));
  g.count = (size_t)g.ld * (size_t)g.rows;
  for (int i = 0; i < FIELDS; i++) {
    g.field[i] =
        allocate(g.count * sizeof(float), g.managed && i == FIELDS - 1);
    fill(g.field[i], g.count * sizeof(float), sizeof(float));
  }
  g.f = allocate(ROWS * sizeof(double), false);
  g.g = allocate(ROWS * sizeof(double), false);
  fill(g.f, ROWS * sizeof(double), sizeof(double));
  fill(g.g, ROWS * sizeof(double), sizeof(double));
  for (int i = 0; i < CALLS; i++)
    if (chance(4))
      other_call();
    else
      function_call(draw(RANDOM_FUNCTIONS));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < FIELDS; i++)
    all_print(g.field[i], g.count, sizeof(float));
  all_print(g.f, ROWS, sizeof(double));
  all_print(g.g, ROWS, sizeof(double));
  fprintf(stderr, "work %ld\n", random_work);
  return 0;
}
