// SPDX-License-Identifier: Apache-2.0
// The planner's rules for normalisations: for each one a graph within it, which
// is taken, and a graph beyond it, which is refused for that reason. NVIDIA's
// planner said the same of all of them.
#include "src/host/cudnn/plan/plan.h"
#include "tests/host/cudnn/compute/norm/made_norm.h"
#include "tests/host/cudnn/plan/judge.h"
#include "tests/unit/harness.h"

typedef enum {
  NO_FRONT,
  SUM,
  RELU,
  MASK,
  GAMMA
} front_t; // of x or dy, or the scale
typedef enum {
  NO_BACK,
  TO_RELU,
  TO_SUM,
  TO_SUM_RELU,
  TO_MASK,
  TO_BYTES
} back_t;

// 0 stands for a forward normalisation in training of halves in NHWC, with
// statistics, scale and bias of floats; of 32 channels.
typedef struct {
  cudnnBackendNormMode_t mode;
  bool backward, inference;
  front_t front;
  back_t back;
  cudnnDataType_t io, y, few; // types; few: of statistics and parameters
  int channels, rank;
  bool floats, first, gaps, turned, untold, unscaled, written, two, half_scale;
  cudnnDataType_t math;
} graph_t;

static cudnnDataType_t type_of(const graph_t *g) {
  return g->floats ? CUDNN_DATA_FLOAT : g->io ? g->io : CUDNN_DATA_HALF;
}

static int tensor(made_t *m, const graph_t *g, cudnnDataType_t type, int rank,
                  const int64_t *dim) {
  int index = made_virtual(m, type, rank, dim);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  int64_t at = 1;
  for (int i = rank; i-- > 0;) {
    int d = g->first ? i : i == rank - 1 ? 1 : i == 0 ? 0 : i + 1;
    t->stride[d] = at;
    at *= dim[d] + (g->gaps && d == 1 && dim[d] > 1);
  }
  t->is_virtual = false;
  return index;
}

// A virtual result of an operation, or one in memory.
static int pointwise(made_t *m, const graph_t *g, cudnnPointwiseMode_t mode,
                     cudnnDataType_t type, int x, int b, bool is_virtual) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int y = tensor(m, g, type, like.rank, like.dim);
  m->graph.tensor[y].is_virtual = is_virtual;
  made_pointwise(m, mode, g->math, x, b, -1, y);
  return y;
}

static int input(made_t *m, const graph_t *g, int rank, const int64_t *dim) {
  cudnnDataType_t type = type_of(g);
  int x = tensor(m, g, type, rank, dim);
  if (g->front == SUM)
    return pointwise(m, g, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, x,
                     tensor(m, g, type, rank, dim), true);
  if (g->front == RELU)
    return pointwise(m, g, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, x, -1,
                     true);
  if (g->front == MASK)
    return pointwise(m, g, CUDNN_POINTWISE_MUL, type, x,
                     tensor(m, g, CUDNN_DATA_BOOLEAN, rank, dim), true);
  return x;
}

static void behind(made_t *m, const graph_t *g, int y) {
  const sdg_graph_tensor_t like = m->graph.tensor[y];
  cudnnDataType_t type = type_of(g);
  int one = made_number(m, CUDNN_DATA_FLOAT, like.rank, 0);
  if (g->back == TO_BYTES)
    pointwise(m, g, CUDNN_POINTWISE_MUL, CUDNN_DATA_FP8_E4M3, y, one, false);
  if (g->back == TO_SUM || g->back == TO_SUM_RELU)
    y = pointwise(
        m, g, CUDNN_POINTWISE_ADD, g->back == TO_SUM ? type : CUDNN_DATA_FLOAT,
        y, tensor(m, g, type, like.rank, like.dim), g->back == TO_SUM_RELU);
  if (g->back == TO_RELU || g->back == TO_SUM_RELU || g->back == TO_MASK)
    y = pointwise(m, g, CUDNN_POINTWISE_RELU_FWD, type, y, -1, false);
  if (g->back == TO_MASK)
    pointwise(m, g, CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_BOOLEAN, y, one, false);
}

static void norm_add(made_t *m, const graph_t *g) {
  int rank = g->rank ? g->rank : 4;
  int64_t x[] = {4, g->channels ? g->channels : 32, 8, 8, 8}, scale[MADE_RANK],
          statistics[MADE_RANK];
  cudnnDataType_t type = type_of(g);
  made_norm_t norm = made_norm_empty(g->mode, g->backward);
  int *t = norm.tensor;
  norm.inference = g->inference;
  made_norm_extents(g->mode, rank, x, scale, statistics);
  if (g->mode == CUDNN_ADA_LAYER_NORM && rank == 4) {
    scale[2] = scale[3] = 1;
    statistics[2] = statistics[3] = 8;
  }
  if (g->backward) {
    t[NORM_X] = tensor(m, g, type, rank, x);
    t[NORM_DY] = input(m, g, rank, x);
    if (!g->unscaled)
      t[NORM_DSCALE] =
          tensor(m, g, g->half_scale ? CUDNN_DATA_HALF : g->few, rank, scale);
    t[NORM_DBIAS] = tensor(m, g, g->few, rank, scale);
  } else {
    t[NORM_X] = input(m, g, rank, x);
    t[NORM_EPSILON] = made_number(m, CUDNN_DATA_FLOAT, rank, 0.1);
    if (!g->unscaled)
      t[NORM_BIAS] = tensor(m, g, g->few, rank, scale);
  }
  if (!g->unscaled)
    t[NORM_SCALE] = tensor(m, g, g->few, rank, scale);
  if (g->front == GAMMA)
    t[NORM_SCALE] =
        pointwise(m, g, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, t[NORM_SCALE],
                  made_number(m, CUDNN_DATA_FLOAT, rank, 1), true);
  if (!g->untold &&
      (g->backward || !g->inference || g->mode == CUDNN_BATCH_NORM)) {
    if (g->mode != CUDNN_RMS_NORM)
      t[NORM_MEAN] = tensor(m, g, g->few, rank, statistics);
    t[NORM_INVERSE] = tensor(m, g, g->few, rank, statistics);
  }
  int y = tensor(m, g,
                 g->back ? CUDNN_DATA_FLOAT
                 : g->y  ? g->y
                         : type,
                 rank, x);
  m->graph.tensor[y].is_virtual = g->back && !g->written;
  if (g->turned) { // rows and columns exchanged
    m->graph.tensor[y].stride[3] = 8 * x[1];
    m->graph.tensor[y].stride[2] = x[1];
  }
  t[g->backward ? NORM_DX : NORM_Y] = y;
  made_norm(m, &norm);
  behind(m, g, y);
}

static const char *verdict(const graph_t *g) {
  made_t m;
  made_create(&m);
  norm_add(&m, g);
  if (g->two)
    norm_add(&m, g);
  const char *text = host_plan_refuses(&m.graph);
  made_destroy(&m);
  return text;
}

#define LAYER    .mode = CUDNN_LAYER_NORM
#define INSTANCE .mode = CUDNN_INSTANCE_NORM
#define BATCH    .mode = CUDNN_BATCH_NORM
#define RMS      .mode = CUDNN_RMS_NORM
#define ADAPTIVE .mode = CUDNN_ADA_LAYER_NORM
#define F32      .floats = true
#define BF16     .io = CUDNN_DATA_BFLOAT16
#define I8       .io = CUDNN_DATA_INT8
#define F64      .io = CUDNN_DATA_DOUBLE

// clang-format off
static const struct {
  const char *rule; // how the sentence begins
  graph_t within, beyond;
} rows[] = {
    {"layer, RMS, adaptive", {LAYER}, {.mode = CUDNN_GROUP_NORM}},
    {"one normalisation", {LAYER}, {LAYER, .two = true}},
    {"statistics as results", {INSTANCE, .inference = true, .untold = true}, {INSTANCE, .untold = true}},
    {"gradients of a bias", {RMS, .backward = true}, {LAYER, .backward = true, .unscaled = true}},
    {"statistics, scales and biases", {BATCH, .few = CUDNN_DATA_HALF}, {BATCH, .few = CUDNN_DATA_DOUBLE}},
    {"normalisations whose tensors", {BATCH, .gaps = true}, {BATCH, .turned = true}},
    {"layer normalisations over", {LAYER}, {LAYER, .gaps = true}},
    {"operations around", {BATCH, .back = TO_RELU}, {BATCH, .back = TO_RELU, .math = CUDNN_DATA_HALF}},
    {"layer normalisations of f32", {RMS, BF16}, {RMS, I8}},
    {"layer normalisations of f32", {LAYER, .y = CUDNN_DATA_BFLOAT16}, {LAYER, .y = CUDNN_DATA_FP8_E4M3}},
    {"gradients of layer", {LAYER, .backward = true}, {LAYER, .backward = true, .y = CUDNN_DATA_BFLOAT16}},
    {"gradients of layer", {BATCH, .backward = true, .half_scale = true}, {LAYER, .backward = true, .half_scale = true}},
    {"layer normalisations over", {LAYER, .rank = 3, .first = true}, {LAYER, .rank = 3}},
    {"adaptive layer", {ADAPTIVE}, {ADAPTIVE, .channels = 1}},
    {"in front of layer", {LAYER, F32, .front = SUM}, {LAYER, .front = SUM}},
    {"in front of layer", {LAYER, .backward = true, .front = SUM}, {LAYER, .backward = true, .front = RELU}},
    {"in front of layer", {RMS, F32, .backward = true, .front = MASK}, {RMS, F32, .backward = true, .front = RELU}},
    {"scales in memory", {LAYER, .front = GAMMA}, {ADAPTIVE, .front = GAMMA}},
    {"one operation that reads", {LAYER, F32, .back = TO_MASK}, {LAYER, F32, .back = TO_RELU, .written = true}},
    {"behind layer", {LAYER, .back = TO_BYTES}, {LAYER, .back = TO_RELU}},
    {"behind layer", {RMS, F32, .back = TO_SUM_RELU}, {RMS, .back = TO_SUM}},
    {"batch and instance", {INSTANCE, I8}, {INSTANCE, F64}},
    {"batch and instance", {BATCH, BF16}, {BATCH, .y = CUDNN_DATA_BFLOAT16}},
    {"batch normalisations in training", {BATCH}, {BATCH, .inference = true}},
    {"batch normalisations in 2", {BATCH, F32, .channels = 12}, {BATCH, .channels = 12}},
    {"batch normalisations in 2", {INSTANCE, .rank = 3}, {BATCH, .rank = 3}},
    {"nothing in front", {BATCH, .backward = true, .front = MASK}, {BATCH, .backward = true, .front = SUM}},
    {"nothing in front", {LAYER, .front = GAMMA}, {INSTANCE, .front = GAMMA}},
    {"behind batch", {BATCH, .back = TO_SUM_RELU}, {BATCH, .back = TO_SUM}},
    {"behind batch", {INSTANCE, .inference = true, .back = TO_MASK}, {INSTANCE, .back = TO_BYTES}},
};
// clang-format on
enum { ROWS_COUNT = sizeof rows / sizeof *rows };

static const char *judge(int row, bool beyond, const char **out_rule) {
  *out_rule = rows[row].rule;
  return verdict(beyond ? &rows[row].beyond : &rows[row].within);
}

// Of a convolution's data gradient that no RELU goes back through, or of no
// convolution.
START_TEST(gradients_of_parameters_follow_a_data_gradient) {
  static const graph_t g;
  static const int64_t dim[] = {4, 32, 8, 8}, few[] = {1, 32, 1, 1};
  int of[MADE_WEIGHTS];
  made_t m;
  made_create(&m);
  for (int i = 0; i < MADE_WEIGHTS; i++)
    of[i] = tensor(&m, &g, i < 2 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT, 4,
                   i < 2 ? dim : few);
  made_weights(&m, of);
  ck_assert_ptr_nonnull(host_plan_refuses(&m.graph));
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = judge_suite("cudnn plan norm rules", judge, ROWS_COUNT);
  TCase *others = tcase_create("gradients");
  tcase_add_test(others, gradients_of_parameters_follow_a_data_gradient);
  suite_add_tcase(suite, others);
  return harness_run(suite);
}
