// SPDX-License-Identifier: Apache-2.0
// Prints random graphs of two products of matrices: what an engine takes, and
// mostly one thing that it does not.
//
// usage: products SEED COUNT
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/made.h"
#include "tests/host/planner/print.h"

enum { DIMS = 4 };

// What may be different.
typedef enum {
  NOTHING,
  TYPE,    // of all
  MIXED,   // types
  BETWEEN, // the type of what the second one reads
  RESULT,  // the type of the result
  INNER,   // the first one's sums
  OUTER,   // the last rows
  LEFT,    // orders
  RIGHT,
  OTHER,
  PROLOGUE,
  EPILOGUE,
  THREE, // dimensions
  DIFFERENT,
} different_t;

static bool one_in(int n) {
  return case_range(1, n) == 1;
}

static cudnnDataType_t any_type(void) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                          CUDNN_DATA_FLOAT};
  return types[case_range(0, one_in(3) ? 2 : 1)];
}

// A graph while it is drawn.
typedef struct {
  made_t *m;
  different_t what;
  bool link_is_b; // the second product's b comes from the first one, not its a
  cudnnDataType_t type;
  int rank;
  int64_t rows, terms, middle; // of the first product: a's and b's
  int64_t others, last;        // of the second one
} drawn_t;

// Of the type that all have, if these are not mixed.
static cudnnDataType_t type_of(const drawn_t *d) {
  return d->what == MIXED ? any_type() : d->type;
}

static int matrix(const drawn_t *d, cudnnDataType_t type, int64_t rows,
                  int64_t columns, bool by_columns, bool is_virtual) {
  const int64_t dim[DIMS] = {2, 3, rows, columns};
  int index = made_virtual(d->m, type, d->rank, dim + DIMS - d->rank);
  sdg_graph_tensor_t *t = &d->m->graph.tensor[index];
  t->is_virtual = is_virtual;
  t->alignment = 16;
  if (by_columns) {
    t->stride[d->rank - 2] = 1;
    t->stride[d->rank - 1] = rows;
  }
  return index;
}

static void map(const drawn_t *d, cudnnPointwiseMode_t mode, int x, int b,
                int y) {
  made_pointwise(d->m, mode, CUDNN_DATA_FLOAT, x, b, -1, y);
}

// The first product, and what is between it and the second one.
static int link_draw(const drawn_t *d) {
  int a = matrix(d, type_of(d), d->rows, d->terms, d->what == LEFT, false);
  int b = matrix(d, type_of(d), d->terms, d->middle, d->what != RIGHT, false);
  int c = matrix(d, CUDNN_DATA_FLOAT, d->rows, d->middle, false, true);
  if (d->what == PROLOGUE) {
    int of = matrix(d, d->type, d->rows, d->terms, false, true);
    map(d, CUDNN_POINTWISE_ABS, a, -1, of);
    a = of;
  }
  made_matmul(d->m, CUDNN_DATA_FLOAT, a, b, c);
  int x = matrix(d, d->what == BETWEEN ? CUDNN_DATA_FLOAT : type_of(d), d->rows,
                 d->middle, false, !one_in(6));
  int bias = one_in(2) ? -1
                       : matrix(d, type_of(d), one_in(2) ? d->rows : 1,
                                d->middle, false, false);
  map(d, bias < 0 ? CUDNN_POINTWISE_RELU_FWD : CUDNN_POINTWISE_ADD, c, bias, x);
  return x;
}

static void second_draw(const drawn_t *d, int link) {
  int64_t left = d->link_is_b ? d->others : d->rows;
  int other = matrix(d, type_of(d), d->link_is_b ? d->others : d->middle,
                     d->link_is_b ? d->rows : d->last, d->what == OTHER, false);
  bool ends = d->what != EPILOGUE;
  cudnnDataType_t type = type_of(d);
  int y = matrix(d, d->what == RESULT || !ends ? CUDNN_DATA_FLOAT : type, left,
                 d->last, ends && one_in(4), !ends);
  made_matmul(d->m, CUDNN_DATA_FLOAT, d->link_is_b ? other : link,
              d->link_is_b ? link : other, y);
  if (!ends)
    map(d, CUDNN_POINTWISE_RELU_FWD, y, -1,
        matrix(d, type, left, d->last, false, false));
}

static void draw(made_t *m, uint64_t seed) {
  case_seed(seed);
  made_create(m);
  drawn_t d = {.m = m};
  d.what = one_in(3) ? NOTHING : (different_t)case_range(1, DIFFERENT - 1);
  if (d.what == THREE && !one_in(4)) // its plans are compiled before they fail
    d.what = NOTHING;
  d.link_is_b = one_in(3);
  d.rank = d.what == THREE ? DIMS - 1 : DIMS;
  d.type = d.what == TYPE ? CUDNN_DATA_FLOAT
           : one_in(2)    ? CUDNN_DATA_HALF
                          : CUDNN_DATA_BFLOAT16;
  d.terms = d.what == INNER ? 8 * case_range(1, 17) : 64;
  d.last = d.what == OUTER ? 8 * case_range(1, 17) : 64;
  d.rows = case_range(1, 200);
  d.middle = d.link_is_b ? d.last : case_range(1, 200);
  d.others = case_range(1, 200);
  second_draw(&d, link_draw(&d));
}

int main(int argc, char **argv) {
  return planner_print(argc, argv, draw);
}
