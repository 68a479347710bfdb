// SPDX-License-Identifier: Apache-2.0
// Draws a graph at random.
#include "tests/clients/graphs/random/graph.h"

// ---- random numbers --------------------------------------------------------

static uint64_t state;

int64_t draw_in(int64_t lo, int64_t hi) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return lo + (int64_t)(state % (uint64_t)(hi - lo + 1));
}

// A number that is exact in half.
static double real(void) {
  return (double)draw_in(-512, 512) / 256;
}

// ---- parts of a graph ------------------------------------------------------

int draw_tensor(graph_t *g, const int64_t *whole, bool is_virtual,
                bool is_result) {
  tensor_t *t = &g->tensor[g->tensors];
  memcpy(t->whole, whole, sizeof t->whole);
  t->is_virtual = is_virtual;
  t->is_result = is_result;
  t->type = asked.in_half && !is_virtual ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  int64_t count = count_of(g, whole);
  t->value = calloc((size_t)count, sizeof *t->value);
  CHECK(!t->value);
  for (int64_t i = 0; i < count && !is_result; i++)
    t->value[i] = real();
  return g->tensors++;
}

static int op_add(graph_t *g, cudnnPointwiseMode_t mode, int x, int b,
                  bool is_virtual) {
  int y = draw_tensor(g, g->tensor[x].whole, is_virtual, true);
  g->tensor[y].like = g->tensor[x].like;
  g->op[g->ops++] = (op_t){mode, x, b, y};
  return y;
}

// A tensor of the channels, or of all extents.
static int partner(graph_t *g, int x) {
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  if (g->main == MAIN_PRODUCT)
    return product_partner(g, x);
  dim[1] = g->tensor[x].whole[1];
  return draw_tensor(g, draw_in(0, 2) ? dim : g->tensor[x].whole, false, false);
}

static bool alike(const graph_t *g, int a, int b) {
  return memcmp(g->tensor[a].whole, g->tensor[b].whole,
                sizeof g->tensor[a].whole) == 0;
}

int draw_chain(graph_t *g, int x, int length, bool ends, int residual) {
  static const cudnnPointwiseMode_t one[] = {CUDNN_POINTWISE_RELU_FWD,
                                             CUDNN_POINTWISE_TANH_FWD,
                                             CUDNN_POINTWISE_NEG},
                                    two[] = {CUDNN_POINTWISE_ADD,
                                             CUDNN_POINTWISE_MUL,
                                             CUDNN_POINTWISE_SUB};
  for (int i = 0; i < length; i++) {
    bool is_virtual = !(ends && (i == length - 1 || draw_in(0, 4) == 0));
    if (draw_in(0, 2) == 0)
      x = op_add(g, one[draw_in(0, 2)], x, -1, is_virtual);
    else
      x = op_add(g, two[draw_in(0, 2)], x,
                 residual >= 0 && alike(g, x, residual) && draw_in(0, 1)
                     ? residual
                     : partner(g, x),
                 is_virtual);
  }
  return x;
}

static void statistics_add(graph_t *g, int x) {
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  dim[1] = g->tensor[x].whole[1];
  int y = draw_tensor(g, dim, false, true);
  int squares = draw_tensor(g, dim, false, true);
  g->sum[g->sums++] = (sum_t){CUDNN_REDUCE_TENSOR_ADD, x, y, squares};
}

void draw_sum(graph_t *g, int x) {
  static const cudnnReduceTensorOp_t ops[] = {
      CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_MIN,
      CUDNN_REDUCE_TENSOR_AMAX};
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  bool channels = draw_in(0, 1); // an H100 keeps these, or nothing
  for (int d = 0; d < g->dims; d++)
    dim[d] = (asked.for_hopper ? d != 1 || channels : draw_in(0, 2) != 0)
                 ? 1
                 : g->tensor[x].whole[d];
  int y = draw_tensor(g, dim, false, true);
  g->tensor[y].like = g->tensor[x].like;
  g->tensor[y].type = CUDNN_DATA_FLOAT;
  g->sum[g->sums++] = (sum_t){ops[draw_in(0, 3)], x, y, -1};
}

// ---- main ops --------------------------------------------------------------

// The extents of the main op's tensors, and its window. Pieces of multiples of
// the stride have outputs that add up.
static void extents_draw(graph_t *g, int64_t (*dim)[DIMS]) {
  for (int d = 0; d < DIMS; d++)
    g->window[d] = dim[X][d] = dim[W][d] = dim[Y][d] = 1;
  dim[X][0] = dim[Y][0] =
      draw_in(1, 3) + (asked.split == 'N' || asked.second == 'N' ? 6 : 0);
  if (asked.ones)
    dim[X][0] = dim[Y][0] = 3;
  dim[W][1] =
      draw_in(asked.for_hopper ? 2 : 1, 3) + (asked.split == 'C' ? 6 : 0);
  if (asked.for_hopper && g->main == MAIN_POOL)
    dim[W][1] = 8;
  dim[X][1] = dim[W][1] * g->groups;
  dim[Y][1] = dim[W][0] =
      g->main == MAIN_CONV ? draw_in(1, 3) * g->groups : dim[X][1];
  for (int d = 2; d < g->dims; d++) {
    dim[W][d] = g->main == MAIN_NONE ? 1 : draw_in(1, 4);
    g->step[d] = g->main == MAIN_NONE || draw_in(0, 2) ||
                         (asked.for_hopper && g->kind == X)
                     ? 1
                     : draw_in(2, 3);
    g->dilation[d] = g->main != MAIN_CONV || draw_in(0, 2) ? 1 : 2;
    int64_t span = g->dilation[d] * (dim[W][d] - 1) + 1;
    int64_t sum = draw_in(span > g->step[d] ? span - g->step[d] : 0, span - 1);
    g->pad[d] = draw_in(0, sum);
    g->post[d] = sum - g->pad[d];
    dim[X][d] = draw_in(8, 20) * g->step[d] + draw_in(0, g->step[d] - 1);
    dim[Y][d] = (dim[X][d] + sum - span) / g->step[d] + 1;
    g->window[d] = dim[W][d];
  }
}

// What a pooling reads and writes beside x and y.
static void pooling_draw(graph_t *g, int64_t (*dim)[DIMS]) {
  static const cudnnResampleMode_t modes[] = {
      CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING,
      CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_RESAMPLE_MAXPOOL};
  g->mode = modes[draw_in(0, 2)];
  if (g->mode != CUDNN_RESAMPLE_MAXPOOL)
    return;
  if (g->kind == Y ? draw_in(0, 1) == 0 : draw_in(0, 1)) {
    g->indices = draw_tensor(g, dim[Y], false, true);
    g->tensor[g->indices].type = CUDNN_DATA_INT8;
    g->tensor[g->indices].is_result = g->kind == Y;
  }
  if (g->kind == X) { // the gradient of a maximum: where it was
    g->of_x = draw_tensor(g, dim[X], false, false);
    g->of_y = draw_tensor(g, dim[Y], false, false);
  }
}

static int kind_draw(void) {
  // Gradients of data along a periodic dimension are refused.
  int kind = draw_in(0, 1) ? Y : asked.wraps ? W : (int)draw_in(X, W);
  return asked.data                                             ? X
         : asked.main == MAIN_CONV                              ? kind
         : asked.main == MAIN_POOL && !asked.wraps && kind != Y ? X
                                                                : Y;
}

// The convolution is added to half of what is there.
static void old_values(graph_t *g, tensor_t *t) {
  size_t count = (size_t)count_of(g, t->whole);
  g->beta = 0.5F;
  t->old = malloc(count * sizeof *t->old);
  CHECK(!t->old);
  for (size_t i = 0; i < count; i++)
    t->value[i] = t->old[i] = real();
}

graph_t graph_draw(uint64_t seed) {
  graph_t g = {.main = asked.main,
               .groups = 1,
               .indices = -1,
               .of_x = -1,
               .of_y = -1,
               .conv = {-1, -1, -1}};
  state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++)
    (void)draw_in(0, 1);
  if (g.main == MAIN_PRODUCT) {
    product_draw(&g);
    return g;
  }
  if (g.main == MAIN_NORM) {
    norm_draw(&g);
    return g;
  }
  int least = asked.split == 'D'                                       ? 5
              : asked.split == 'H' || asked.second || asked.for_hopper ? 4
                                                                       : 3;
  g.dims = (int)draw_in(g.main == MAIN_POOL && least < 4 ? 4 : least, DIMS);
  g.kind = kind_draw();
  if (asked.for_hopper && g.kind == X && asked.split != 'D')
    g.dims = 4;
  g.last = draw_in(0, 1) || asked.for_hopper;
  g.inner = asked.data && !asked.for_hopper && draw_in(0, 3) == 0;
  g.groups = draw_in(0, 3) || asked.for_hopper ? 1 : 2;
  int64_t dim[CONV_TENSORS][DIMS];
  extents_draw(&g, dim);
  // An H100 computes ops behind forward poolings only.
  bool bare = asked.for_hopper && g.main == MAIN_POOL;
  int length =
      g.kind == W || (bare && g.kind == X) ? 0 : (int)draw_in(0, CHAIN);
  bool prologue = (asked.for_hopper ? g.kind == Y : g.kind != X) &&
                  draw_in(0, 2) == 0 && !bare;
  if (g.main == MAIN_NONE) {
    int x = draw_tensor(&g, dim[X], false, false);
    g.conv[X] = g.conv[Y] = x;
    int end = draw_chain(&g, x, (int)draw_in(1, CHAIN), true, x);
    for (int i = asked.ones ? 0 : (int)draw_in(0, 2); i > 0; i--)
      draw_sum(&g, end);
    return g;
  }
  for (int i = 0; i < CONV_TENSORS; i++)
    if (i != g.kind && (i != W || g.main == MAIN_CONV))
      g.conv[i] = draw_tensor(&g, dim[i], false, false);
  int own = g.conv[X];
  if (prologue)
    g.conv[X] = draw_chain(&g, own, (int)draw_in(1, 3), false, -1);
  if (asked.data && !asked.for_hopper && draw_in(0, 2) == 0)
    g.conv[Y] = draw_chain(&g, g.conv[Y], (int)draw_in(1, 3), false, -1);
  if (g.main == MAIN_POOL)
    pooling_draw(&g, dim);
  g.before = g.ops;
  bool is_virtual = length > 0 && draw_in(0, 3);
  g.conv[g.kind] = draw_tensor(&g, dim[g.kind], is_virtual, true);
  if (!is_virtual && g.kind != W && g.main == MAIN_CONV && draw_in(0, 3) == 0 &&
      !asked.for_hopper)
    old_values(&g, &g.tensor[g.conv[g.kind]]);
  int end =
      draw_chain(&g, g.conv[g.kind], length, true, g.kind == Y ? own : -1);
  bool refused = g.main == MAIN_POOL && g.kind == X && g.indices < 0 &&
                 g.mode != CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
  for (int i = g.kind != W && draw_in(0, 2) == 0 ? (int)draw_in(1, 2) : 0;
       i > 0 && !refused && !asked.ones && !asked.data && !bare; i--)
    draw_sum(&g, end);
  if (asked.with_statistics && g.kind == Y && g.sums < 2)
    statistics_add(&g, end);
  return g;
}
