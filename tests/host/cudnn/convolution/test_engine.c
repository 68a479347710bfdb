// SPDX-License-Identifier: Apache-2.0
// Both convolution engines against a float64 loop, and pieces against the
// whole.
#include "tests/host/cudnn/case.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/transpose.h"
#include "tests/unit/harness.h"

typedef bool (*engine_fn)(const host_conv_t *conv);

static bool onednn(const host_conv_t *conv) {
  bool done = false;
  ck_assert(host_conv_onednn(conv, &done));
  if (done)
    ck_assert_msg(strncmp(host_conv_onednn_name(), "ref", 3) != 0, "%s",
                  case_text(conv));
  return done;
}

static void compare(engine_fn run, bool is_double, int64_t cases,
                    int channels) {
  int64_t done = 0;
  cases = random_cases(cases);
  for (int64_t i = 0; i < cases; i++) {
    host_conv_t conv;
    case_seed((uint64_t)i);
    case_create(&conv, is_double, channels, 12);
    if (run(&conv)) {
      done++;
      int64_t wrong = case_wrong(&conv);
      ck_assert_msg(wrong < 0, "case %ld element %ld: %s", i, wrong,
                    case_text(&conv));
    }
    case_destroy(&conv);
  }
  ck_assert_int_ge(done, cases * 9 / 10);
}

START_TEST(direct_float_equals_the_loop) {
  compare(host_conv_direct, false, 800, 9);
}
END_TEST

START_TEST(direct_double_equals_the_loop) {
  compare(host_conv_direct, true, 300, 9);
}
END_TEST

START_TEST(onednn_equals_the_loop) {
  compare(onednn, false, 120, 20);
}
END_TEST

/* What a shard with its halo has of dimension `d`: outputs [a, b), and the
 * inputs that they need, with zeros only where the whole has zeros. */
static host_conv_t piece_of(const host_conv_t *whole, int d, int64_t a,
                            int64_t b) {
  host_conv_t part = *whole;
  int64_t low = a * whole->stride[d] - whole->pad[d];
  int64_t high = low + host_conv_rows(whole, d, b - a);
  int64_t skip = low > 0 ? low : 0;
  if (skip > whole->in[d])
    skip = whole->in[d];
  part.pad[d] = low < 0 ? (int)-low : 0;
  part.in[d] = (high < whole->in[d] ? high : whole->in[d]) - skip;
  if (part.in[d] <= 0) { /* nothing but padding */
    part.in[d] = 0;
    part.pad[d] = (int)(high - low);
  }
  part.out[d] = b - a;
  int64_t bytes = whole->is_double ? 8 : 4;
  part.x = (const char *)whole->x + skip * whole->x_stride[2 + d] * bytes;
  part.y = (char *)whole->y + a * whole->y_stride[2 + d] * bytes;
  part.old = (const char *)whole->old + a * whole->old_stride[2 + d] * bytes;
  return part;
}

/* With a smaller instruction set than usual, oneDNN does not promise equal
 * bits. */
static bool lawful(const host_conv_t *conv) {
  return host_conv_only_direct(conv) ? host_conv_direct(conv) : onednn(conv);
}

static void split(engine_fn run, int64_t cases, int channels, int extent) {
  int64_t done = 0;
  cases = random_cases(cases);
  for (int64_t i = 0; i < cases; i++) {
    host_conv_t whole;
    case_seed((uint64_t)i + 100000);
    case_create(&whole, false, channels, extent);
    size_t bytes = (size_t)case_y_elements(&whole) * sizeof(float);
    bool ok = run(&whole);
    float *kept = malloc(bytes);
    memcpy(kept, whole.y, bytes);
    for (int d = 0; ok && d < HOST_SPATIAL; d++) {
      case_reset(&whole);
      for (int64_t a = 0, b; a < whole.out[d]; a = b) {
        b = a + case_range(1, (int)(whole.out[d] - a));
        host_conv_t part = piece_of(&whole, d, a, b);
        ck_assert_msg(run(&part), "%s", case_text(&part));
      }
      ck_assert_msg(memcmp(kept, whole.y, bytes) == 0, "case %ld along %d: %s",
                    i, d, case_text(&whole));
      done++;
    }
    free(kept);
    case_destroy(&whole);
  }
  ck_assert_int_ge(done, cases * 9 / 4);
}

START_TEST(direct_pieces_have_the_bits_of_the_whole) {
  split(host_conv_direct, 150, 9, 20);
}
END_TEST

START_TEST(onednn_pieces_have_the_bits_of_the_whole) {
  split(lawful, 30, 40, 20);
}
END_TEST

START_TEST(onednn_pieces_of_wide_rows_have_the_bits_of_the_whole) {
  split(lawful, 5, 24, 130);
}
END_TEST

/* oneDNN alone would choose the order of these sums by the width of a row. */
START_TEST(pieces_of_many_channels_have_the_bits_of_the_whole) {
  for (int i = 0; i < 12; i++) {
    host_conv_t whole;
    case_seed((uint64_t)i + 400000);
    case_create(&whole, false, 6, 40);
    case_destroy(&whole);
    whole.images = whole.groups = 1;
    whole.c = case_range(200, 256);
    whole.k = case_range(3, 16);
    whole.bias = NULL;
    whole.gamma = 0;
    for (int d = 0; d < HOST_SPATIAL; d++) {
      whole.window[d] = d ? case_range(1, 4) : 1;
      whole.stride[d] = d ? case_range(2, 3) : 1;
      whole.dilation[d] = 1;
      whole.pad[d] = 0;
      whole.out[d] = d == HOST_W ? case_range(24, 60) : d ? 6 : 1;
      whole.in[d] = host_conv_rows(&whole, d, whole.out[d]);
    }
    const int64_t *in = whole.in, *out = whole.out;
    const int *n = whole.window;
    int64_t x[5] = {0, in[1] * in[2], 0, in[2], 1};
    int64_t w[5] = {(int64_t)whole.c * n[1] * n[2], n[1] * n[2], 0, n[2], 1};
    int64_t y[5] = {0, out[1] * out[2], 0, out[2], 1};
    memcpy(whole.x_stride, x, sizeof x);
    memcpy(whole.w_stride, w, sizeof w);
    memcpy(whole.y_stride, y, sizeof y);
    memcpy(whole.old_stride, y, sizeof y);
    float *xs = malloc((size_t)(whole.c * x[1]) * sizeof *xs);
    float *ws = malloc((size_t)(whole.k * w[0]) * sizeof *ws);
    size_t bytes = (size_t)(whole.k * y[1]) * sizeof(float);
    for (int64_t j = 0; j < whole.c * x[1]; j++)
      xs[j] = (float)case_real();
    for (int64_t j = 0; j < whole.k * w[0]; j++)
      ws[j] = (float)case_real();
    whole.x = xs;
    whole.w = ws;
    whole.y = malloc(bytes);
    whole.old = whole.y;
    ck_assert(host_conv_run(&whole));
    float *kept = malloc(bytes);
    memcpy(kept, whole.y, bytes);
    for (int64_t a = 0, b; a < out[HOST_W]; a = b) {
      b = a + case_range(1, (int)(out[HOST_W] - a));
      host_conv_t part = piece_of(&whole, HOST_W, a, b);
      ck_assert(host_conv_run(&part));
    }
    ck_assert_msg(memcmp(kept, whole.y, bytes) == 0, "%s", case_text(&whole));
    free(kept);
    free(whole.y);
    free(xs);
    free(ws);
  }
}
END_TEST

/* These would be 200 to 2000 times slower if oneDNN got the strides. */
START_TEST(onednn_never_runs_its_reference_code_on_views) {
  for (int i = 0; i < 60; i++) {
    host_conv_t conv;
    case_seed((uint64_t)i + 200000);
    case_create(&conv, false, 33, 10);
    ck_assert_msg(onednn(&conv), "%s", case_text(&conv));
    ck_assert_msg(strstr(host_conv_onednn_name(), "jit") ||
                      strstr(host_conv_onednn_name(), "br"),
                  "%s: %s", host_conv_onednn_name(), case_text(&conv));
    case_destroy(&conv);
  }
}
END_TEST

typedef void (*transpose_fn)(const float *from, int64_t from_stride,
                             int64_t rows, int64_t columns, float *to,
                             int64_t to_stride);

/* Moves exactly the given elements, also if the other side has longer rows. */
static void check_transpose(transpose_fn run) {
  enum { MOST = 90, ROOM = MOST * (MOST + 8) };
  static float from[ROOM], to[ROOM];
  for (int i = 0; i < 200; i++) {
    int rows = case_range(1, MOST), columns = case_range(1, MOST);
    int from_stride = columns + case_range(0, 8);
    int to_stride = rows + case_range(0, 8);
    for (int j = 0; j < ROOM; j++) {
      from[j] = (float)j;
      to[j] = -1;
    }
    run(from, from_stride, rows, columns, to, to_stride);
    for (int j = 0; j < ROOM; j++) {
      int row = j % to_stride, column = j / to_stride;
      bool inside = row < rows && column < columns;
      int wanted = inside ? row * from_stride + column : -1;
      REQUIRE_MSG(to[j] == (float)wanted, "%d x %d to stride %d at %d", rows,
                  columns, to_stride, j);
    }
  }
}

START_TEST(transposition_is_right_with_any_vectors) {
  case_seed(1);
  check_transpose(host_transpose);
  check_transpose(host_transpose_base);
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2"))
    check_transpose(host_transpose_avx2);
  if (__builtin_cpu_supports("avx512f"))
    check_transpose(host_transpose_avx512);
#endif
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn engines");
  TCase *cases = tcase_create("engines");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, direct_float_equals_the_loop);
  tcase_add_test(cases, direct_double_equals_the_loop);
  tcase_add_test(cases, onednn_equals_the_loop);
  tcase_add_test(cases, direct_pieces_have_the_bits_of_the_whole);
  tcase_add_test(cases, onednn_pieces_have_the_bits_of_the_whole);
  tcase_add_test(cases, onednn_pieces_of_wide_rows_have_the_bits_of_the_whole);
  tcase_add_test(cases, pieces_of_many_channels_have_the_bits_of_the_whole);
  tcase_add_test(cases, onednn_never_runs_its_reference_code_on_views);
  tcase_add_test(cases, transposition_is_right_with_any_vectors);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
