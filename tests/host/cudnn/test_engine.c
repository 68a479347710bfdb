// SPDX-License-Identifier: Apache-2.0
// Both convolution engines against a float64 loop and against pieces of
// themselves.
#include "tests/host/cudnn/case.h"

#include <stdlib.h>
#include <string.h>

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

static void compare(engine_fn run, bool is_double, int cases, int channels) {
  int done = 0;
  for (int i = 0; i < cases; i++) {
    host_conv_t conv;
    case_seed((uint64_t)i);
    case_create(&conv, is_double, channels, 12);
    if (run(&conv)) {
      done++;
      int64_t wrong = case_wrong(&conv);
      ck_assert_msg(wrong < 0, "case %d element %ld: %s", i, wrong,
                    case_text(&conv));
    }
    case_destroy(&conv);
  }
  ck_assert_int_ge(done, cases * 9 / 10);
}

START_TEST(direct_float_equals_the_loop) {
  compare(host_conv_direct, false, 2000, 9);
}
END_TEST

START_TEST(direct_double_equals_the_loop) {
  compare(host_conv_direct, true, 600, 9);
}
END_TEST

START_TEST(onednn_equals_the_loop) {
  compare(onednn, false, 300, 20);
}
END_TEST

/* What a shard with its halo sees of dimension `d`: outputs [a, b), the inputs
 * they need, zeros only where the whole has zeros. */
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

static void split(engine_fn run, int cases, int channels, int extent) {
  int done = 0;
  for (int i = 0; i < cases; i++) {
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
      ck_assert_msg(memcmp(kept, whole.y, bytes) == 0, "case %d along %d: %s",
                    i, d, case_text(&whole));
      done++;
    }
    free(kept);
    case_destroy(&whole);
  }
  ck_assert_int_ge(done, cases * 9 / 4);
}

START_TEST(direct_pieces_have_the_bits_of_the_whole) {
  split(host_conv_direct, 400, 9, 20);
}
END_TEST

START_TEST(onednn_pieces_have_the_bits_of_the_whole) {
  split(onednn, 60, 40, 20);
}
END_TEST

START_TEST(onednn_pieces_of_wide_rows_have_the_bits_of_the_whole) {
  split(onednn, 8, 24, 130);
}
END_TEST

/* 200 to 2000 times slower if oneDNN saw the strides. */
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
  tcase_add_test(cases, onednn_never_runs_its_reference_code_on_views);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
