// SPDX-License-Identifier: Apache-2.0
// The rules of the planner: for each one a graph within it, which is taken, and
// a graph beyond it, which is refused for that reason. tests/host/planner asks
// NVIDIA's planner the same.
#include "src/host/cudnn/plan/plan.h"
#include "tests/host/cudnn/compute/made.h"
#include "tests/host/cudnn/plan/judge.h"
#include "tests/unit/harness.h"

typedef enum { FORWARD, DATA, FILTER, NONE, POOL, UNPOOL } kind_t;
typedef enum { NO_PARTNER, FULL, CHANNELS, ONE, ROWS } partner_t;
typedef enum { NO_SUM, OF_ALL, OF_CHANNELS, OF_ROWS } sum_t;
typedef enum { NO_PROLOGUE, OF_X, OF_X_WRITTEN, OF_W } prologue_t;

// What differs from a forward convolution of halves in NHWC, 8 to 8 channels,
// 3 x 3, and a RELU behind it. 0 stands for that.
typedef struct {
  kind_t kind;
  cudnnDataType_t io, w, y, math, plain_math, sum_type; // 0: half, or float
  int spatial, channels, groups, step, dilation;
  bool first, gaps, flip, scaled, alone, statistics, reads_sum, two;
  double beta;
  cudnnPointwiseMode_t unary; // 0: ReLU
  partner_t partner;
  sum_t sum;
  prologue_t prologue;
  bool indices; // of an UNPOOL, which is of maxima then
} graph_t;

static cudnnDataType_t type_or(cudnnDataType_t type, cudnnDataType_t other) {
  return type ? type : other;
}

static int tensor(made_t *m, const graph_t *g, cudnnDataType_t type, int rank,
                  const int64_t *dim, bool is_virtual) {
  int index = made_virtual(m, type, rank, dim);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  int64_t at = 1;
  for (int i = rank; i-- > 0;) {
    int d = g->first ? i : i == rank - 1 ? 1 : i == 0 ? 0 : i + 1;
    t->stride[d] = at;
    at *= dim[d] + (g->gaps && !is_virtual && d == 1);
  }
  t->is_virtual = is_virtual;
  t->alignment = 16;
  return index;
}

static int pointwise(made_t *m, const graph_t *g, int x, int b,
                     bool is_virtual) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  cudnnDataType_t type = type_or(g->io, CUDNN_DATA_HALF);
  int y = tensor(m, g, type, like.rank, like.dim, is_virtual);
  sdg_graph_node_t *node = made_pointwise(m,
                                          b >= 0     ? CUDNN_POINTWISE_MUL
                                          : g->unary ? g->unary
                                                     : CUDNN_POINTWISE_RELU_FWD,
                                          g->plain_math, x, b, -1, y);
  if (g->scaled)
    made_set_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 0.5);
  return y;
}

static int convolution(made_t *m, const graph_t *g) {
  static const cudnnBackendDescriptorType_t kinds[] = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
  int spatial = g->spatial ? g->spatial : 2, rank = spatial + 2;
  int groups = g->groups ? g->groups : 1, c = g->channels ? g->channels : 8;
  made_conv_t conv = {
      .kind = kinds[g->kind], .alpha = 1, .beta = g->beta, .flip = g->flip};
  int64_t dim[3][MADE_RANK] = {
      {2, c * groups}, {c * groups, c}, {2, c * groups}};
  conv.compute = g->math;
  for (int d = 0; d < spatial; d++) {
    conv.pre[d] = conv.post[d] = 1;
    conv.stride[d] = g->step ? g->step : 1;
    conv.dilation[d] = g->dilation ? g->dilation : 1;
    dim[0][2 + d] = 9;
    dim[1][2 + d] = 3;
    dim[2][2 + d] = (9 + 2 - 2 * conv.dilation[d] - 1) / conv.stride[d] + 1;
  }
  int out = g->kind == FORWARD ? 2 : g->kind == DATA ? 0 : 1, at[3];
  cudnnDataType_t io = type_or(g->io, CUDNN_DATA_HALF);
  for (int i = 0; i < 3; i++)
    at[i] = tensor(m, g,
                   i == 1   ? type_or(g->w, io)
                   : i == 2 ? type_or(g->y, io)
                            : io,
                   rank, dim[i], i == out && !g->alone);
  int read = g->prologue == OF_W ? 1 : 0;
  if (g->prologue)
    at[read] = pointwise(m, g, at[read], -1, g->prologue != OF_X_WRITTEN);
  made_conv(m, &conv, at[0], at[1], at[2]);
  return at[out];
}

// A pooling of 2 x 2, or its gradient.
static int pooling(made_t *m, const graph_t *g) {
  int c = g->channels ? g->channels : 8;
  int64_t x[MADE_RANK] = {2, c, 8, 8}, y[MADE_RANK] = {2, c, 4, 4};
  bool backward = g->kind == UNPOOL;
  cudnnDataType_t io = type_or(g->io, CUDNN_DATA_HALF);
  int in = tensor(m, g, io, 4, backward ? y : x, false);
  if (g->prologue)
    in = pointwise(m, g, in, -1, true);
  int out = tensor(m, g, io, 4, backward ? x : y, !g->alone);
  made_resample_t how = {.backward = backward,
                         .mode = g->indices
                                     ? CUDNN_RESAMPLE_MAXPOOL
                                     : CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING,
                         .window = {2, 2},
                         .stride = {2, 2}};
  int index = g->indices ? tensor(m, g, CUDNN_DATA_INT8, 4, y, false) : -1;
  made_resample(m, &how, backward ? out : in, backward ? in : out, index, -1);
  return out;
}

static int partner(made_t *m, const graph_t *g, int x) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int64_t dim[MADE_RANK];
  for (int d = 0; d < like.rank; d++)
    dim[d] = g->partner == FULL || (g->partner == CHANNELS && d == 1) ||
                     (g->partner == ROWS && d == 2)
                 ? like.dim[d]
                 : 1;
  return tensor(m, g, type_or(g->io, CUDNN_DATA_HALF), like.rank, dim, false);
}

static int sum(made_t *m, const graph_t *g, int x) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int64_t dim[MADE_RANK];
  for (int d = 0; d < like.rank; d++)
    dim[d] = (g->sum == OF_ROWS && d == 2) ||
                     ((g->sum == OF_CHANNELS || g->statistics) && d == 1)
                 ? like.dim[d]
                 : 1;
  int y = tensor(m, g, g->sum_type, like.rank, dim, false);
  if (g->statistics) {
    int squares = tensor(m, g, g->sum_type, like.rank, dim, false);
    made_statistics(m, CUDNN_DATA_FLOAT, x, y, squares);
  } else {
    made_reduction(m, CUDNN_REDUCE_TENSOR_ADD, g->plain_math, x, y);
  }
  return y;
}

static const char *verdict(const graph_t *g) {
  made_t m;
  made_create(&m);
  int at;
  if (g->kind == NONE) {
    int rank = (g->spatial ? g->spatial : 2) + 2;
    int64_t dim[MADE_RANK] = {2, g->channels ? g->channels : 8, 9, 9, 9};
    at = tensor(&m, g, type_or(g->io, CUDNN_DATA_HALF), rank, dim, false);
  } else if (g->kind == POOL || g->kind == UNPOOL) {
    at = pooling(&m, g);
  } else {
    at = convolution(&m, g);
  }
  if (g->two)
    (void)convolution(&m, g);
  bool last = !g->sum && !g->statistics;
  if (!g->alone)
    at = pointwise(&m, g, at, g->partner ? partner(&m, g, at) : -1, !last);
  if (!last)
    at = sum(&m, g, at);
  if (g->reads_sum)
    (void)pointwise(&m, g, at, -1, false);
  const char *text = host_plan_refuses(&m.graph);
  made_destroy(&m);
  return text;
}

// ---- the table -------------------------------------------------------------

typedef struct {
  const char *rule; // how its text begins
  graph_t within, beyond;
} row_t;

#define I8   .io = CUDNN_DATA_INT8
#define BF16 .io = CUDNN_DATA_BFLOAT16

// clang-format off
static const row_t rows[] = {
    {"at most one convolution", {0}, {.two = true}},
    {"no operation that reads", {.sum = OF_ALL}, {.sum = OF_ALL, .reads_sum = true}},
    {"statistics of a convolution's", {.statistics = true}, {.kind = NONE, .statistics = true}},
    {"pointwise operations and reductions in float", {.partner = FULL}, {.plain_math = CUDNN_DATA_HALF}},
    {"pointwise operations and reductions in float",
     {I8, .math = CUDNN_DATA_INT32, .plain_math = CUDNN_DATA_INT32, .unary = CUDNN_POINTWISE_ABS},
     {I8, .math = CUDNN_DATA_INT32, .plain_math = CUDNN_DATA_INT32}},
    {"pointwise operations whose alpha1", {.partner = FULL}, {.scaled = true}},
    {"results of reductions", {.sum = OF_ALL}, {.sum = OF_ALL, .sum_type = CUDNN_DATA_HALF}},
    {"reductions that keep", {.sum = OF_CHANNELS}, {.sum = OF_ROWS}},
    {"reductions that keep", {.kind = FILTER, .sum = OF_ALL}, {.kind = FILTER, .sum = OF_CHANNELS}},
    {"pointwise operations on 2 to 5", {.kind = NONE, .channels = 2}, {.kind = NONE, .channels = 1}},
    {"operands of the result's", {.kind = NONE, .partner = CHANNELS}, {.kind = NONE, .partner = ROWS}},
    {"pointwise operations and reductions on packed", {.kind = NONE}, {.kind = NONE, .first = true}},
    {"pointwise operations and reductions on packed", {.kind = NONE, .spatial = 1, .first = true}, {.kind = NONE, .spatial = 1}},
    {"pointwise operations and reductions on packed", {.kind = NONE}, {.kind = NONE, .gaps = true}},
    {"pointwise operations and reductions on packed", {.kind = NONE, .spatial = 1, .channels = 1, .sum = OF_ALL}, {.kind = NONE, .spatial = 1, .sum = OF_ALL}},
    {"fused convolutions of two", {.w = CUDNN_DATA_BFLOAT16}, {.w = CUDNN_DATA_INT8}},
    {"fused convolutions computed", {I8, .math = CUDNN_DATA_INT32}, {.math = CUDNN_DATA_DOUBLE}},
    {"fused convolutions computed", {.kind = DATA, .math = CUDNN_DATA_HALF}, {.kind = FILTER, .math = CUDNN_DATA_HALF}},
    {"fused convolutions that correlate", {.alone = true, .flip = true}, {.flip = true}},
    {"fused convolutions that correlate", {.alone = true, .beta = 1}, {.beta = 1}},
    {"fused convolutions of 2 or 3", {.spatial = 3}, {.spatial = 1}},
    {"fused convolutions in NHWC", {.alone = true, .first = true}, {.first = true}},
    {"fused convolutions in NHWC", {.first = true, .sum = OF_ALL}, {.kind = DATA, .first = true}},
    {"fused filter gradients of packed", {.gaps = true}, {.kind = FILTER, .gaps = true}},
    {"fused filter gradients of one", {.kind = DATA, .groups = 2}, {.kind = FILTER, .groups = 2}},
    {"behind gradients", {.partner = ROWS}, {.kind = DATA, .partner = ROWS}},
    {"fused filter gradients of channels", {.kind = FILTER}, {.kind = FILTER, .channels = 3}},
    {"fused filter gradients of channels", {.kind = FILTER, .channels = 4}, {.kind = FILTER, .channels = 4, .spatial = 3}},
    {"fused data gradients", {.kind = DATA, .channels = 3}, {BF16, .kind = DATA, .channels = 3}},
    {"fused data gradients", {.kind = DATA, .spatial = 3}, {.kind = DATA, .spatial = 3, .channels = 4}},
    {"fused data gradients", {.kind = DATA, .channels = 2, .sum = OF_ALL}, {.kind = DATA, .channels = 1, .sum = OF_ALL}},
    {"fused data gradients", {.kind = DATA, .groups = 2}, {.kind = DATA, .groups = 2, .sum = OF_ALL}},
    {"fused data gradients", {.kind = DATA, .gaps = true}, {BF16, .kind = DATA, .gaps = true}},
    {"even numbers of channels", {.prologue = OF_X}, {.prologue = OF_X, .channels = 3}},
    {"even numbers of channels", {BF16, .channels = 3}, {BF16, .channels = 3, .groups = 2}},
    {"even numbers of channels", {.channels = 1}, {I8, .channels = 1}},
    {"fused data gradients", {.kind = DATA, .step = 2}, {.kind = DATA, .step = 2, .spatial = 3}},
    {"fused data gradients", {.kind = DATA, .step = 2, .dilation = 2}, {BF16, .kind = DATA, .step = 2, .dilation = 2}},
    {"operations in front of a forward", {.prologue = OF_X}, {.prologue = OF_W}},
    {"operations in front of a forward", {.prologue = OF_X}, {.kind = FILTER, .prologue = OF_X}},
    {"no result in memory in front", {.prologue = OF_X}, {.prologue = OF_X_WRITTEN}},
    {"reductions behind convolutions", {.groups = 2, .statistics = true}, {.groups = 2, .sum = OF_ALL}},
    {"poolings beside operations in", {.kind = POOL}, {.kind = POOL, .first = true}},
    {"poolings beside operations in", {.kind = POOL, .alone = true, .first = true}, {.kind = UNPOOL, .first = true}},
    {"poolings beside operations of", {.kind = POOL, .channels = 3}, {.kind = POOL, .channels = 1}},
    {"no operations in front of a pooling's", {.kind = POOL, .prologue = OF_X}, {.kind = UNPOOL, .prologue = OF_X}},
    {"gradients of poolings", {.kind = UNPOOL, .indices = true, .alone = true}, {.kind = UNPOOL, .indices = true, .alone = true, .first = true}},
    {"statistics of gradients", {.kind = DATA, .statistics = true}, {BF16, .kind = DATA, .statistics = true}},
};
// clang-format on
enum { ROWS_COUNT = sizeof rows / sizeof *rows };

static const char *judge(int row, bool beyond, const char **out_rule) {
  *out_rule = rows[row].rule;
  return verdict(beyond ? &rows[row].beyond : &rows[row].within);
}

int main(void) {
  return harness_run(judge_suite("cudnn plan rules", judge, ROWS_COUNT));
}
