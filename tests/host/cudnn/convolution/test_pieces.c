// SPDX-License-Identifier: Apache-2.0
// A shard must have the same bits as the whole: with the matrix engine, with
// images computed together, and in the gradient of the data.
#include "tests/host/cudnn/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/convolution/engine/matrix.h"
#include "tests/unit/harness.h"

START_TEST(matrix_equals_the_loop) {
  int done = 0;
  int64_t cases = random_cases(400);
  for (int64_t i = 0; i < cases; i++) {
    host_conv_t conv;
    case_seed((uint64_t)i + 500000);
    case_create(&conv, false, 20, 24);
    if (conv.groups == 1) {
      done++;
      ck_assert(host_conv_matrix(&conv));
      int64_t wrong = case_wrong(&conv);
      ck_assert_msg(wrong < 0, "case %ld element %ld: %s", i, wrong,
                    case_text(&conv));
    }
    case_destroy(&conv);
  }
  ck_assert_int_ge(done, (int)cases / 3);
}
END_TEST

/* Memory of a dense convolution of any size. */
typedef struct {
  host_conv_t conv;
  float *x, *w, *y;
  size_t x_count, y_count;
} dense_t;

static float *fill(size_t count) {
  float *values = malloc(count * sizeof *values);
  for (size_t i = 0; i < count; i++)
    values[i] = (float)case_real();
  return values;
}

static size_t dense(int64_t stride[5], int64_t n, int64_t c,
                    const int64_t extent[HOST_SPATIAL]) {
  int64_t at = 1;
  for (int i = 2; i >= 0; at *= extent[i--])
    stride[2 + i] = at;
  stride[1] = at;
  stride[0] = at * c;
  return (size_t)(at * c * n);
}

/* Multiples of `unit` channels where it is not 0, of as many groups where it is
 * negative; positive ones have windows of any height, too. */
static void dense_create(dense_t *d, int window, int height, int width,
                         int unit) {
  host_conv_t *c = &d->conv;
  *c =
      (host_conv_t){.images = case_range(1, 3),
                    .groups = 1,
                    .c = unit > 0 ? unit * case_range(3, 9) : case_range(1, 70),
                    .k = unit > 0 ? unit * case_range(3, 9) : case_range(1, 70),
                    .alpha = 1};
  if (unit < 0) {
    c->groups = -unit * case_range(1, 5);
    c->c = c->k = 1;
  }
  int64_t taps[HOST_SPATIAL], groups = c->groups;
  for (int i = 0; i < HOST_SPATIAL; i++) {
    c->window[i] = i ? window : 1;
    if (i == HOST_H && unit > 0)
      c->window[i] = case_range(0, 2) ? window : case_range(1, 5);
    taps[i] = c->window[i];
    c->stride[i] = i && case_range(0, 2) ? 2 : 1;
    c->dilation[i] = i == HOST_H && unit > 0 && !case_range(0, 3) ? 2 : 1;
    int64_t reach = host_conv_rows(c, i, 1);
    c->pad[i] = (int)reach / 2;
    c->in[i] = i == 1 ? height : i == 2 ? width : 1;
    c->out[i] = (c->in[i] + 2 * c->pad[i] - reach) / c->stride[i] + 1;
  }
  d->x_count = dense(c->x_stride, c->images, groups * c->c, c->in);
  size_t w_count = dense(c->w_stride, groups * c->k, c->c, taps);
  d->y_count = dense(c->y_stride, c->images, groups * c->k, c->out);
  memcpy(c->old_stride, c->y_stride, sizeof c->old_stride);
  c->x = d->x = fill(d->x_count);
  c->w = d->w = fill(w_count);
  c->y = d->y = fill(d->y_count);
  c->old = c->y;
}

static void dense_destroy(dense_t *d) {
  free(d->x);
  free(d->w);
  free(d->y);
}

/* Rows [a, b) of the output in dimension i and what they need of x. */
static host_conv_t rows_of(const host_conv_t *whole, int i, int64_t a,
                           int64_t b) {
  host_conv_t part = *whole;
  int64_t s = whole->stride[i];
  int64_t low = a * s - whole->pad[i];
  int64_t high = low + host_conv_rows(whole, i, b - a);
  int64_t skip = low > 0 ? low : 0;
  part.pad[i] = low < 0 ? (int)-low : 0;
  part.in[i] = (high < whole->in[i] ? high : whole->in[i]) - skip;
  part.out[i] = b - a;
  part.x = (const float *)whole->x + skip * whole->x_stride[2 + i];
  part.y = (float *)whole->y + a * whole->y_stride[2 + i];
  part.old = part.y;
  return part;
}

/* Rows long enough to be multiplied where they lie, and short ones. */
START_TEST(pieces_of_products_have_the_bits_of_the_whole) {
  for (int i = 0; i < 60; i++) {
    dense_t d;
    case_seed((uint64_t)i + 600000);
    dense_create(&d, i % 3 ? 1 : 3, case_range(4, 40), case_range(4, 60), 0);
    if (i % 4 == 0)
      d.conv.alpha = 0.5;
    ck_assert(host_conv_matrix(&d.conv));
    size_t bytes = d.y_count * sizeof(float);
    float *kept = malloc(bytes);
    memcpy(kept, d.y, bytes);
    memset(d.y, 0, bytes);
    for (int64_t a = 0, b; a < d.conv.out[HOST_H]; a = b) {
      b = a + case_range(1, (int)(d.conv.out[HOST_H] - a));
      host_conv_t part = rows_of(&d.conv, HOST_H, a, b);
      ck_assert(host_conv_matrix(&part));
    }
    ck_assert_msg(memcmp(kept, d.y, bytes) == 0, "case %d: %s", i,
                  case_text(&d.conv));
    free(kept);
    dense_destroy(&d);
  }
}
END_TEST

/* oneDNN, or the engine that replaces it where its bits depend on the shape. */
static bool engine(const host_conv_t *conv, bool *out_done) {
  if (!host_conv_only_direct(conv))
    return host_conv_onednn(conv, out_done);
  *out_done = true;
  return host_conv_direct(conv);
}

/* Computes y anew, piece by piece: of random sizes, or of one element each. */
static void pieces_check(const dense_t *d, bool single) {
  const host_conv_t *c = &d->conv;
  size_t bytes = d->y_count * sizeof(float);
  float *kept = malloc(bytes);
  bool ok;
  memcpy(kept, d->y, bytes);
  memset(d->y, 0, bytes);
  for (int64_t a = 0, b; a < c->out[HOST_H]; a = b) {
    b = a + (single ? 1 : case_range(1, (int)(c->out[HOST_H] - a)));
    host_conv_t rows = rows_of(c, HOST_H, a, b);
    for (int64_t e = 0, f; e < c->out[HOST_W]; e = f) {
      f = e + (single ? 1 : case_range(1, (int)(c->out[HOST_W] - e)));
      host_conv_t part = rows_of(&rows, HOST_W, e, f);
      ck_assert(engine(&part, &ok) && ok);
    }
  }
  ck_assert_msg(memcmp(kept, d->y, bytes) == 0, "%s", case_text(c));
  free(kept);
}

/* With padding on both sides, with one row or column, and with one output. */
START_TEST(pieces_by_onednn_have_the_bits_of_the_whole) {
  int64_t done = 0, cases = random_cases(40);
  for (int64_t i = 0; i < cases; i++) {
    dense_t d;
    case_seed((uint64_t)i + 1000216);
    dense_create(&d, (int[]){1, 3, 5, 7}[i % 4], case_range(1, 14),
                 case_range(1, 14), (int[]){16, 0, -16}[i % 3]);
    host_conv_t *c = &d.conv;
    bool ok;
    ck_assert(engine(c, &ok));
    if (ok)
      pieces_check(&d, i % 8 >= 4);
    done += ok;
    dense_destroy(&d);
  }
  ck_assert_int_ge(done, cases * 9 / 10);
}
END_TEST

/* Pieces of ranks: any channels, groups, strides, dilations and rows. */
START_TEST(rows_of_wide_layers_have_the_bits_of_the_whole) {
  int64_t done = 0, cases = random_cases(30);
  for (int64_t i = 0; i < cases; i++) {
    dense_t d;
    case_seed((uint64_t)i + 1200000);
    dense_create(&d, case_range(2, 7), case_range(1, 20), case_range(1, 90), 1);
    dense_destroy(&d);
    host_conv_t *c = &d.conv;
    c->groups = case_range(0, 3) ? 1 : case_range(2, 3);
    c->c = case_range(1, case_range(0, 1) ? 300 : 60);
    c->k = case_range(1, 90);
    int64_t taps[HOST_SPATIAL];
    for (int s = 0; s < HOST_SPATIAL; s++)
      taps[s] = c->window[s];
    d.x_count = dense(c->x_stride, c->images, c->groups * c->c, c->in);
    size_t w_count = dense(c->w_stride, c->groups * c->k, c->c, taps);
    d.y_count = dense(c->y_stride, c->images, c->groups * c->k, c->out);
    memcpy(c->old_stride, c->y_stride, sizeof c->old_stride);
    c->x = d.x = fill(d.x_count);
    c->w = d.w = fill(w_count);
    c->old = c->y = d.y = fill(d.y_count);
    bool ok;
    ck_assert(engine(c, &ok));
    if (ok)
      pieces_check(&d, false);
    done += ok;
    dense_destroy(&d);
  }
  ck_assert_int_ge(done, cases * 9 / 10);
}
END_TEST

START_TEST(an_image_alone_has_the_bits_it_has_among_others) {
  for (int i = 0; i < 40; i++) {
    dense_t d;
    case_seed((uint64_t)i + 700000);
    dense_create(&d, i % 2 ? 1 : 3, case_range(4, 12), case_range(4, 12), 0);
    ck_assert(host_conv_run(&d.conv));
    float *kept = malloc(d.y_count * sizeof *kept);
    memcpy(kept, d.y, d.y_count * sizeof *kept);
    memset(d.y, 0, d.y_count * sizeof *kept);
    for (int n = 0; n < d.conv.images; n++) {
      host_conv_t one = d.conv;
      one.images = 1;
      one.x = d.x + n * d.conv.x_stride[0];
      one.y = d.y + n * d.conv.y_stride[0];
      one.old = one.y;
      ck_assert(host_conv_run(&one));
    }
    ck_assert_msg(memcmp(kept, d.y, d.y_count * sizeof *kept) == 0,
                  "case %d: %s", i, case_text(&d.conv));
    free(kept);
    dense_destroy(&d);
  }
}
END_TEST

/* Takes rows [a, b) of dx in dimension i, and the rows of dy that reach them;
 * returns false if none does. */
static bool dx_rows(const host_conv_t *whole, int i, int64_t a, int64_t b,
                    host_conv_t *part) {
  int64_t s = whole->stride[i], at = a + whole->pad[i];
  int64_t window = (int64_t)whole->dilation[i] * (whole->window[i] - 1);
  int64_t low = at > window ? (at - window + s - 1) / s : 0;
  int64_t high = (b - 1 + whole->pad[i]) / s + 1;
  low = low < at / s ? low : at / s;
  high = high < whole->out[i] ? high : whole->out[i];
  if (low >= high)
    return false;
  *part = *whole;
  part->in[i] = b - a;
  part->out[i] = high - low;
  part->pad[i] = (int)(at - low * s);
  part->x = (const float *)whole->x + a * whole->x_stride[2 + i];
  part->y = (float *)whole->y + low * whole->y_stride[2 + i];
  return true;
}

static void split_dx(dense_t *d, int number, int64_t count) {
  size_t bytes = (size_t)count * sizeof(float);
  d->conv.gamma = 0;
  ck_assert(host_conv_backward_data(&d->conv));
  float *kept = malloc(bytes);
  memcpy(kept, d->conv.x, bytes);
  for (int i = 0; i < HOST_SPATIAL; i++)
    for (int64_t a = 0, b; a < d->conv.in[i]; a = b) {
      b = a + case_range(1, (int)(d->conv.in[i] - a));
      host_conv_t part;
      if (dx_rows(&d->conv, i, a, b, &part))
        ck_assert(host_conv_backward_data(&part));
      ck_assert_msg(memcmp(kept, d->conv.x, bytes) == 0,
                    "case %d along %d, rows %ld to %ld: %s", number, i, a, b,
                    case_text(&d->conv));
    }
  free(kept);
}

START_TEST(pieces_of_the_gradient_of_data_have_the_bits_of_the_whole) {
  for (int64_t i = 0; i < random_cases(60); i++) {
    dense_t d;
    /* The last one has strides that differ, and once had other bits. */
    int64_t at = i == 59 ? 369 : i;
    case_seed((uint64_t)at + 800000);
    dense_create(&d, (int[]){1, 3, 3, 5}[at % 4], case_range(5, 30),
                 case_range(5, 40), (int[]){16, 0, -16}[at % 3]);
    split_dx(&d, (int)at, (int64_t)d.x_count);
    dense_destroy(&d);
  }
  for (int64_t i = 0; i < random_cases(60); i++) {
    dense_t d = {.x_count = 0};
    case_seed((uint64_t)i + 900000);
    case_create(&d.conv, false, 30, 16);
    for (int64_t j = 0; j < case_y_elements(&d.conv); j++)
      ((float *)d.conv.y)[j] = (float)case_real();
    const host_conv_t *c = &d.conv;
    int64_t count = 1 + (c->images - 1) * c->x_stride[0] +
                    ((int64_t)c->groups * c->c - 1) * c->x_stride[1];
    for (int s = 0; s < HOST_SPATIAL; s++)
      count += (c->in[s] - 1) * c->x_stride[2 + s];
    split_dx(&d, (int)i, count);
    case_destroy(&d.conv);
  }
}
END_TEST

/* Channels in sixteens: oneDNN's weights come back in blocks of them. */
START_TEST(gradient_of_weights_by_onednn_is_the_direct_one) {
  int blocked = 0;
  for (int i = 0; i < 24; i++) {
    dense_t d;
    case_seed((uint64_t)i + 1100000);
    dense_create(&d, (int[]){3, 5, 2}[i % 3], case_range(4, 20),
                 case_range(4, 20), i % 4 ? 16 : -16);
    const host_conv_t *c = &d.conv;
    size_t count = (size_t)c->groups * (size_t)c->k * (size_t)c->c *
                   (size_t)c->window[1] * (size_t)c->window[2];
    float *mine = malloc(count * sizeof *mine);
    float *other = malloc(count * sizeof *other);
    bool ok;
    ck_assert(host_wgrad_onednn(c, mine, &ok) && host_wgrad_direct(c, other));
    for (size_t j = 0; ok && j < count; j++)
      REQUIRE_MSG(fabsf(mine[j] - other[j]) < 1e-3F, "case %d: %s", i,
                  case_text(c));
    blocked += ok && c->groups == 1;
    free(mine);
    free(other);
    dense_destroy(&d);
  }
  ck_assert_int_ge(blocked, 10);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn pieces");
  TCase *cases = tcase_create("pieces");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, matrix_equals_the_loop);
  tcase_add_test(cases, pieces_of_products_have_the_bits_of_the_whole);
  tcase_add_test(cases, pieces_by_onednn_have_the_bits_of_the_whole);
  tcase_add_test(cases, rows_of_wide_layers_have_the_bits_of_the_whole);
  tcase_add_test(cases, an_image_alone_has_the_bits_it_has_among_others);
  tcase_add_test(cases,
                 pieces_of_the_gradient_of_data_have_the_bits_of_the_whole);
  tcase_add_test(cases, gradient_of_weights_by_onednn_is_the_direct_one);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
