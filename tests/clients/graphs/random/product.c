// SPDX-License-Identifier: Apache-2.0
// Graphs with a product of matrices: drawn, and computed by loops.
#include "tests/clients/graphs/random/graph.h"

int product_dimension(const graph_t *g, int like, char letter) {
  int rows = g->dims - 2, columns = g->dims - 1;
  switch (letter) {
  case 'M':
    return like == W ? -1 : rows;
  case 'K':
    return like == X ? columns : like == W ? rows : -1;
  case 'N':
    return like == X ? -1 : columns;
  }
  return 0;
}

// ---- drawing ---------------------------------------------------------------

// One element, a row, a column, or all.
int product_partner(graph_t *g, int x) {
  const tensor_t *with = &g->tensor[x];
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  int64_t what = draw_in(0, 4);
  for (int d = 0; d < g->dims; d++)
    if (what >= 3 || (what == 1 && d == g->dims - 1) ||
        (what == 2 && d == g->dims - 2))
      dim[d] = with->whole[d];
  int like = with->like;
  int t = draw_tensor(g, dim, false, false);
  g->tensor[t].like = like;
  g->tensor[t].is_by_cols = what >= 3 && draw_in(0, 3) == 0;
  return t;
}

static int matrix_add(graph_t *g, int like, const int64_t *dim, bool is_virtual,
                      bool is_result) {
  int t = draw_tensor(g, dim, is_virtual, is_result);
  g->tensor[t].like = like;
  g->tensor[t].is_by_cols = draw_in(0, 2) == 0;
  return t;
}

// Pieces of a dimension that is split have at least two elements.
static int64_t extent_least(char letter) {
  return asked.split == letter || asked.second == letter ? 8 : 1;
}

static int64_t extent(char letter) {
  int64_t least = extent_least(letter);
  return draw_in(least, least > 1 ? 14 : 9);
}

void product_draw(graph_t *g) {
  g->kind = Y;
  g->dims = (int)draw_in(3, 4);
  int64_t dim[CONV_TENSORS][DIMS], batch = extent('B'), heads = draw_in(1, 3);
  int64_t m = extent('M'), n = extent('N'), k = extent('K');
  for (int i = 0; i < CONV_TENSORS; i++) {
    for (int d = 0; d < DIMS; d++)
      dim[i][d] = 1;
    // One matrix for the whole batch; a batch that is cut has several.
    bool one = i != Y && draw_in(0, 3) == 0 &&
               (i == X || dim[X][0] > 1 || extent_least('B') == 1);
    dim[i][0] = one ? 1 : batch;
    if (g->dims == 4)
      dim[i][1] = one ? 1 : heads;
    dim[i][g->dims - 2] = i == W ? k : m;
    dim[i][g->dims - 1] = i == X ? k : n;
  }
  for (int d = 0; d < g->dims - 2; d++)
    dim[Y][d] = dim[X][d] > dim[W][d] ? dim[X][d] : dim[W][d];
  for (int i = X; i <= W; i++) {
    g->conv[i] = matrix_add(g, i, dim[i], false, false);
    if (draw_in(0, 2) == 0)
      g->conv[i] = draw_chain(g, g->conv[i], (int)draw_in(1, 2), false, -1);
  }
  g->before = g->ops;
  int length = (int)draw_in(0, CHAIN);
  g->conv[Y] = matrix_add(g, Y, dim[Y], length > 0 && draw_in(0, 3), true);
  int end = draw_chain(g, g->conv[Y], length, true, -1);
  for (int i = draw_in(0, 2) ? 0 : (int)draw_in(1, 2); i > 0; i--)
    draw_sum(g, end);
}

// ---- what is right ---------------------------------------------------------

void product_run(const graph_t *g) {
  const tensor_t *a = &g->tensor[g->conv[X]], *b = &g->tensor[g->conv[W]],
                 *c = &g->tensor[g->conv[Y]];
  int64_t terms = a->whole[g->dims - 1];
  for (int64_t i = 0; i < count_of(g, c->whole); i++) {
    int64_t at[DIMS], of_a[DIMS], of_b[DIMS];
    place_of(g, c->whole, i, at);
    memcpy(of_a, at, sizeof at);
    memcpy(of_b, at, sizeof at);
    c->value[i] = 0;
    for (int64_t k = 0; k < terms; k++) {
      of_a[g->dims - 1] = of_b[g->dims - 2] = k;
      c->value[i] += a->value[index_of(g, a->whole, of_a)] *
                     b->value[index_of(g, b->whole, of_b)];
    }
  }
}
