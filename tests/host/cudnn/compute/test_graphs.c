// SPDX-License-Identifier: Apache-2.0
// Graphs with a convolution as programs make them, each for one trait, against
// loops over doubles.
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/layer.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

static const int64_t bias_dim[] = {1, 5, 1, 1};

/* PyTorch's: conv, + z, + bias, relu; between them, tensors of `type`. */
START_TEST(a_fused_layer_is_rounded_where_its_tensors_say) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16};
  case_seed((uint64_t)_i);
  cudnnDataType_t type = types[_i % 3], io = types[_i / 3];
  made_conv_t conv = layer_plain(LAYER_FORWARD, CUDNN_DATA_FLOAT);
  made_t m;
  made_create(&m);
  int x = made_real(&m, io, 4, layer_x, MADE_CHANNELS);
  int w = made_real(&m, io, 4, layer_w, MADE_CHANNELS);
  int z = made_real(&m, io, 4, layer_y, MADE_CHANNELS);
  int bias = made_real(&m, io, 4, bias_dim, MADE_DENSE);
  int y = made_virtual(&m, type, 4, layer_y);
  int added = made_virtual(&m, type, 4, layer_y);
  int biased = made_virtual(&m, type, 4, layer_y);
  int out = made_real(&m, io, 4, layer_y, MADE_CHANNELS);
  made_conv(&m, &conv, x, w, y);
  sdg_graph_node_t *add = made_pointwise(&m, CUDNN_POINTWISE_ADD,
                                         CUDNN_DATA_FLOAT, y, z, -1, added);
  made_set_real(add, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1);
  made_set_real(add, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 0.5);
  made_pointwise(&m, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, added, bias, -1,
                 biased);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, biased, -1, -1,
                 out);
  reference_run(&m, "fused");
  made_destroy(&m);
}
END_TEST

/* relu(scale x + bias) in front of each of the three convolutions. Padding
 * stands for the result's zeros, although bias makes of x's zeros other
 * numbers. */
START_TEST(padding_is_that_of_the_prologue) {
  case_seed((uint64_t)_i + 50);
  const int64_t row[] = {1, 4, 1, 1};
  made_conv_t conv = layer_plain(_i, CUDNN_DATA_FLOAT);
  conv.pre[0] = 2;
  conv.post[1] = 3;
  int64_t y_dims[4];
  layer_extents(&conv, 4, layer_x, layer_w, y_dims);
  made_t m;
  made_create(&m);
  bool data = _i == 2;
  const int64_t row_y[] = {1, 5, 1, 1};
  const int64_t *dim = data ? y_dims : layer_x;
  int raw = made_real(&m, CUDNN_DATA_HALF, 4, dim, MADE_CHANNELS);
  int scale = made_real(&m, CUDNN_DATA_HALF, 4, data ? row_y : row, MADE_DENSE);
  int bias = made_real(&m, CUDNN_DATA_HALF, 4, data ? row_y : row, MADE_DENSE);
  int scaled = made_virtual(&m, CUDNN_DATA_FLOAT, 4, dim);
  int biased = made_virtual(&m, CUDNN_DATA_FLOAT, 4, dim);
  int active = made_virtual(&m, CUDNN_DATA_HALF, 4, dim);
  int w = made_real(&m, _i == 1 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF, 4,
                    layer_w, MADE_CHANNELS);
  int other =
      made_real(&m, CUDNN_DATA_HALF, 4, data ? layer_x : y_dims, MADE_CHANNELS);
  made_pointwise(&m, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, raw, scale, -1,
                 scaled);
  made_pointwise(&m, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, scaled, bias, -1,
                 biased);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, biased, -1, -1,
                 active);
  if (data)
    made_conv(&m, &conv, other, w, active);
  else
    made_conv(&m, &conv, active, w, other);
  reference_run(&m, "prologue");
  made_destroy(&m);
}
END_TEST

/* conv(x) + x and conv(f(x)) + f(x): the window and another node read a
 * tensor. Both y and relu(y) are results. */
START_TEST(the_input_of_the_window_is_read_again) {
  case_seed((uint64_t)_i);
  const int64_t w_same[] = {4, 4, 3, 3};
  made_conv_t conv = layer_plain(LAYER_FORWARD, CUDNN_DATA_FLOAT);
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 4, layer_x, MADE_DENSE), in = x;
  int w = made_real(&m, CUDNN_DATA_FLOAT, 4, w_same, MADE_DENSE);
  if (_i) {
    in = made_virtual(&m, CUDNN_DATA_HALF, 4, layer_x);
    made_pointwise(&m, CUDNN_POINTWISE_SIN, CUDNN_DATA_FLOAT, x, -1, -1, in);
  }
  int y = made_virtual(&m, CUDNN_DATA_FLOAT, 4, layer_x);
  int sum = made_real(&m, CUDNN_DATA_FLOAT, 4, layer_x, MADE_CHANNELS);
  int active = made_real(&m, CUDNN_DATA_HALF, 4, layer_x, MADE_GAPS);
  made_conv(&m, &conv, in, w, y);
  made_pointwise(&m, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, y, in, -1, sum);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, sum, -1, -1,
                 active);
  reference_run(&m, "residual");
  made_destroy(&m);
}
END_TEST

/* The result lies where an input lies: z of the sum, or the window's own x. */
START_TEST(results_may_overwrite_inputs) {
  case_seed((uint64_t)_i);
  const int64_t w_same[] = {4, 4, 3, 3};
  made_conv_t conv = layer_plain(LAYER_FORWARD, CUDNN_DATA_FLOAT);
  made_t m;
  made_create(&m);
  m.part = _i / 2 ? 50 : 0; /* a row of one image */
  int x = made_real(&m, CUDNN_DATA_FLOAT, 4, layer_x, MADE_DENSE);
  int w = made_real(&m, CUDNN_DATA_FLOAT, 4, w_same, MADE_DENSE);
  int z = made_real(&m, CUDNN_DATA_FLOAT, 4, layer_x, MADE_DENSE);
  int out = made_alias(&m, _i % 2 ? x : z);
  int y = made_virtual(&m, CUDNN_DATA_FLOAT, 4, layer_x);
  made_conv(&m, &conv, x, w, y);
  made_pointwise(&m, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, y, z, -1, out);
  reference_run(&m, "in place");
  made_destroy(&m);
}
END_TEST

/* A batch norm's first half: statistics of the convolution that is stored. */
START_TEST(sums_end_a_graph) {
  case_seed(5);
  made_conv_t conv = layer_plain(LAYER_FORWARD, CUDNN_DATA_FLOAT);
  const int64_t one[] = {1, 1, 1, 1};
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_HALF, 4, layer_x, MADE_CHANNELS);
  int w = made_real(&m, CUDNN_DATA_HALF, 4, layer_w, MADE_CHANNELS);
  int y = made_real(&m, CUDNN_DATA_HALF, 4, layer_y, MADE_CHANNELS);
  int sum = made_real(&m, CUDNN_DATA_FLOAT, 4, bias_dim, MADE_DENSE);
  int squares = made_real(&m, CUDNN_DATA_FLOAT, 4, bias_dim, MADE_DENSE);
  int amax = made_real(&m, CUDNN_DATA_FLOAT, 4, one, MADE_DENSE);
  made_conv(&m, &conv, x, w, y);
  made_statistics(&m, CUDNN_DATA_FLOAT, y, sum, squares);
  made_reduction(&m, CUDNN_REDUCE_TENSOR_AMAX, CUDNN_DATA_FLOAT, y, amax);
  reference_run(&m, "statistics");
  made_destroy(&m);
}
END_TEST

/* A softmax by hand: two reductions whose results are used. */
START_TEST(sums_are_used) {
  case_seed(6);
  const int64_t dim[] = {2, 3, 5, 7}, row[] = {2, 3, 5, 1};
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_GAPS);
  int most = made_virtual(&m, CUDNN_DATA_FLOAT, 4, row);
  int less = made_virtual(&m, CUDNN_DATA_FLOAT, 4, dim);
  int power = made_virtual(&m, CUDNN_DATA_FLOAT, 4, dim);
  int sum = made_real(&m, CUDNN_DATA_FLOAT, 4, row, MADE_DENSE);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  made_reduction(&m, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, x, most);
  made_pointwise(&m, CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, x, most, -1, less);
  made_pointwise(&m, CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, less, -1, -1,
                 power);
  made_reduction(&m, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, power, sum);
  made_pointwise(&m, CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, power, sum, -1, y);
  reference_run(&m, "softmax");
  made_destroy(&m);
}
END_TEST

static long peak_bytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/* 2^26 values in float are 256 MiB, in double 512. */
START_TEST(virtual_tensors_take_no_memory) {
  enum { SIDE = 1024, IN = 2, OUT = 64 };
  const int64_t x[] = {1, IN, SIDE, SIDE}, w[] = {OUT, IN, 1, 1};
  const int64_t y[] = {1, OUT, SIDE, SIDE}, sum[] = {1, OUT, 1, 1};
  made_conv_t conv = layer_plain(LAYER_FORWARD, CUDNN_DATA_FLOAT);
  memset(conv.pre, 0, sizeof conv.pre);
  memset(conv.post, 0, sizeof conv.post);
  made_t m;
  made_create(&m);
  int tx = made_real(&m, CUDNN_DATA_HALF, 4, x, MADE_CHANNELS);
  double *values = made_values(&m, tx, true);
  for (int64_t i = 0; i < IN * SIDE * SIDE; i++)
    values[i] = i % 2 ? -1 : 1 + i / (SIDE * SIDE);
  made_fill(&m, tx, values);
  free(values);
  int tw = made_real(&m, CUDNN_DATA_HALF, 4, w, MADE_DENSE);
  double weights[OUT * IN];
  for (int i = 0; i < OUT * IN; i++)
    weights[i] = i % 7 + 1;
  made_fill(&m, tw, weights);
  int ty = made_virtual(&m, CUDNN_DATA_FLOAT, 4, y);
  int active = made_virtual(&m, CUDNN_DATA_FLOAT, 4, y);
  int out = made_real(&m, CUDNN_DATA_FLOAT, 4, sum, MADE_DENSE);
  made_conv(&m, &conv, tx, tw, ty);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, ty, -1, -1,
                 active);
  made_reduction(&m, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, active, out);
  long before = peak_bytes();
  ck_assert(!host_graph_lacks(&m.graph));
  ck_assert(host_graph_compute(&m.graph, m.data));
  long more = peak_bytes() - before;
  ck_assert_msg(more < 128L << 20, "%ld MiB", more >> 20);
  double *have = made_values(&m, out, false);
  for (int k = 0; k < OUT; k++) {
    /* Half of the columns have 1 and 2, the others are below 0. */
    double want = SIDE * SIDE / 2 * (weights[IN * k] + 2 * weights[IN * k + 1]);
    ck_assert_double_eq(have[k], want);
  }
  free(have);
  made_destroy(&m);
}
END_TEST

START_TEST(what_is_missing_is_named) {
  const int64_t dim[] = {1, 4, 4};
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 3, dim, MADE_DENSE);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 3, dim, MADE_DENSE);
  sdg_graph_node_t *node =
      made_pointwise(&m, CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, x, -1, -1, y);
  ck_assert(!host_graph_lacks(&m.graph));
  static const struct {
    cudnnBackendDescriptorType_t kind;
    const char *name;
  } rows[] = {{CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR, "SIGNAL"},
              {CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, "RNG"},
              {CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR,
               "PAGED_CACHE_LOAD"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    node->kind = rows[i].kind;
    const char *lacks = host_graph_lacks(&m.graph);
    ck_assert(lacks && strstr(lacks, rows[i].name));
  }
  node->kind = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  m.graph.tensor[x].type = CUDNN_DATA_FP8_E8M0;
  ck_assert(host_graph_lacks(&m.graph) != NULL);
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_graphs");
  TCase *tests = tcase_create("graphs");
  tcase_add_loop_test(tests, a_fused_layer_is_rounded_where_its_tensors_say, 0,
                      9);
  tcase_add_loop_test(tests, padding_is_that_of_the_prologue, 0, 3);
  tcase_add_loop_test(tests, the_input_of_the_window_is_read_again, 0, 2);
  tcase_add_loop_test(tests, results_may_overwrite_inputs, 0, 4);
  tcase_add_test(tests, sums_end_a_graph);
  tcase_add_test(tests, sums_are_used);
  tcase_add_test(tests, virtual_tensors_take_no_memory);
  tcase_add_test(tests, what_is_missing_is_named);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
