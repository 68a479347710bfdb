// SPDX-License-Identifier: Apache-2.0
// The law of pieces: the bits of an element depend on its own window, never on
// the extents of its tensor or on how the computation is cut.
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/host/cudnn/compute/layer.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 10 };

/* Whether tensor t depends on a sum over a whole tensor. */
static void sums_follow(const made_t *m, bool *out) {
  memset(out, 0, MADE_TENSORS * sizeof *out);
  for (int n = 0; n < m->graph.node_count; n++) {
    const sdg_graph_node_t *node = &m->graph.node[n];
    bool sum =
        node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
        node->kind ==
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    for (int i = 0; i < node->operand_count; i++)
      sum |= out[node->operand[i].tensor];
    for (int i = 0; i < node->operand_count; i++)
      out[node->operand[i].tensor] |=
          sum && sdg_graph_writes(node, node->operand[i].name);
  }
}

static void (*const draws[])(made_t *m) = {
    draw_graph, draw_product, draw_resampling, draw_move, draw_plain};
enum { DRAWS = sizeof draws / sizeof *draws };

START_TEST(the_size_of_parts_changes_no_bit) {
  for (int64_t i = 0, n = random_cases(30); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 9000000;
    case_seed(seed);
    made_t m;
    draws[_i / BLOCKS](&m);
    bool sum[MADE_TENSORS];
    sums_follow(&m, sum);
    double *whole[MADE_TENSORS] = {0};
    made_run(&m);
    for (int t = 0; t < m.graph.tensor_count; t++)
      if (m.written[t] && m.memory_of[t] >= 0 && !sum[t])
        whole[t] = made_values(&m, t, false);
    made_reset(&m);
    m.part = case_range(1, 60);
    made_run(&m);
    for (int t = 0; t < m.graph.tensor_count; t++) {
      if (!whole[t])
        continue;
      double *parts = made_values(&m, t, false);
      for (int64_t k = 0; k < made_count(&m, t); k++)
        REQUIRE_MSG(memcmp(&parts[k], &whole[t][k], sizeof *parts) == 0,
                    "graph %lu in parts of %ld: t%d element %ld is %.9g, "
                    "whole %.9g:\n%s",
                    seed, m.part, t, k, parts[k], whole[t][k], made_text(&m));
      free(parts);
      free(whole[t]);
    }
    made_destroy(&m);
  }
}
END_TEST

/* ---- a piece with its halo ----------------------------------------------- */

/* Rows of dimension 2. */
typedef struct {
  int64_t lo, hi;
} rows_t;

/* scale and relu, the convolution, + z, tanh; z and the result have the rows
 * `out` of the whole, the input those of `in`. */
typedef struct {
  made_conv_t conv;
  cudnnDataType_t type;
  bool plain; /* the convolution alone */
  int64_t in_dim[4], w_dim[4], out_dim[4];
  double *in, *w, *scale, *z; /* of the whole */
} model_t;

static int64_t count_of(const int64_t dim[4]) {
  return dim[0] * dim[1] * dim[2] * dim[3];
}

static double *draw_values(int64_t count) {
  double *values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++)
    values[i] = case_real();
  return values;
}

/* A tensor of rows [rows) of the whole's values. */
static int slice(made_t *m, cudnnDataType_t type, const int64_t dim[4],
                 rows_t rows, const double *values, made_layout_t layout) {
  int64_t own[4] = {dim[0], dim[1], rows.hi - rows.lo, dim[3]}, at = 0;
  double *part = malloc((size_t)(count_of(own) + 1) * sizeof *part);
  for (int64_t i = 0; i < dim[0] * dim[1]; i++)
    for (int64_t r = rows.lo; r < rows.hi; r++)
      for (int64_t c = 0; c < dim[3]; c++)
        part[at++] = values[(i * dim[2] + r) * dim[3] + c];
  int t = made_real(m, type, 4, own, layout);
  made_fill(m, t, part);
  free(part);
  return t;
}

/* Computes rows `out` from rows `in`. */
static double *model_run(const model_t *model, rows_t in, rows_t out,
                         const int64_t pads[2], made_layout_t layout) {
  made_t m;
  made_create(&m);
  made_conv_t conv = model->conv;
  conv.pre[0] = pads[0];
  conv.post[0] = pads[1];
  bool data = conv.kind == layer_kinds[LAYER_DATA];
  const int64_t row[] = {1, model->in_dim[1], 1, 1};
  const int64_t in_dim[] = {model->in_dim[0], model->in_dim[1], in.hi - in.lo,
                            model->in_dim[3]};
  const int64_t out_dim[] = {model->out_dim[0], model->out_dim[1],
                             out.hi - out.lo, model->out_dim[3]};
  int x = slice(&m, model->type, model->in_dim, in, model->in, layout);
  int w = made_real(&m, model->type, 4, model->w_dim, MADE_DENSE);
  made_fill(&m, w, model->w);
  int y = model->plain ? made_real(&m, model->type, 4, out_dim, layout)
                       : made_virtual(&m, CUDNN_DATA_FLOAT, 4, out_dim);
  int result = y;
  if (!model->plain) {
    int scale = made_real(&m, model->type, 4, row, MADE_DENSE);
    made_fill(&m, scale, model->scale);
    int scaled = made_virtual(&m, CUDNN_DATA_FLOAT, 4, in_dim);
    int active = made_virtual(&m, model->type, 4, in_dim);
    made_pointwise(&m, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, x, scale, -1,
                   scaled);
    made_pointwise(&m, CUDNN_POINTWISE_SIGMOID_FWD, CUDNN_DATA_FLOAT, scaled,
                   -1, -1, active);
    x = active;
  }
  if (data)
    made_conv(&m, &conv, y, w, x);
  else
    made_conv(&m, &conv, x, w, y);
  if (!model->plain) {
    int z = slice(&m, model->type, model->out_dim, out, model->z, layout);
    int sum = made_virtual(&m, CUDNN_DATA_FLOAT, 4, out_dim);
    result = made_real(&m, model->type, 4, out_dim, layout);
    made_pointwise(&m, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, y, z, -1, sum);
    made_pointwise(&m, CUDNN_POINTWISE_TANH_FWD, CUDNN_DATA_FLOAT, sum, -1, -1,
                   result);
  }
  made_run(&m);
  double *values = made_values(&m, result, false);
  made_destroy(&m);
  return values;
}

static int64_t floor_of(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

static int64_t clip(int64_t value, int64_t high) {
  return value < 0 ? 0 : value > high ? high : value;
}

/* The input rows and paddings of a piece (src/geometry says the same). Window
 * [o s - p, o s - p + span); example: 3 rows, stride 1, padding 1, rows [4, 6)
 * need [3, 7) and no padding. */
static rows_t piece_of(const model_t *model, rows_t out, int64_t pads[2]) {
  int64_t s = model->conv.stride[0], p = model->conv.pre[0];
  int64_t span = model->conv.dilation[0] * (model->w_dim[2] - 1) + 1;
  int64_t extent = model->in_dim[2];
  if (model->conv.kind == layer_kinds[LAYER_FORWARD]) {
    int64_t lo = out.lo * s - p, hi = (out.hi - 1) * s - p + span;
    rows_t in = {clip(lo, extent), clip(hi, extent)};
    pads[0] = in.lo - lo;
    pads[1] = hi - in.hi;
    return in;
  }
  rows_t in = {clip(-floor_of(-(out.lo + p - span + 1), s), extent),
               clip(floor_of(out.hi - 1 + p, s) + 1, extent)};
  if (in.lo > 0 && in.lo * s - p > out.lo)
    in.lo--;
  pads[0] = out.lo - (in.lo * s - p);
  int64_t behind = (in.hi - 1) * s - p + span - out.hi;
  pads[1] = behind > 0 ? behind : 0;
  return in;
}

static void draw_model(model_t *model, int kind) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16};
  int groups = case_range(0, 2) ? 1 : 2;
  int64_t x[4], w[4], y[4];
  *model = (model_t){.conv = layer_plain(kind, CUDNN_DATA_FLOAT),
                     .type = types[case_range(0, 2)],
                     .plain = case_range(0, 2) == 0};
  made_conv_t *conv = &model->conv;
  conv->alpha = case_range(0, 1) ? 1 : -0.75;
  w[1] = case_range(1, 20);
  w[0] = case_range(1, 20) * groups;
  x[0] = case_range(1, 2);
  x[1] = w[1] * groups;
  for (int d = 0; d < 2; d++) {
    w[2 + d] = case_range(1, 4);
    conv->stride[d] = case_range(0, 1) ? 1 : case_range(1, 3);
    conv->dilation[d] = case_range(0, 2) ? 1 : 2;
    int64_t span = conv->dilation[d] * (w[2 + d] - 1) + 1;
    conv->pre[d] = case_range(0, (int)span - 1);
    conv->post[d] = case_range(0, (int)span - 1);
    x[2 + d] = case_range(8, 24);
  }
  layer_extents(conv, 4, x, w, y);
  bool data = kind == LAYER_DATA;
  memcpy(model->in_dim, data ? y : x, sizeof x);
  memcpy(model->w_dim, w, sizeof w);
  memcpy(model->out_dim, data ? x : y, sizeof x);
  model->in = draw_values(count_of(model->in_dim));
  model->w = draw_values(count_of(w));
  model->scale = draw_values(model->in_dim[1]);
  model->z = draw_values(count_of(model->out_dim));
}

START_TEST(a_piece_with_its_halo_has_the_bits_of_the_whole) {
  for (int64_t i = 0, n = random_cases(40); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 7000000;
    case_seed(seed);
    model_t model;
    draw_model(&model, i % 2 ? LAYER_DATA : LAYER_FORWARD);
    int64_t rows = model.out_dim[2],
            pads[2] = {model.conv.pre[0], model.conv.post[0]};
    made_layout_t layout = case_range(0, 1) ? MADE_DENSE : MADE_CHANNELS;
    double *whole = model_run(&model, (rows_t){0, model.in_dim[2]},
                              (rows_t){0, rows}, pads, layout);
    rows_t out = {case_range(0, (int)rows - 1), 0};
    out.hi = case_range((int)out.lo + 1, (int)rows);
    rows_t in = piece_of(&model, out, pads);
    if (in.hi > in.lo) {
      double *piece = model_run(&model, in, out, pads, layout);
      int64_t own = out.hi - out.lo, wide = model.out_dim[3];
      for (int64_t k = 0; k < own * wide * model.out_dim[0] * model.out_dim[1];
           k++) {
        int64_t at =
            (k / wide / own * rows + out.lo + k / wide % own) * wide + k % wide;
        REQUIRE_MSG(memcmp(&piece[k], &whole[at], sizeof *piece) == 0,
                    "model %lu: element %ld of rows %ld..%ld is %.9g, in the "
                    "whole %.9g",
                    seed, k, out.lo, out.hi, piece[k], whole[at]);
      }
      free(piece);
    }
    free(whole);
    free(model.in);
    free(model.w);
    free(model.scale);
    free(model.z);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_pieces");
  TCase *tests = tcase_create("pieces");
  tcase_add_loop_test(tests, the_size_of_parts_changes_no_bit, 0,
                      BLOCKS * DRAWS);
  tcase_add_loop_test(tests, a_piece_with_its_halo_has_the_bits_of_the_whole, 0,
                      BLOCKS);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
