// SPDX-License-Identifier: Apache-2.0
// Random convolutions and gradients against loops. Memory that nobody has
// written is NaN, so that errors of oneDNN show.  SDG_TEST_CASES=50 tests fifty
// times as many cases, SDG_TEST_SEED=7 other ones.
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/convolution/loop.h"
#include "tests/unit/harness.h"

/* Scratch memory that is filled with NaN before each case; and the byte that
 * malloc fills with (0xff ^ 1: numbers of 1e38 and more). */
enum { SCRATCH_BYTES = 1 << 20, MALLOC_FILL = 1 };

static int channels(int most) {
  return case_range(0, 1) ? case_range(1, most) : 8 * case_range(1, most / 8);
}

/* Small extents under large windows: few outputs, much padding. */
static void scan_create(host_conv_t *c, int dims) {
  *c = (host_conv_t){.images = case_range(1, 2),
                     .groups = case_range(0, 2) ? 1 : case_range(2, 4),
                     .flip = case_range(0, 3) == 0,
                     .alpha = case_range(0, 2) ? 1 : 0.5,
                     .gamma = case_range(0, 2) ? 0 : -0.25};
  bool alone = c->groups > 1 && case_range(0, 3) == 0;
  int most = dims == 3 ? 24 : 40;
  if (alone)
    c->groups = 8 * case_range(1, 3);
  c->c = alone ? 1 : channels(most);
  c->k = alone ? 1 : channels(most);
  for (int i = 0; i < HOST_SPATIAL; i++) {
    bool used = i >= HOST_SPATIAL - dims;
    c->window[i] = used ? case_range(1, i ? 5 : 7) : 1;
    if (used && case_range(0, 2) == 0)
      c->window[i] = 1;
    c->stride[i] = used ? case_range(1, 4) : 1;
    c->dilation[i] = used && !case_range(0, 3) ? case_range(2, 3) : 1;
    int64_t reach = host_conv_rows(c, i, 1);
    c->pad[i] = used ? case_range(0, (int)reach + 1) : 0;
    c->in[i] = used ? case_range(1, dims == 1 ? 40 : i == HOST_W ? 12 : 8) : 1;
    if (c->in[i] + 2 * c->pad[i] < reach)
      c->in[i] = reach;
    c->out[i] = (c->in[i] + 2 * c->pad[i] - reach) / c->stride[i] + 1;
  }
}

static void lay_out(const int64_t extent[5], int64_t stride[5]) {
  static const int last[5] = {0, 2, 3, 4, 1}, first[5] = {0, 1, 2, 3, 4};
  const int *order = case_range(0, 1) ? last : first;
  int64_t at = case_range(0, 5) ? 1 : 2;
  for (int i = 4; i >= 0; i--) {
    stride[order[i]] = at;
    at *= extent[order[i]];
    at += case_range(0, 5) ? 0 : 1;
  }
}

static void poison(void) {
  for (int i = 0; i < HOST_SCRATCH_COUNT; i++) {
    void *block = host_scratch_get((host_scratch_t)i, SCRATCH_BYTES);
    if (block)
      memset(block, 0xff, SCRATCH_BYTES);
  }
}

static void check(host_conv_kind_t kind, const host_conv_t *c, part_t *out,
                  double length, int64_t number) {
  static const char *const names[] = {"forward", "data", "weights"};
  part_t before = *out;
  before.data = part_clone(out);
  poison();
  ck_assert(host_conv_any(kind, c));
  int64_t wrong = part_wrong(out, &before, c->gamma, length);
  ck_assert_msg(wrong < 0, "case %ld, %s of type %d, element %ld: %s, k%d",
                number, names[kind], (int)c->x_type, wrong, case_text(c), c->k);
  memcpy(out->data, before.data, part_bytes(out));
  free(before.data);
}

/* With `odd`, operands have infinities and NaN. */
static void scan(int dims, cudnnDataType_t type, int64_t number, bool odd) {
  const char *seed = getenv("SDG_TEST_SEED");
  host_conv_t c;
  case_seed((uint64_t)number + 2000000 +
            (seed ? strtoull(seed, NULL, 10) * 1000003 : 0));
  scan_create(&c, dims);
  int64_t xe[5] = {c.images, (int64_t)c.groups * c.c};
  int64_t ye[5] = {c.images, (int64_t)c.groups * c.k};
  int64_t we[5] = {(int64_t)c.groups * c.k, c.c};
  for (int i = 0; i < HOST_SPATIAL; i++) {
    xe[2 + i] = c.in[i];
    ye[2 + i] = c.out[i];
    we[2 + i] = c.window[i];
  }
  lay_out(xe, c.x_stride);
  lay_out(we, c.w_stride);
  lay_out(ye, c.y_stride);
  memcpy(c.old_stride, c.y_stride, sizeof c.old_stride);
  part_t x, w, y;
  part_create(&x, type, xe, c.x_stride);
  part_create(&w, type, we, c.w_stride);
  part_create(&y, type, ye, c.y_stride);
  if (odd) {
    part_t *const parts[] = {&x, &w, &y};
    int first = case_range(0, 2);
    for (int i = 0; i < 3; i++)
      if (i == first || !case_range(0, 3))
        part_break(parts[i], case_range(0, 9) ? case_range(1, 3) : 1000);
  }
  c.is_double = type == CUDNN_DATA_DOUBLE;
  c.x_type = c.w_type = c.y_type = c.bias_type = type;
  c.x = x.data;
  c.w = w.data;
  c.y = y.data;
  c.old = c.y;
  loop_run(&c, &x, &w, &y);
  double taps = c.window[0] * c.window[1] * c.window[2];
  check(HOST_CONV_FORWARD, &c, &y, taps * c.c, number);
  check(HOST_CONV_DATA, &c, &x, taps * c.k, number);
  check(HOST_CONV_WEIGHTS, &c, &w,
        (double)c.images * (double)(c.out[0] * c.out[1] * c.out[2]), number);
  part_destroy(&x);
  part_destroy(&w);
  part_destroy(&y);
}

/* Most are of floats, which oneDNN computes. */
static void scan_all(int dims, int64_t cases, bool odd) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16};
  mallopt(M_PERTURB, MALLOC_FILL);
  for (int64_t i = 0, n = random_cases(cases); i < n; i++)
    scan(dims, i % 4 ? CUDNN_DATA_FLOAT : types[i / 4 % 3], 10 * i + dims, odd);
}

START_TEST(one_dimension_equals_the_loop) {
  scan_all(1, 60, false);
}
END_TEST

START_TEST(two_dimensions_equal_the_loop) {
  scan_all(2, 60, false);
}
END_TEST

START_TEST(three_dimensions_equal_the_loop) {
  scan_all(3, 60, false);
}
END_TEST

/* Windows with a stride over few planes: oneDNN omits planes of weights. */
START_TEST(few_planes_equal_the_loop) {
  static const int known[][4] = {/* window, step, padding, planes */
                                 {7, 2, 3, 6},
                                 {5, 3, 4, 6},
                                 {7, 3, 4, 6},
                                 {7, 3, 4, 8},
                                 {4, 2, 3, 4}};
  mallopt(M_PERTURB, MALLOC_FILL);
  for (int i = 0; i < 60; i++) {
    const int *at = known[i % 5];
    enum { C = 16, SIDE = 5 };
    int groups = 1 + i / 5 % 3;
    host_conv_t c = {
        .images = 1 + i % 2,
        .groups = groups,
        .c = i / 15 ? C : 4,
        .k = i / 30 ? C : 3,
        .window = {at[0], 1, 1},
        .stride = {at[1], 1, 1},
        .dilation = {1, 1, 1},
        .pad = {at[2], 0, 0},
        .in = {at[3], SIDE, SIDE},
        .out = {(at[3] + 2 * at[2] - at[0]) / at[1] + 1, SIDE, SIDE},
        .alpha = 1};
    int64_t xe[5] = {c.images, (int64_t)groups * c.c, at[3], SIDE, SIDE};
    int64_t ye[5] = {c.images, (int64_t)groups * c.k, c.out[0], SIDE, SIDE};
    int64_t we[5] = {(int64_t)groups * c.k, c.c, at[0], 1, 1};
    case_seed((uint64_t)i);
    lay_out(xe, c.x_stride);
    lay_out(we, c.w_stride);
    lay_out(ye, c.y_stride);
    part_t x, w, y;
    part_create(&x, CUDNN_DATA_FLOAT, xe, c.x_stride);
    part_create(&w, CUDNN_DATA_FLOAT, we, c.w_stride);
    part_create(&y, CUDNN_DATA_FLOAT, ye, c.y_stride);
    c.x = x.data;
    c.w = w.data;
    c.y = y.data;
    loop_run(&c, &x, &w, &y);
    check(HOST_CONV_WEIGHTS, &c, &w, 1000, i);
    part_destroy(&x);
    part_destroy(&w);
    part_destroy(&y);
  }
}
END_TEST

/* An infinity times a zero of the padding would be NaN. */
START_TEST(elements_outside_the_tensor_are_ignored) {
  scan_all(1 + _i, 150, true);
}
END_TEST

/* More rows than a band of oneDNN has. The last band is filled up with zeros of
 * dy, which must not be multiplied by elements of x. */
START_TEST(bands_filled_with_zeros_meet_no_infinity) {
  enum { C = 64, K = 16, WIDTH = 40, GROUPS = 1 };
  const int heights[] = {59, 61, 67};
  const int64_t h = heights[_i], out = h - 2 + 2 * (int64_t)(_i == 2);
  host_conv_t c = {.images = 2,
                   .groups = GROUPS,
                   .c = C,
                   .k = K,
                   .window = {1, 3, 1},
                   .stride = {1, 1, 1},
                   .dilation = {1, 1, 1},
                   .pad = {0, _i == 2, 0},
                   .in = {1, h, WIDTH},
                   .out = {1, out, WIDTH},
                   .alpha = 1};
  const int64_t xe[5] = {c.images, C, 1, h, WIDTH};
  const int64_t ye[5] = {c.images, K, 1, out, WIDTH};
  const int64_t we[5] = {K, C, 1, 3, 1};
  case_seed((uint64_t)_i);
  lay_out(xe, c.x_stride);
  lay_out(we, c.w_stride);
  lay_out(ye, c.y_stride);
  part_t x, w, y;
  part_create(&x, CUDNN_DATA_FLOAT, xe, c.x_stride);
  part_create(&w, CUDNN_DATA_FLOAT, we, c.w_stride);
  part_create(&y, CUDNN_DATA_FLOAT, ye, c.y_stride);
  for (int64_t n = 0; n < c.images; n++)
    for (int64_t i = 0; i < h; i++)
      ((float *)x.data)[n * c.x_stride[0] + (i % C) * c.x_stride[1] +
                        i * c.x_stride[3] + i % WIDTH * c.x_stride[4]] =
          i % 3 ? INFINITY : -INFINITY;
  c.x = x.data;
  c.w = w.data;
  c.y = y.data;
  loop_run(&c, &x, &w, &y);
  check(HOST_CONV_WEIGHTS, &c, &w, 10000, _i);
  part_destroy(&x);
  part_destroy(&w);
  part_destroy(&y);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn scan");
  TCase *cases = tcase_create("scan");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, one_dimension_equals_the_loop);
  tcase_add_test(cases, two_dimensions_equal_the_loop);
  tcase_add_test(cases, three_dimensions_equal_the_loop);
  tcase_add_test(cases, few_planes_equal_the_loop);
  tcase_add_loop_test(cases, elements_outside_the_tensor_are_ignored, 0, 3);
  tcase_add_loop_test(cases, bands_filled_with_zeros_meet_no_infinity, 0, 3);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
