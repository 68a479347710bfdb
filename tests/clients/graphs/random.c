// SPDX-License-Identifier: Apache-2.0
// Random graphs with one convolution against loops in double precision:
//   [scale, bias, relu ->] convolution of any kind [-> pointwise ops, one of
//   which may read the convolution's own input; intermediate results may be
//   written, too] [-> reductions].
//
// usage: random DIMENSION FIRST COUNT [statistics | half | wrap]
//   DIMENSION  N, D, H or W: with LAYER_VIEW=shard each rank (SUNDOG_RANK of
//              SUNDOG_SIZE) has its piece of it. Two of them, as HW: the second
//              is split over pairs of ranks that follow one another
//   FIRST      seed of the first graph; COUNT: how many
//   half       tensors with memory are in half, but for sums
//   wrap       the dimension is periodic: wrap = DIMENSION in the rules
//   statistics graphs may end in GEN_STATS, which a GPU takes in half only
// Prints how many were computed, and the seed of one that is wrong. A graph
// that is refused (CUDNN_STATUS_NOT_SUPPORTED) counts as none.
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

__extension__ typedef _Float16 half_t;

enum { DIMS = 5, TENSORS = 24, OPS = 12, CHAIN = 4 };
enum { X, W, Y, CONV_TENSORS };

// ---- random numbers --------------------------------------------------------

static uint64_t state;

static int64_t in(int64_t lo, int64_t hi) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return lo + (int64_t)(state % (uint64_t)(hi - lo + 1));
}

// A number that is exact in half.
static double real(void) {
  return (double)in(-512, 512) / 256;
}

// ---- graphs ----------------------------------------------------------------

typedef struct {
  int64_t whole[DIMS], dim[DIMS], first[DIMS], stride[DIMS];
  bool is_virtual, is_result;
  bool is_half, is_old; // is_old: has values that are read
  double *value;        // of the whole tensor, last dimension innermost
  void *device;         // of the piece
  int64_t places;       // elements in device memory
} tensor_t;

typedef struct {
  cudnnPointwiseMode_t mode;
  int x, b, y; // b -1: none
} op_t;

typedef struct {
  cudnnReduceTensorOp_t op;
  int x, y, squares; // squares -1: a reduction; else statistics
} sum_t;

typedef struct {
  int dims, kind; // of X, W, Y: the one that is computed
  bool last;      // channels last
  int64_t pad[DIMS], post[DIMS], step[DIMS], dilation[DIMS], groups;
  float beta;
  tensor_t tensor[TENSORS];
  int tensors, conv[CONV_TENSORS];
  op_t op[OPS];
  int ops, before; // ops in front of the convolution
  sum_t sum[2];
  int sums;
} graph_t;

static int64_t count_of(const graph_t *g, const int64_t *dim) {
  int64_t count = 1;
  for (int d = 0; d < g->dims; d++)
    count *= dim[d];
  return count;
}

static bool in_half, with_statistics, wraps;
static char split, second; // second 0: one dimension

static int tensor_add(graph_t *g, const int64_t *whole, bool is_virtual,
                      bool is_result) {
  tensor_t *t = &g->tensor[g->tensors];
  memcpy(t->whole, whole, sizeof t->whole);
  t->is_virtual = is_virtual;
  t->is_result = is_result;
  t->is_half = in_half && !is_virtual;
  int64_t count = count_of(g, whole);
  t->value = calloc((size_t)count, sizeof *t->value);
  CHECK(!t->value);
  for (int64_t i = 0; i < count && !is_result; i++)
    t->value[i] = real();
  return g->tensors++;
}

static int op_add(graph_t *g, cudnnPointwiseMode_t mode, int x, int b,
                  bool is_virtual) {
  int y = tensor_add(g, g->tensor[x].whole, is_virtual, true);
  g->op[g->ops++] = (op_t){mode, x, b, y};
  return y;
}

// A tensor of the channels, or of all extents.
static int partner(graph_t *g, int x) {
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  dim[1] = g->tensor[x].whole[1];
  return tensor_add(g, in(0, 2) ? dim : g->tensor[x].whole, false, false);
}

static bool alike(const graph_t *g, int a, int b) {
  return memcmp(g->tensor[a].whole, g->tensor[b].whole,
                sizeof g->tensor[a].whole) == 0;
}

static int chain(graph_t *g, int x, int length, bool ends, int residual) {
  static const cudnnPointwiseMode_t one[] = {CUDNN_POINTWISE_RELU_FWD,
                                             CUDNN_POINTWISE_TANH_FWD,
                                             CUDNN_POINTWISE_NEG},
                                    two[] = {CUDNN_POINTWISE_ADD,
                                             CUDNN_POINTWISE_MUL,
                                             CUDNN_POINTWISE_SUB};
  for (int i = 0; i < length; i++) {
    bool is_virtual = !(ends && (i == length - 1 || in(0, 4) == 0));
    if (in(0, 2) == 0)
      x = op_add(g, one[in(0, 2)], x, -1, is_virtual);
    else
      x = op_add(g, two[in(0, 2)], x,
                 residual >= 0 && alike(g, x, residual) && in(0, 1)
                     ? residual
                     : partner(g, x),
                 is_virtual);
  }
  return x;
}

static void statistics_add(graph_t *g, int x) {
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  dim[1] = g->tensor[x].whole[1];
  int y = tensor_add(g, dim, false, true);
  int squares = tensor_add(g, dim, false, true);
  g->sum[g->sums++] = (sum_t){CUDNN_REDUCE_TENSOR_ADD, x, y, squares};
}

static void sum_add(graph_t *g, int x) {
  static const cudnnReduceTensorOp_t ops[] = {
      CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_MIN,
      CUDNN_REDUCE_TENSOR_AMAX};
  int64_t dim[DIMS] = {1, 1, 1, 1, 1};
  for (int d = 0; d < g->dims; d++)
    dim[d] = in(0, 2) ? 1 : g->tensor[x].whole[d];
  int y = tensor_add(g, dim, false, true);
  g->tensor[y].is_half = false;
  g->sum[g->sums++] = (sum_t){ops[in(0, 3)], x, y, -1};
}

// The convolution is added to half of what is there.
static void old_values(graph_t *g, tensor_t *t) {
  g->beta = 0.5F;
  t->is_old = true;
  for (int64_t i = 0; i < count_of(g, t->whole); i++)
    t->value[i] = real();
}

static graph_t drawn(uint64_t seed) {
  graph_t g = {.groups = 1};
  state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++)
    (void)in(0, 1);
  int least = split == 'D' ? 5 : split == 'H' || second ? 4 : 3;
  g.dims = (int)in(least, DIMS);
  // Data gradients of a periodic dimension are refused.
  g.kind = in(0, 1) ? Y : wraps ? W : (int)in(X, W);
  g.last = in(0, 1);
  g.groups = in(0, 3) ? 1 : 2;
  int64_t dim[CONV_TENSORS][DIMS];
  for (int i = 0; i < CONV_TENSORS; i++)
    for (int d = 0; d < DIMS; d++)
      dim[i][d] = 1;
  dim[X][0] = dim[Y][0] = in(1, 3) + (split == 'N' || second == 'N' ? 6 : 0);
  dim[W][1] = in(1, 3);
  dim[X][1] = dim[W][1] * g.groups;
  dim[Y][1] = dim[W][0] = in(1, 3) * g.groups;
  for (int d = 2; d < g.dims; d++) {
    dim[W][d] = in(1, 4);
    g.step[d] = in(0, 2) ? 1 : in(2, 3);
    g.dilation[d] = in(0, 2) ? 1 : 2;
    int64_t span = g.dilation[d] * (dim[W][d] - 1) + 1;
    // Pieces of multiples of the stride have outputs that add up.
    int64_t sum = in(span > g.step[d] ? span - g.step[d] : 0, span - 1);
    g.pad[d] = in(0, sum);
    g.post[d] = sum - g.pad[d];
    dim[X][d] = in(8, 20) * g.step[d] + in(0, g.step[d] - 1);
    dim[Y][d] = (dim[X][d] + sum - span) / g.step[d] + 1;
  }
  int length = g.kind == W ? 0 : (int)in(0, CHAIN);
  bool prologue = g.kind != X && in(0, 2) == 0;
  for (int i = 0; i < CONV_TENSORS; i++)
    if (i != g.kind)
      g.conv[i] = tensor_add(&g, dim[i], false, false);
  int own = g.conv[X];
  if (prologue)
    g.conv[X] = chain(&g, own, (int)in(1, 3), false, -1);
  g.before = g.ops;
  bool is_virtual = length > 0 && in(0, 3);
  g.conv[g.kind] = tensor_add(&g, dim[g.kind], is_virtual, true);
  if (!is_virtual && g.kind != W && in(0, 3) == 0)
    old_values(&g, &g.tensor[g.conv[g.kind]]);
  int end = chain(&g, g.conv[g.kind], length, true, g.kind == Y ? own : -1);
  for (int i = g.kind != W && in(0, 2) == 0 ? (int)in(1, 2) : 0; i > 0; i--)
    sum_add(&g, end);
  if (with_statistics && g.kind == Y && g.sums < 2)
    statistics_add(&g, end);
  return g;
}

static void graph_free(graph_t *g) {
  for (int t = 0; t < g->tensors; t++) {
    free(g->tensor[t].value);
    CHECK(cudaFree(g->tensor[t].device));
  }
}

// ---- what is right ---------------------------------------------------------

static void place_of(const graph_t *g, const int64_t *dim, int64_t i,
                     int64_t *out) {
  memset(out, 0, DIMS * sizeof *out);
  for (int d = g->dims; d-- > 0; i /= dim[d])
    out[d] = i % dim[d];
}

static int64_t index_of(const graph_t *g, const int64_t *dim,
                        const int64_t *at) {
  int64_t index = 0;
  for (int d = 0; d < g->dims; d++)
    index = index * dim[d] + (dim[d] == 1 ? 0 : at[d]);
  return index;
}

static void op_run(const graph_t *g, const op_t *op) {
  const tensor_t *x = &g->tensor[op->x], *y = &g->tensor[op->y];
  const tensor_t *b = op->b < 0 ? NULL : &g->tensor[op->b];
  for (int64_t i = 0; i < count_of(g, y->whole); i++) {
    int64_t at[DIMS];
    place_of(g, y->whole, i, at);
    double u = x->value[i], v = b ? b->value[index_of(g, b->whole, at)] : 0;
    y->value[i] = op->mode == CUDNN_POINTWISE_ADD        ? u + v
                  : op->mode == CUDNN_POINTWISE_SUB      ? u - v
                  : op->mode == CUDNN_POINTWISE_MUL      ? u * v
                  : op->mode == CUDNN_POINTWISE_NEG      ? -u
                  : op->mode == CUDNN_POINTWISE_TANH_FWD ? tanh(u)
                                                         : fmax(u, 0);
  }
}

static int dimension_of(const graph_t *g, char letter) {
  return letter == 'N'   ? 0
         : letter == 'W' ? g->dims - 1
         : letter == 'H' ? g->dims - 2
                         : g->dims - 3;
}

// Adds every product of an output's place and a tap.
static void conv_run(const graph_t *g) {
  const tensor_t *x = &g->tensor[g->conv[X]], *w = &g->tensor[g->conv[W]],
                 *y = &g->tensor[g->conv[Y]];
  int64_t taps = count_of(g, w->whole), outputs = count_of(g, y->whole);
  int64_t in_group = w->whole[0] / g->groups;
  const tensor_t *result = &g->tensor[g->conv[g->kind]];
  for (int64_t i = 0; i < count_of(g, result->whole); i++)
    result->value[i] *= (double)g->beta;
  for (int64_t i = 0; i < outputs; i++)
    for (int64_t k = 0; k < taps; k++) {
      int64_t o[DIMS], tap[DIMS], at[DIMS];
      bool inside = true;
      place_of(g, y->whole, i, o);
      place_of(g, w->whole, k, tap);
      if (tap[0] != o[1])
        continue;
      at[0] = o[0];
      at[1] = tap[1] + o[1] / in_group * w->whole[1];
      for (int d = 2; d < g->dims; d++) {
        at[d] = o[d] * g->step[d] - g->pad[d] + tap[d] * g->dilation[d];
        if (wraps && d == dimension_of(g, split))
          at[d] = (at[d] + 8 * x->whole[d]) % x->whole[d];
        inside &= at[d] >= 0 && at[d] < x->whole[d];
      }
      int64_t from = inside ? index_of(g, x->whole, at) : 0;
      if (!inside)
        continue;
      if (g->kind == Y)
        y->value[i] += x->value[from] * w->value[k];
      else if (g->kind == W)
        w->value[k] += x->value[from] * y->value[i];
      else
        x->value[from] += y->value[i] * w->value[k];
    }
}

static void statistics_run(const graph_t *g, const sum_t *sum) {
  const tensor_t *x = &g->tensor[sum->x];
  for (int64_t i = 0; i < count_of(g, x->whole); i++) {
    int64_t at[DIMS];
    place_of(g, x->whole, i, at);
    g->tensor[sum->y].value[at[1]] += x->value[i];
    g->tensor[sum->squares].value[at[1]] += x->value[i] * x->value[i];
  }
}

static void sum_run(const graph_t *g, const sum_t *sum) {
  const tensor_t *x = &g->tensor[sum->x], *y = &g->tensor[sum->y];
  int64_t count = count_of(g, x->whole), results = count_of(g, y->whole);
  for (int64_t i = 0; i < results; i++)
    y->value[i] = sum->op == CUDNN_REDUCE_TENSOR_MAX   ? -INFINITY
                  : sum->op == CUDNN_REDUCE_TENSOR_MIN ? INFINITY
                                                       : 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t at[DIMS];
    place_of(g, x->whole, i, at);
    double v = x->value[i], *to = &y->value[index_of(g, y->whole, at)];
    switch ((int)sum->op) {
    case CUDNN_REDUCE_TENSOR_MAX:
      *to = fmax(*to, v);
      break;
    case CUDNN_REDUCE_TENSOR_MIN:
      *to = fmin(*to, v);
      break;
    case CUDNN_REDUCE_TENSOR_AMAX:
      *to = fmax(*to, fabs(v));
      break;
    default:
      *to += v;
    }
  }
}

// ---- pieces ----------------------------------------------------------------

static int64_t number_of(const char *name, int64_t missing) {
  const char *text = getenv(name);
  return text ? strtoll(text, NULL, 10) : missing;
}

// A boundary in units, with pieces of different sizes; at least one each.
static int64_t boundary(int64_t units, int64_t rank, int64_t ranks) {
  int64_t more = rank > 0 && rank < ranks && units >= 3 * ranks ? rank % 2 : 0;
  return units * rank / ranks + more;
}

static void dimension_cut(graph_t *g, int s, int64_t rank, int64_t ranks) {
  int64_t step = s ? g->step[s] : 1;
  int64_t of_x = g->tensor[g->conv[X]].whole[s];
  int64_t of_y = g->tensor[g->conv[Y]].whole[s];
  int64_t units = of_x / step;
  for (int t = 0; t < g->tensors; t++) {
    tensor_t *tensor = &g->tensor[t];
    if (t == g->conv[W] || tensor->whole[s] == 1)
      continue;
    bool like_x = tensor->whole[s] == of_x;
    int64_t lo = boundary(units, rank, ranks) * (like_x ? step : 1);
    int64_t hi = rank == ranks - 1
                     ? (like_x ? of_x : of_y)
                     : boundary(units, rank + 1, ranks) * (like_x ? step : 1);
    tensor->first[s] = lo;
    tensor->dim[s] = hi - lo;
  }
}

static void pieces_cut(graph_t *g) {
  const char *view = getenv("LAYER_VIEW");
  bool cuts = view && strcmp(view, "shard") == 0;
  int64_t ranks = cuts ? number_of("SUNDOG_SIZE", 1) : 1;
  int64_t rank = cuts ? number_of("SUNDOG_RANK", 0) : 0;
  int64_t pair = second && ranks > 1 ? 2 : 1;
  for (int t = 0; t < g->tensors; t++)
    memcpy(g->tensor[t].dim, g->tensor[t].whole, sizeof g->tensor[t].dim);
  dimension_cut(g, dimension_of(g, split), rank / pair, ranks / pair);
  if (second)
    dimension_cut(g, dimension_of(g, second), rank % pair, pair);
}

// Copies between the piece in device memory and the whole values.
static void tensor_put(const graph_t *g, tensor_t *t) {
  int64_t packed = 1;
  for (int i = g->dims; i-- > 0;) {
    int d = !g->last ? i : i == 0 ? 0 : i == g->dims - 1 ? 1 : i + 1;
    t->stride[d] = packed;
    packed *= t->dim[d];
  }
  t->places = packed;
  float *piece = calloc((size_t)packed, sizeof *piece);
  half_t *half = calloc((size_t)packed, sizeof *half);
  size_t bytes = (size_t)packed * (t->is_half ? sizeof *half : sizeof *piece);
  CHECK(!piece || !half);
  CHECK(cudaMalloc(&t->device, bytes));
  for (int64_t i = 0; i < packed; i++) {
    int64_t at[DIMS], place = 0;
    place_of(g, t->dim, i, at);
    for (int d = 0; d < g->dims; d++) {
      place += at[d] * t->stride[d];
      at[d] += t->first[d];
    }
    piece[place] = t->is_result && !t->is_old
                       ? NAN
                       : (float)t->value[index_of(g, t->whole, at)];
    half[place] = (half_t)piece[place];
  }
  CHECK(cudaMemcpy(t->device, t->is_half ? (void *)half : piece, bytes,
                   cudaMemcpyHostToDevice));
  free(half);
  free(piece);
}

// The largest difference, relative to the largest value.
static double tensor_off(const graph_t *g, const tensor_t *t) {
  float *piece = malloc((size_t)t->places * sizeof *piece);
  const half_t *half = (const void *)piece;
  double most = 0, size = 1;
  CHECK(!piece);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(piece, t->device,
                   (size_t)t->places *
                       (t->is_half ? sizeof *half : sizeof *piece),
                   cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < t->places; i++) {
    int64_t at[DIMS], place = 0;
    place_of(g, t->dim, i, at);
    for (int d = 0; d < g->dims; d++) {
      place += at[d] * t->stride[d];
      at[d] += t->first[d];
    }
    double right = t->value[index_of(g, t->whole, at)];
    double is = t->is_half ? (double)half[place] : (double)piece[place];
    double off = fabs(is - right);
    most = off <= most ? most : off; // also if it is NaN
    size = fabs(right) > size ? fabs(right) : size;
  }
  free(piece);
  return most / size;
}

// ---- descriptors -----------------------------------------------------------

static build_t tensor_of(const graph_t *g, int t) {
  const tensor_t *tensor = &g->tensor[t];
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cudnnDataType_t type = tensor->is_half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  int64_t uid = t + 100, alignment = 16;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, g->dims, tensor->dim);
  BUILD_SET(made, TENSOR_STRIDES, INT64, g->dims, tensor->stride);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &tensor->is_virtual);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

static build_t conv_of(const graph_t *g, const build_t *tensor) {
  build_t how = build_create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), op;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t spatial = g->dims - 2;
  BUILD_SET(how, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(how, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  BUILD_SET(how, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(how, CONVOLUTION_PRE_PADDINGS, INT64, spatial, g->pad + 2);
  BUILD_SET(how, CONVOLUTION_POST_PADDINGS, INT64, spatial, g->post + 2);
  BUILD_SET(how, CONVOLUTION_DILATIONS, INT64, spatial, g->dilation + 2);
  BUILD_SET(how, CONVOLUTION_FILTER_STRIDES, INT64, spatial, g->step + 2);
  CHECK(cudnnBackendFinalize(how));
  build_t x = tensor[g->conv[X]], w = tensor[g->conv[W]],
          y = tensor[g->conv[Y]];
  if (g->kind == Y) {
    op = build_create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    BUILD_CONV_ADD(op, FORWARD, X, W, Y, x, w, y, how, g->beta);
  } else if (g->kind == X) {
    op = build_create(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    BUILD_CONV_ADD(op, BWD_DATA, DX, W, DY, x, w, y, how, g->beta);
  } else {
    op = build_create(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
    BUILD_CONV(op, BWD_FILTER, X, DW, DY, x, w, y, how);
  }
  build_destroy(how);
  return op;
}

static build_t statistics_of(const sum_t *sum, const build_t *tensor) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
  BUILD_SET(op, OPERATION_GENSTATS_MODE, GENSTATS_MODE, 1, &mode);
  BUILD_SET(op, OPERATION_GENSTATS_MATH_PREC, DATA_TYPE, 1, &type);
  BUILD_GIVE(op, OPERATION_GENSTATS_XDESC, tensor[sum->x]);
  BUILD_GIVE(op, OPERATION_GENSTATS_SUMDESC, tensor[sum->y]);
  BUILD_GIVE(op, OPERATION_GENSTATS_SQSUMDESC, tensor[sum->squares]);
  CHECK(cudnnBackendFinalize(op));
  return op;
}

static build_t sum_of(const sum_t *sum, const build_t *tensor) {
  build_t how = build_create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  build_t op = build_create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &sum->op);
  BUILD_SET(how, REDUCTION_COMP_TYPE, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_REDUCTION_DESC, how);
  BUILD_GIVE(op, OPERATION_REDUCTION_XDESC, tensor[sum->x]);
  BUILD_GIVE(op, OPERATION_REDUCTION_YDESC, tensor[sum->y]);
  CHECK(cudnnBackendFinalize(op));
  build_destroy(how);
  return op;
}

static build_t graph_of(cudnnHandle_t handle, const graph_t *g) {
  build_t tensor[TENSORS], op[OPS + 3];
  int count = 0;
  for (int t = 0; t < g->tensors; t++)
    tensor[t] = tensor_of(g, t);
  for (int i = 0; i <= g->ops; i++) {
    if (i == g->before)
      op[count++] = conv_of(g, tensor);
    if (i < g->ops)
      op[count++] = build_pointwise(g->op[i].mode, tensor[g->op[i].x],
                                    g->op[i].b < 0 ? NULL : tensor[g->op[i].b],
                                    tensor[g->op[i].y]);
  }
  for (int i = 0; i < g->sums; i++)
    op[count++] = g->sum[i].squares < 0 ? sum_of(&g->sum[i], tensor)
                                        : statistics_of(&g->sum[i], tensor);
  for (int t = 0; t < g->tensors; t++)
    build_destroy(tensor[t]);
  return build_graph(handle, op, count);
}

// False: it is refused.
static bool execute(cudnnHandle_t handle, const graph_t *g) {
  build_t graph = graph_of(handle, g), config[BUILD_CONFIGS], plan = NULL;
  int64_t configs = build_configs(graph, CUDNN_HEUR_MODE_INSTANT, config);
  int64_t bytes = 0, uid[TENSORS], count = 0;
  void *pointer[TENSORS], *workspace = NULL;
  for (int64_t i = 0; i < configs; i++) {
    if (!plan)
      plan = build_plan(handle, config[i], &bytes);
    build_destroy(config[i]);
  }
  build_destroy(graph);
  if (!plan)
    return false;
  for (int t = 0; t < g->tensors; t++)
    if (!g->tensor[t].is_virtual) {
      uid[count] = t + 100;
      pointer[count++] = g->tensor[t].device;
    }
  CHECK(cudaMalloc(&workspace, (size_t)bytes + 1));
  cudnnStatus_t status =
      build_execute(handle, plan, uid, pointer, count, workspace);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(workspace));
  build_destroy(plan);
  if (status != CUDNN_STATUS_NOT_SUPPORTED)
    CHECK(status);
  return status == CUDNN_STATUS_SUCCESS;
}

static bool graph_run(cudnnHandle_t handle, uint64_t seed) {
  graph_t g = drawn(seed);
  pieces_cut(&g);
  for (int t = 0; t < g.tensors; t++)
    tensor_put(&g, &g.tensor[t]);
  for (int i = 0; i < g.before; i++)
    op_run(&g, &g.op[i]);
  conv_run(&g);
  for (int i = g.before; i < g.ops; i++)
    op_run(&g, &g.op[i]);
  for (int i = 0; i < g.sums; i++)
    (g.sum[i].squares < 0 ? sum_run : statistics_run)(&g, &g.sum[i]);
  bool ran = execute(handle, &g);
  for (int t = 0; t < g.tensors && ran; t++) {
    double off = g.tensor[t].is_result && !g.tensor[t].is_virtual
                     ? tensor_off(&g, &g.tensor[t])
                     : 0;
    if (!(off <= (in_half ? 5e-3 : 2e-5))) {
      fprintf(stderr, "random %c%c %lu 1: wrong: tensor %d off by %.1e\n",
              split, second, (unsigned long)seed, t, off);
      exit(EXIT_FAILURE);
    }
  }
  graph_free(&g);
  return ran;
}

int main(int words, char **word) {
  cudnnHandle_t handle;
  CHECK(words < 4);
  with_statistics = words > 4 && strcmp(word[4], "statistics") == 0;
  split = word[1][0];
  second = word[1][1];
  wraps = words > 4 && strcmp(word[4], "wrap") == 0;
  in_half = words > 4 && strcmp(word[4], "half") == 0;
  uint64_t first = strtoull(word[2], NULL, 10);
  uint64_t count = strtoull(word[3], NULL, 10), ran = 0;
  CHECK(cudnnCreate(&handle));
  for (uint64_t i = 0; i < count; i++)
    ran += graph_run(handle, first + i);
  printf("%lu of %lu graphs are right, the others refused\n",
         (unsigned long)ran, (unsigned long)count);
  CHECK(cudnnDestroy(handle));
  return ran * 4 >= count * 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
