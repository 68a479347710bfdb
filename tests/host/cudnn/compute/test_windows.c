// SPDX-License-Identifier: Apache-2.0
// The three convolutions in graphs: types, parameters, layouts and extents,
// against loops over doubles.
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/layer.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

START_TEST(convolutions_have_all_types) {
  static const cudnnDataType_t mixes[][4] = {
      /* x, w, y, compute */
      {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE,
       CUDNN_DATA_DOUBLE},
      {CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16,
       CUDNN_DATA_FLOAT},
      {CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT,
       CUDNN_DATA_FLOAT},
      {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32},
      {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_INT32},
      {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, CUDNN_DATA_INT32},
      {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16,
       CUDNN_DATA_FLOAT},
      {CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_INT32}};
  const cudnnDataType_t *mix = mixes[_i % 12];
  bool in_memory = _i / 12 % 2; /* otherwise y is virtual */
  case_seed((uint64_t)_i);
  made_conv_t conv = layer_plain(_i / 24, mix[3]);
  conv.alpha = 0.25;
  conv.beta = in_memory ? 0.5 : 0;
  made_t m;
  made_create(&m);
  int which = layer_output(_i / 24), tensor[3];
  for (int i = 0; i < 3; i++)
    tensor[i] = i == which && !in_memory
                    ? made_virtual(&m, mix[i], 4, layer_dims[i])
                    : made_real(&m, mix[i], 4, layer_dims[i], MADE_DENSE);
  made_conv(&m, &conv, tensor[0], tensor[1], tensor[2]);
  if (!in_memory)
    made_pointwise(
        &m, CUDNN_POINTWISE_IDENTITY,
        mix[3] == CUDNN_DATA_DOUBLE ? mix[3] : CUDNN_DATA_FLOAT, tensor[which],
        -1, -1, made_real(&m, mix[which], 4, layer_dims[which], MADE_CHANNELS));
  reference_run(&m, "types");
  made_destroy(&m);
}
END_TEST

/* Unequal paddings, strides, dilations, groups, both modes, 1 to 3 dimensions;
 * y is in memory or virtual. */
START_TEST(convolutions_have_all_parameters) {
  case_seed((uint64_t)_i + 1000);
  for (int k = 0; k < 24; k++) {
    int rank = 3 + _i % 3, groups = case_range(0, 1) ? case_range(2, 3) : 1;
    made_conv_t conv = layer_plain(k % 3, CUDNN_DATA_FLOAT);
    conv.flip = case_range(0, 1);
    int64_t x[5], w[5], y[5];
    w[1] = case_range(1, 3);
    w[0] = case_range(1, 3) * groups;
    x[0] = case_range(1, 2);
    x[1] = w[1] * groups;
    for (int d = 0; d < rank - 2; d++) {
      w[2 + d] = case_range(1, 4);
      conv.pre[d] = case_range(0, 4);
      conv.post[d] = case_range(0, 4);
      conv.stride[d] = case_range(1, 4);
      conv.dilation[d] = case_range(1, 3);
      int64_t span = conv.dilation[d] * (w[2 + d] - 1) + 1;
      x[2 + d] = case_range(1, 9);
      if (x[2 + d] + conv.pre[d] + conv.post[d] < span)
        x[2 + d] = span;
    }
    layer_extents(&conv, rank, x, w, y);
    made_t m;
    made_create(&m);
    cudnnDataType_t type =
        case_range(0, 3) ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF;
    int which = layer_output(k % 3), tensor[3];
    bool is_virtual = case_range(0, 1);
    const int64_t *const dims[] = {x, w, y};
    for (int i = 0; i < 3; i++)
      tensor[i] = i == which && is_virtual
                      ? made_virtual(&m, CUDNN_DATA_FLOAT, rank, dims[i])
                      : made_real(&m, type, rank, dims[i],
                                  (made_layout_t)case_range(0, 2));
    made_conv(&m, &conv, tensor[0], tensor[1], tensor[2]);
    if (is_virtual)
      made_pointwise(&m, CUDNN_POINTWISE_TANH_FWD, CUDNN_DATA_FLOAT,
                     tensor[which], -1, -1,
                     made_real(&m, type, rank, dims[which], MADE_GAPS));
    reference_run(&m, "parameters");
    made_destroy(&m);
  }
}
END_TEST

START_TEST(inputs_are_broadcast_by_strides) {
  case_seed((uint64_t)_i);
  made_conv_t conv = layer_plain(_i, CUDNN_DATA_FLOAT);
  made_t m;
  made_create(&m);
  int which = layer_output(_i), tensor[3];
  for (int i = 0; i < 3; i++)
    tensor[i] = made_real(&m, CUDNN_DATA_FLOAT, 4, layer_dims[i],
                          i == which             ? MADE_DENSE
                          : i == (which + 1) % 3 ? MADE_ONE
                                                 : MADE_GAPS);
  made_conv(&m, &conv, tensor[0], tensor[1], tensor[2]);
  reference_run(&m, "strides of 0");
  made_destroy(&m);
}
END_TEST

/* As a rank's piece may be: no images, or an input of padding only. */
START_TEST(extents_may_be_zero) {
  case_seed((uint64_t)_i);
  int kind = _i / 2 % 3;
  made_conv_t conv = layer_plain(kind, CUDNN_DATA_FLOAT);
  int64_t x[] = {2, 4, 9, 7}, y[] = {2, 5, 9, 7};
  if (_i % 2) {
    x[0] = y[0] = 0;
  } else {
    x[2] = 0;
    y[2] = 2;
    conv.pre[0] = conv.post[0] = 2;
  }
  conv.beta = _i / 6 ? 0.5 : 0;
  const int64_t *const dims[] = {x, layer_w, y};
  int which = layer_output(kind), tensor[3];
  made_t m;
  made_create(&m);
  for (int i = 0; i < 3; i++)
    tensor[i] = made_real(&m, CUDNN_DATA_FLOAT, 4, dims[i], MADE_DENSE);
  int active = made_real(&m, CUDNN_DATA_FLOAT, 4, dims[which], MADE_DENSE);
  made_conv(&m, &conv, tensor[0], tensor[1], tensor[2]);
  made_pointwise(&m, CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, tensor[which], -1,
                 -1, active);
  reference_run(&m, "nothing");
  made_destroy(&m);
}
END_TEST

/* beta counts the old y once, though two nodes read the new one. */
START_TEST(old_values_are_blended_once) {
  case_seed((uint64_t)_i);
  made_conv_t conv = layer_plain(_i, CUDNN_DATA_FLOAT);
  conv.alpha = 0.5;
  conv.beta = 2;
  const int64_t one[] = {1, 1, 1, 1};
  int which = layer_output(_i), tensor[3];
  made_t m;
  made_create(&m);
  /* A prologue keeps the convolution from being computed in memory. */
  for (int i = 0; i < 3; i++)
    tensor[i] = made_real(&m, CUDNN_DATA_FLOAT, 4, layer_dims[i], MADE_GAPS);
  int first = which == 0 ? 2 : 0;
  int before = made_virtual(&m, CUDNN_DATA_FLOAT, 4, layer_dims[first]);
  made_pointwise(&m, CUDNN_POINTWISE_NEG, CUDNN_DATA_FLOAT, tensor[first], -1,
                 -1, before);
  int active =
      made_real(&m, CUDNN_DATA_FLOAT, 4, layer_dims[which], MADE_DENSE);
  int sum = made_real(&m, CUDNN_DATA_FLOAT, 4, one, MADE_DENSE);
  int result = tensor[which];
  tensor[first] = before;
  made_conv(&m, &conv, tensor[0], tensor[1], tensor[2]);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, result, -1, -1,
                 active);
  made_reduction(&m, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_DATA_FLOAT, active, sum);
  reference_run(&m, "blend");
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_windows");
  TCase *tests = tcase_create("windows");
  tcase_add_loop_test(tests, convolutions_have_all_types, 0, 12 * 2 * 3);
  tcase_add_loop_test(tests, convolutions_have_all_parameters, 0, 12);
  tcase_add_loop_test(tests, inputs_are_broadcast_by_strides, 0, 3);
  tcase_add_loop_test(tests, extents_may_be_zero, 0, 12);
  tcase_add_loop_test(tests, old_values_are_blended_once, 0, 3);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
