// SPDX-License-Identifier: Apache-2.0
// Sums and maps along rows: their values, equal bits with every instruction
// set, and equal bits for a piece of a row and for the whole row.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/rows.h"
#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

enum { LONGEST = 200, ROWS = 5 }; /* x, with, gate, out, through */

typedef union {
  float f[ROWS][LONGEST];
  double d[ROWS][LONGEST];
} room_t;

/* The instruction sets that the processor supports, the plain one first. */
static int variants(bool is_double, const host_rows_t **out) {
  int count = 0;
  out[count++] = is_double ? &host_rows_double_base : &host_rows_float_base;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2"))
    out[count++] = is_double ? &host_rows_double_avx2 : &host_rows_float_avx2;
  if (__builtin_cpu_supports("avx512f"))
    out[count++] =
        is_double ? &host_rows_double_avx512 : &host_rows_float_avx512;
#endif
  return count;
}

static void fill(room_t *room, bool is_double) {
  memset(room, 0, sizeof *room);
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < LONGEST; i++)
      if (is_double)
        room->d[r][i] = case_real();
      else
        room->f[r][i] = (float)case_real();
}

static void *at(room_t *room, bool is_double, int r, int64_t i) {
  return is_double ? (void *)&room->d[r][i] : (void *)&room->f[r][i];
}

static double value(const room_t *room, bool is_double, int r, int64_t i) {
  return is_double ? room->d[r][i] : (double)room->f[r][i];
}

static host_row_t draw(void) {
  host_row_t row = {.mean = case_real(),
                    .slope = case_real(),
                    .offset = case_real(),
                    .curve = case_real(),
                    .alpha = case_range(0, 1) ? 1 : case_real(),
                    .beta = case_range(0, 1) ? 0 : case_real(),
                    .relu = case_range(0, 1),
                    .subtract = case_range(0, 1)};
  row.count = case_range(0, LONGEST - 8);
  return row;
}

/* Which optional rows are given: with, gate, through. */
static void point(host_row_t *row, room_t *room, bool is_double, int64_t first,
                  int have) {
  row->x = at(room, is_double, 0, first);
  row->with = have & 1 ? at(room, is_double, 1, first) : NULL;
  row->gate = have & 2 ? at(room, is_double, 2, first) : NULL;
  row->out = at(room, is_double, 3, first);
  row->through = have & 4 ? at(room, is_double, 4, first) : NULL;
}

static void near_to(double have, double want, double terms, bool is_double) {
  double eps = is_double ? 0x1p-52 : 0x1p-23;
  ck_assert_msg(fabs(have - want) <= 8 * eps * terms, "%.17g, not %.17g", have,
                want);
}

static void map_case(bool is_double) {
  const host_rows_t *rows[3];
  int count = variants(is_double, rows), have = case_range(0, 1);
  int64_t first = case_range(0, 7);
  room_t before, whole, other;
  fill(&before, is_double);
  whole = before;
  host_row_t row = draw();
  point(&row, &whole, is_double, first, have);
  rows[0]->map(&row);
  for (int64_t i = first; i < first + row.count; i++) {
    double x = value(&before, is_double, 0, i) - row.mean;
    double with = have & 1 ? value(&before, is_double, 1, i) : 0;
    double old = value(&before, is_double, 3, i);
    double f = row.slope * x + row.offset + with;
    near_to(value(&whole, is_double, 3, i),
            row.alpha * (row.relu ? fmax(f, 0) : f) + row.beta * old,
            fabs(row.slope * x) + fabs(row.offset) + fabs(with) + fabs(old),
            is_double);
  }
  for (int v = 0; v < count; v++) { /* in two pieces */
    host_row_t piece = row;
    int64_t cut = row.count ? case_range(0, (int)row.count) : 0;
    other = before;
    piece.count = cut;
    point(&piece, &other, is_double, first, have);
    rows[v]->map(&piece);
    piece.count = row.count - cut;
    point(&piece, &other, is_double, first + cut, have);
    rows[v]->map(&piece);
    ck_assert(memcmp(&other, &whole, sizeof whole) == 0);
  }
}

static void gradient_case(bool is_double) {
  const host_rows_t *rows[3];
  int count = variants(is_double, rows), have = 1 + 2 * case_range(0, 3);
  int64_t first = case_range(0, 7);
  room_t before, whole, other;
  fill(&before, is_double);
  whole = before;
  host_row_t row = draw();
  double sum[2] = {1, 2}, product[2] = {3, 4}, found = 1, found_product = 3;
  point(&row, &whole, is_double, first, have);
  rows[0]->sums(&row, &sum[0], &product[0]);
  rows[0]->gradient(&row);
  for (int64_t i = first; i < first + row.count; i++) {
    double x = value(&before, is_double, 0, i) - row.mean;
    double dy = value(&before, is_double, 1, i);
    double old = value(&before, is_double, 3, i);
    if (have & 2 && value(&before, is_double, 2, i) <= 0)
      dy = 0;
    if (have & 4)
      ck_assert(value(&whole, is_double, 4, i) == dy);
    found += dy;
    found_product += dy * x;
    near_to(value(&whole, is_double, 3, i),
            row.alpha * row.slope * (dy - row.offset - row.curve * x) +
                row.beta * old,
            fabs(dy) + fabs(row.offset) + fabs(row.curve * x) + fabs(old),
            is_double);
  }
  near_to(sum[0], found, LONGEST, true);
  near_to(product[0], found_product, LONGEST, true);
  for (int v = 0; v < count; v++) {
    other = before;
    sum[1] = 1;
    product[1] = 3;
    point(&row, &other, is_double, first, have);
    rows[v]->sums(&row, &sum[1], &product[1]);
    rows[v]->gradient(&row);
    ck_assert(memcmp(&other, &whole, sizeof whole) == 0);
    ck_assert(sum[0] == sum[1] && product[0] == product[1]);
  }
}

static void sums_case(bool is_double) {
  const host_rows_t *rows[3];
  int count = variants(is_double, rows);
  room_t room;
  host_row_t row = draw();
  double sum = 0, squares = 0;
  fill(&room, is_double);
  const void *x = at(&room, is_double, 0, 3);
  for (int64_t i = 3; i < 3 + row.count; i++) {
    double away = value(&room, is_double, 0, i) - row.mean;
    sum += value(&room, is_double, 0, i);
    squares += away * away;
  }
  near_to(rows[0]->sum(x, row.count), sum, LONGEST, true);
  near_to(rows[0]->squares(x, row.count, row.mean), squares, 4 * LONGEST, true);
  for (int v = 1; v < count; v++) {
    ck_assert(rows[v]->sum(x, row.count) == rows[0]->sum(x, row.count));
    ck_assert(rows[v]->squares(x, row.count, row.mean) ==
              rows[0]->squares(x, row.count, row.mean));
  }
}

START_TEST(rows_are_what_they_say_with_the_same_bits_everywhere) {
  for (int i = 0; i < 600; i++) {
    case_seed((uint64_t)i);
    map_case(i % 2);
    gradient_case(i % 2);
    sums_case(i % 2);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn rows");
  TCase *cases = tcase_create("rows");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, rows_are_what_they_say_with_the_same_bits_everywhere);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
