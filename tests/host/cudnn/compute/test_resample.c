// SPDX-License-Identifier: Apache-2.0
// Graphs that resample images against loops over doubles, and against numbers
// worked out by hand.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 20 };

START_TEST(random_resamplings_compute_what_their_nodes_say) {
  for (int64_t i = 0, n = random_cases(60); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 14000000;
    case_seed(seed);
    made_t m;
    draw_resampling(&m);
    m.part = case_range(0, 1) ? case_range(1, 100) : 0;
    char name[32];
    snprintf(name, sizeof name, "resampling %lu", seed);
    reference_run(&m, name);
    made_destroy(&m);
  }
}
END_TEST

/* Resamples one row of five, or its gradient, and checks the result. */
typedef struct {
  made_resample_t how;
  int64_t in, out;
  double x[5], y[10];
  int64_t index[10];
} row_t;

static void row_check(const row_t *row, int number) {
  const int64_t x_dim[] = {1, 1, 1, row->in}, y_dim[] = {1, 1, 1, row->out};
  made_resample_t how = row->how;
  bool most = how.mode == CUDNN_RESAMPLE_MAXPOOL;
  /* The row is the second dimension. */
  how.window[1] = how.window[0];
  how.stride[1] = how.stride[0];
  how.pre[1] = how.pre[0];
  how.post[1] = how.post[0];
  how.window[0] = how.mode == CUDNN_RESAMPLE_BILINEAR ? 2 : 1;
  how.stride[0] = 1;
  how.pre[0] = how.mode <= CUDNN_RESAMPLE_BILINEAR ? 0.5 : 0;
  how.post[0] = how.mode == CUDNN_RESAMPLE_BILINEAR ? 0.5 : 0;
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 4, x_dim, MADE_DENSE);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 4, y_dim, MADE_DENSE);
  int index = most ? made_real(&m, CUDNN_DATA_INT8, 4, y_dim, MADE_DENSE) : -1;
  made_fill(&m, x, row->x);
  made_resample(&m, &how, x, y, index, -1);
  made_run(&m);
  double *have = made_values(&m, y, false);
  double *at = most ? made_values(&m, index, false) : NULL;
  for (int64_t i = 0; i < row->out; i++) {
    ck_assert_msg(have[i] == row->y[i] || (isnan(have[i]) && isnan(row->y[i])),
                  "row %d: y[%ld] is %g, not %g", number, i, have[i],
                  row->y[i]);
    ck_assert_msg(!most || (int64_t)at[i] == row->index[i],
                  "row %d: position %ld is %g, not %ld", number, i,
                  most ? at[i] : 0, row->index[i]);
  }
  free(have);
  free(at);
  made_destroy(&m);
}

#define POOL(mode_, padding_, nan_, window_, stride_, pre_, post_)             \
  {                                                                            \
    .mode = CUDNN_RESAMPLE_##mode_, .padding = CUDNN_##padding_,               \
    .nan = (nan_), .window = {window_}, .stride = {stride_}, .pre = {pre_},    \
    .post = {                                                                  \
      post_                                                                    \
    }                                                                          \
  }

START_TEST(rows_have_the_numbers_of_their_definition) {
  const double inf = INFINITY;
  const row_t rows[] = {
      /* The first of equal ones; positions count the padding. */
      {POOL(MAXPOOL, NEG_INF_PAD, false, 3, 2, 1, 1),
       5,
       3,
       {1, 1, -4, 2, 2},
       {1, 2, 2},
       {1, 2, 0}},
      /* Zeros are larger than negative numbers. */
      {POOL(MAXPOOL, ZERO_PAD, false, 3, 2, 1, 1),
       5,
       3,
       {-1, -1, -4, -2, -3},
       {0, -1, 0},
       {0, 0, 2}},
      {POOL(MAXPOOL, EDGE_VAL_PAD, false, 3, 2, 1, 1),
       5,
       3,
       {-1, -2, -4, -2, -3},
       {-1, -2, -2},
       {0, 0, 0}},
      /* NaN. */
      {POOL(MAXPOOL, NEG_INF_PAD, true, 3, 2, 1, 1),
       5,
       3,
       {1, NAN, 5, 2, 2},
       {NAN, NAN, 2},
       {2, 0, 0}},
      {POOL(MAXPOOL, NEG_INF_PAD, false, 3, 2, 1, 1),
       5,
       3,
       {1, NAN, 5, 2, 2},
       {1, 5, 2},
       {1, 1, 0}},
      /* Nothing but padding. */
      {POOL(MAXPOOL, NEG_INF_PAD, false, 2, 2, 2, 0),
       2,
       2,
       {1, 2},
       {-inf, 2},
       {0, 1}},
      {POOL(AVGPOOL_INCLUDE_PADDING, ZERO_PAD, false, 4, 2, 2, 1),
       5,
       3,
       {4, 8, 12, 16, 20},
       {3, 10, 12},
       {0}},
      {POOL(AVGPOOL_EXCLUDE_PADDING, ZERO_PAD, false, 4, 2, 2, 1),
       5,
       3,
       {4, 8, 12, 16, 20},
       {6, 10, 16},
       {0}},
      {POOL(AVGPOOL_INCLUDE_PADDING, EDGE_VAL_PAD, false, 4, 2, 2, 1),
       5,
       3,
       {4, 8, 12, 16, 20},
       {5, 10, 17},
       {0}},
      /* The case that cuDNN documents: twice as large. */
      {POOL(BILINEAR, EDGE_VAL_PAD, false, 2, 0.5, 0.5, 1),
       4,
       8,
       {4, 8, 16, 0},
       {4, 5, 7, 10, 14, 12, 4, 0},
       {0}},
      {POOL(NEAREST, EDGE_VAL_PAD, false, 2, 0.5, 0.5, 1),
       3,
       6,
       {4, 8, 16},
       {4, 4, 8, 8, 16, 16},
       {0}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    row_check(&rows[i], (int)i);
}
END_TEST

/* Pieces of a pooled image with the rows that their windows reach have the bits
 * of the whole, and so do pieces of its gradient. */
START_TEST(a_piece_with_its_halo_has_the_bits_of_the_whole) {
  case_seed((uint64_t)_i);
  bool backward = _i % 2;
  made_resample_t how = {
      .mode = _i / 2 % 2 ? CUDNN_RESAMPLE_MAXPOOL : CUDNN_RESAMPLE_AVGPOOL,
      .padding = _i / 2 % 2 ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD,
      .backward = backward,
      .window = {3, 3},
      .stride = {2, 2},
      .pre = {1, 1},
      .post = {1, 1}};
  const int64_t x[] = {2, 3, 17, 9}, y[] = {2, 3, 9, 5};
  /* Rows [2, 6) of y read rows [3, 12) of x. */
  const int64_t px[] = {2, 3, 9, 9}, py[] = {2, 3, 4, 5};
  double *whole[2], *piece[2];
  made_t m;
  made_create(&m);
  int from = made_real(&m, CUDNN_DATA_FLOAT, 4, x, MADE_CHANNELS);
  int to = made_real(&m, CUDNN_DATA_FLOAT, 4, y, MADE_CHANNELS);
  if (backward)
    made_resample(&m, &how, from, to, -1,
                  made_real(&m, CUDNN_DATA_FLOAT, 4, x, MADE_CHANNELS));
  else
    made_resample(&m, &how, from, to, -1, -1);
  made_run(&m);
  made_t p;
  made_create(&p);
  how.pre[0] = how.post[0] = 0;
  int t[2] = {made_real(&p, CUDNN_DATA_FLOAT, 4, px, MADE_CHANNELS),
              made_real(&p, CUDNN_DATA_FLOAT, 4, py, MADE_CHANNELS)};
  int last =
      backward ? made_real(&p, CUDNN_DATA_FLOAT, 4, px, MADE_CHANNELS) : -1;
  for (int i = 0; i < 3; i++) {
    /* from, to, and x itself */
    int of = i == 0 ? t[0] : i == 1 ? t[1] : last;
    if (of < 0)
      continue;
    const int64_t *all = i == 1 ? y : x, *own = i == 1 ? py : px;
    double *values = made_values(&m, i, true);
    double *part = malloc((size_t)made_count(&p, of) * sizeof *part);
    for (int64_t k = 0; k < made_count(&p, of); k++)
      part[k] = values[(k / own[3] / own[2] * all[2] + k / own[3] % own[2] +
                        (i == 1 ? 2 : 3)) *
                           all[3] +
                       k % own[3]];
    made_fill(&p, of, part);
    free(part);
    free(values);
  }
  made_resample(&p, &how, t[0], t[1], -1, last);
  made_run(&p);
  for (int i = 0; i < 2; i++) {
    whole[i] = made_values(&m, i, false);
    piece[i] = made_values(&p, t[i], false);
  }
  /* Of dx, the rows that no other row of dy reaches: [4, 11). */
  int64_t rows = backward ? 7 : 4, first = backward ? 1 : 0;
  const int64_t *all = backward ? x : y, *own = backward ? px : py;
  for (int64_t c = 0; c < 6; c++)
    for (int64_t row = 0; row < rows; row++)
      ck_assert_mem_eq(piece[!backward] + (c * own[2] + first + row) * own[3],
                       whole[!backward] +
                           (c * all[2] + (backward ? 3 : 2) + first + row) *
                               all[3],
                       (size_t)own[3] * sizeof(double));
  for (int i = 0; i < 2; i++) {
    free(whole[i]);
    free(piece[i]);
  }
  made_destroy(&m);
  made_destroy(&p);
}
END_TEST

START_TEST(what_is_not_computed_is_named) {
  const int64_t x[] = {1, 1, 40, 40}, y[] = {1, 1, 3, 3};
  made_resample_t how = {.mode = CUDNN_RESAMPLE_MAXPOOL,
                         .padding = CUDNN_NEG_INF_PAD,
                         .window = {12, 12},
                         .stride = {14, 14}};
  if (_i == 0) /* 144 positions in an int8 */
    how.window[1] = 12;
  else if (_i == 1)
    how.stride[0] = 1.5;
  else
    how.mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
  made_t m;
  made_create(&m);
  int from = made_real(&m, CUDNN_DATA_FLOAT, 4, x, MADE_DENSE);
  int to = made_real(&m, CUDNN_DATA_FLOAT, 4, y, MADE_DENSE);
  int index = _i == 2 ? -1
                      : made_real(&m, _i ? CUDNN_DATA_INT32 : CUDNN_DATA_INT8,
                                  4, y, MADE_DENSE);
  made_resample(&m, &how, from, to, index, -1);
  ck_assert_ptr_nonnull(host_graph_lacks(&m.graph));
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_resample");
  TCase *tests = tcase_create("resample");
  tcase_add_loop_test(tests, random_resamplings_compute_what_their_nodes_say, 0,
                      BLOCKS);
  tcase_add_test(tests, rows_have_the_numbers_of_their_definition);
  tcase_add_loop_test(tests, a_piece_with_its_halo_has_the_bits_of_the_whole, 0,
                      4);
  tcase_add_loop_test(tests, what_is_not_computed_is_named, 0, 3);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
