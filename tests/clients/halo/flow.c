/* SPDX-License-Identifier: Apache-2.0 */
/* Shallow water on a channel that closes upon itself in x and has walls in y:
 * stencils of its own on the host, without cuDNN. Each rank has a piece with
 * one row and column around it, which sundog_halo() fills; the largest speed of
 * all ranks decides the time step (sundog_combine).
 *
 * usage: flow ROWS COLUMNS STEPS RANK [WORD]
 *
 * ROWS, COLUMNS: those of the ranks, as in 5,4,7 and 9; there is a rank for
 * each pair, and columns vary faster. RANK -1 has all of them. Writes each
 * value with its place to the standard output, sorted by no order.
 *
 * WORD: what is wrong, or `rules` to leave the split to the rules, or `graph`
 * to capture the calls into CUDA graphs.
 *   border   rank 1 wants another border     widths  rank 1 wants another width
 *   type     no such type                    dims    no such dimension
 *   twice    two dimensions of one name      stride  elements overlap
 *   negative a width below 0                 null    rank 1 gives no memory
 *   heap     memory of malloc                axis    an axis that does not
 * exist op       rank 1 takes the minimum        count   rank 1 combines two
 * numbers none     combines no numbers             half    a type that cannot
 * be leave    rank 1 ends early               pieces  the pieces make no tensor
 *   numbers  combines memory of malloc       order   rank 1 combines first
 *   overlap  rank 1's piece lies elsewhere in its memory
 *   same     rank 1 keeps its extents while others change theirs */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"
#include "tests/clients/parts.h"

static int rank, rows, columns;
static cudaStream_t stream;
static const char *word = "";

static bool is(const char *what) {
  return strcmp(word, what) == 0;
}

/* Whether this rank does what is wrong on one rank only. */
static bool is_mine(const char *what) {
  return is(what) && rank == 1;
}

static int parts(const char *list) {
  int count = 1;
  for (; *list; list++)
    count += *list == ',';
  return count;
}

static double *managed(size_t count) {
  void *memory;
  if (is("heap"))
    return calloc(count, sizeof(double));
  CHECK(cudaMallocManaged(&memory, (count + 1) * sizeof(double),
                          cudaMemAttachGlobal));
  memset(memory, 0, count * sizeof(double));
  return memory;
}

/* Element (i, j) of a field with a row and a column around it. */
static double *at(double *field, int i, int j) {
  return field + (i + 1) * (columns + 2) + j + 1;
}

static void tensor_make(sundog_tensor_t *out) {
  *out = (sundog_tensor_t){
      .type = is("type") ? (sundog_type_t)77 : SUNDOG_DOUBLE,
      .dims = is("dims")    ? "H Q"
              : is("twice") ? "H H"
                            : "H W",
      .extent = {rows, columns},
      .stride = {is("stride") ? 1 : columns + 2, 1},
      .split = is("rules")  ? NULL
               : is("axis") ? "H:z"
                            : "H:y,W:x",
  };
  if (is("pieces"))
    memset(out->stride, 0, sizeof out->stride);
  if (is_mine("pieces"))
    out->extent[1]++;
}

/* Fills what is around the rank's elements; returns 0 or a code. */
static int surround(double *field) {
  sundog_tensor_t tensor;
  sundog_widths_t widths = {
      .before = {is_mine("widths") ? 0 : 1, is("negative") ? -1 : 1},
      .after = {1, 1},
      .border = {is_mine("border") ? SUNDOG_ZERO : SUNDOG_LEAVE, SUNDOG_WRAP},
      .stride = {is("pieces") ? 0 : columns + 2, is("pieces") ? 0 : 1}};
  bool empty = rows == 0 || columns == 0;
  tensor_make(&tensor);
  void *out = empty || is_mine("null") ? NULL : field;
  double *data = empty ? NULL : at(field, 0, is_mine("overlap") ? 1 : 0);
  if (is("pieces"))
    out = managed((size_t)(rows + 2) * (size_t)(columns + 3));
  if (is_mine("widths"))
    out = field + columns + 2;
  return sundog_halo(stream, &tensor, data, &widths, out);
}

static void walls(double *h, double *u, int first, int whole) {
  for (int j = -1; j <= columns; j++) {
    if (first == 0 && rows > 0) {
      *at(h, -1, j) = *at(h, 0, j);
      *at(u, -1, j) = -*at(u, 0, j);
    }
    if (first + rows == whole && rows > 0) {
      *at(h, rows, j) = *at(h, rows - 1, j);
      *at(u, rows, j) = -*at(u, rows - 1, j);
    }
  }
}

static double speed_of(double *h, double *u) {
  double most = 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      most = fmax(most, fabs(*at(u, i, j)) + sqrt(*at(h, i, j)));
  return most;
}

static void step(double *h, double *u, double *h_next, double *u_next,
                 double dt) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      double slope = *at(h, i + 1, j) - *at(h, i - 1, j) +
                     0.5 * (*at(h, i, j + 1) - *at(h, i, j - 1)) +
                     0.1 * (*at(h, i + 1, j + 1) - *at(h, i - 1, j - 1));
      double flow = *at(u, i + 1, j) - *at(u, i - 1, j) + *at(u, i, j + 1) -
                    *at(u, i, j - 1);
      *at(h_next, i, j) = *at(h, i, j) - dt * flow;
      *at(u_next, i, j) = *at(u, i, j) - dt * slope;
    }
}

static void swap(double **a, double **b) {
  double *old = *a;
  *a = *b;
  *b = old;
}

/* The largest of all ranks' numbers. */
static int largest(double *io) {
  sundog_op_t op = is_mine("op") ? SUNDOG_MIN : SUNDOG_MAX;
  size_t count = is("none") ? 0 : is_mine("count") ? 2 : 1;
  sundog_type_t type = is("half") ? (sundog_type_t)11 : SUNDOG_DOUBLE;
  double heap;
  return sundog_combine(stream, is("numbers") ? &heap : io, count, type, op,
                        NULL);
}

static int bring(double *h, double *u, double *speed) {
  int code = is_mine("order") ? largest(speed) : 0;
  if (!code)
    code = surround(h);
  if (!code)
    code = surround(u);
  if (!code && !is_mine("order"))
    code = largest(speed);
  return code;
}

/* The same by graphs, one for each place of the fields. The calls were made
 * before, so that nothing is left to agree on. */
static int bring_by_graph(int s, double *h, double *u, double *speed) {
  static cudaGraphExec_t made[2];
  cudaGraph_t graph;
  int code = 0;
  if (s < 2)
    return bring(h, u, speed);
  if (!made[s % 2]) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    code = bring(h, u, speed);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&made[s % 2], graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  CHECK(cudaGraphLaunch(made[s % 2], stream));
  return code;
}

int main(int argc, char **argv) {
  if (argc < 5)
    return EXIT_FAILURE;
  int steps = atoi(argv[3]), x, first[2], more;
  rank = atoi(argv[4]);
  word = argc > 5 ? argv[5] : "";
  x = parts(argv[2]);
  rows = part_of(argv[1], rank < 0 ? -1 : rank / x, &first[0]);
  columns = part_of(argv[2], rank < 0 ? -1 : rank % x, &first[1]);
  int whole = part_of(argv[1], -1, &more);
  size_t count = (size_t)(rows + 2) * (size_t)(columns + 2);
  double *h = managed(count), *u = managed(count), *h_next = managed(count),
         *u_next = managed(count), *speed = managed(1);
  if (is("graph"))
    CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      int r = first[0] + i, c = first[1] + j;
      *at(h, i, j) = 1 + 0.01 * ((r * 7 + c * 3) % 11);
      *at(u, i, j) = 0.01 * ((r * 5 + c * 2) % 7) - 0.03;
    }
  for (int s = 0; s < steps; s++) {
    if (is_mine("leave") && s == 1)
      return 9;
    if (is("same") && s == 1 && rank != 1) { /* rows move between the others */
      rows += rank == 0 ? -1 : 1;
    }
    *speed = speed_of(h, u);
    int code =
        is("graph") ? bring_by_graph(s, h, u, speed) : bring(h, u, speed);
    CHECK(cudaDeviceSynchronize());
    if (code) {
      fprintf(stderr, "rank %d: code %d\n", rank, code);
      return 10;
    }
    walls(h, u, first[0], whole);
    step(h, u, h_next, u_next, 0.1 / *speed);
    swap(&h, &h_next);
    swap(&u, &u_next);
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      printf("%d %d %a %a\n", first[0] + i, first[1] + j, *at(h, i, j),
             *at(u, i, j));
  return EXIT_SUCCESS;
}
