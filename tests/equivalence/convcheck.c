/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what convcase wrote: the pieces against the whole and against a
 * float64 reference.
 *
 * usage: convcheck exact|close CASES WHOLE PIECE...
 *        one PIECE per rank, in order. Per case one line: its number from 0,
 *        then "ok" or what is wrong. exact: the pieces must also be bit for
 *        bit the whole one. Exits with 1 where a case is wrong. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

/* The c of |sharded - f64| <= 2 |one - f64| + c eps sum |terms|; and of
 * |one - f64| <= c eps sum |terms|, which rounding alone does not reach. */
static const double slack = 4, one_slack = 64;

typedef struct {
  int32_t status;
  case_box_t box;
  float *values;
} piece_t;

static int read_piece(FILE *file, piece_t *out) {
  if (fread(&out->status, sizeof out->status, 1, file) != 1 ||
      fread(out->box.extent, sizeof(int), CASE_DIMS, file) != CASE_DIMS)
    return 0;
  if (out->status != 0)
    return 1;
  size_t count = (size_t)case_count(out->box);
  out->values = malloc(count * sizeof(float));
  return out->values && fread(out->values, sizeof(float), count, file) == count;
}

/* The sums of an output element's terms: as they are, and of magnitudes. */
typedef struct {
  double value, terms;
} exact_t;

static void add_term(exact_t *sum, double term) {
  sum->value += term;
  sum->terms += fabs(term);
}

/* Values of a whole tensor, drawn once per case. */
static float *tensor(const case_t *c, case_tensor_t which,
                     const int size[CASE_DIMS]) {
  case_box_t box;
  memcpy(box.extent, size, sizeof box.extent);
  int64_t count = case_count(box);
  float *values = malloc((size_t)count * sizeof(float));
  if (!values)
    abort();
  int at[CASE_DIMS] = {0};
  for (int64_t i = 0; i < count; i++) {
    values[i] = case_value(c, which, at, size);
    for (int d = CASE_DIMS - 1; d >= 0 && ++at[d] == size[d]; d--)
      at[d] = 0;
  }
  return values;
}

typedef struct {
  const case_t *c;
  int y_size[CASE_DIMS], bias_size[CASE_DIMS];
  float *x, *w;
} reference_t;

/* The convolution at output index `o` of channel block `group`. */
static void convolve(const reference_t *f, const int o[CASE_DIMS],
                     exact_t *sum) {
  const case_t *c = f->c;
  int channels = c->size[1] / c->groups;
  int group = o[1] / (c->outputs / c->groups);
  int taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
  for (int t = 0; t < taps; t++) {
    int tap[3] = {t / (c->kernel[1] * c->kernel[2]),
                  t / c->kernel[2] % c->kernel[1], t % c->kernel[2]};
    int at[3], inside = 1;
    for (int i = 0; i < 3; i++) {
      at[i] = o[2 + i] * c->stride[i] - c->pad[i] + tap[i] * c->dilation[i];
      inside &= at[i] >= 0 && at[i] < c->size[2 + i];
    }
    if (!inside)
      continue;
    /* cuDNN's CONVOLUTION turns the filter round. */
    int where = c->flipped ? taps - 1 - t : t;
    for (int k = 0; k < channels; k++) {
      size_t xi = (size_t)o[0];
      xi = xi * (size_t)c->size[1] + (size_t)(group * channels + k);
      for (int i = 0; i < 3; i++)
        xi = xi * (size_t)c->size[2 + i] + (size_t)at[i];
      size_t wi = ((size_t)o[1] * (size_t)channels + (size_t)k) * (size_t)taps +
                  (size_t)where;
      add_term(sum, (double)f->x[xi] * (double)f->w[wi]);
    }
  }
}

static exact_t reference(const reference_t *f, const int o[CASE_DIMS]) {
  const case_t *c = f->c;
  exact_t sum = {0};
  convolve(f, o, &sum);
  sum.value *= (double)c->alpha;
  sum.terms *= fabs((double)c->alpha);
  case_tensor_t old = c->op == CASE_CONV || c->z_is_y ? CASE_Y : CASE_Z;
  add_term(&sum, (double)c->beta * (double)case_value(c, old, o, f->y_size));
  if (c->op != CASE_CONV) {
    int at[CASE_DIMS] = {0, o[1], 0, 0, 0};
    add_term(&sum, (double)case_value(c, CASE_BIAS, at, f->bias_size));
  }
  if (c->op == CASE_BIAS_RELU && sum.value < 0)
    sum.value = 0;
  return sum;
}

static size_t linear(const int at[CASE_DIMS], const int extent[CASE_DIMS]) {
  size_t index = 0;
  for (int d = 0; d < CASE_DIMS; d++)
    index = index * (size_t)extent[d] + (size_t)at[d];
  return index;
}

/* Checks every element of one piece; prints and returns 0 at the first that
 * is wrong. */
static int judge(const reference_t *f, const piece_t *whole,
                 const piece_t *piece, int rank, int exact) {
  int at[CASE_DIMS] = {0};
  int64_t count = case_count(piece->box);
  for (int64_t i = 0; i < count; i++) {
    int o[CASE_DIMS];
    for (int d = 0; d < CASE_DIMS; d++)
      o[d] = piece->box.first[d] + at[d];
    double one = (double)whole->values[linear(o, whole->box.extent)];
    double found = (double)piece->values[i];
    exact_t right = reference(f, o);
    double rounding = (double)FLT_EPSILON * right.terms;
    double most = piece == whole
                      ? one_slack * rounding
                      : 2 * fabs(one - right.value) + slack * rounding;
    if (!(fabs(found - right.value) <= most) || (exact && found != one)) {
      printf("rank %d, y[%d,%d,%d,%d,%d] is %.9g, on one rank %.9g, in float64 "
             "%.9g\n",
             rank, o[0], o[1], o[2], o[3], o[4], found, one, right.value);
      return 0;
    }
    for (int d = CASE_DIMS - 1; d >= 0 && ++at[d] == piece->box.extent[d]; d--)
      at[d] = 0;
  }
  return 1;
}

static int judge_case(const case_t *c, piece_t *whole, piece_t *pieces,
                      int ranks, int exact) {
  if (whole->status != 0) {
    printf("one rank got status %d\n", whole->status);
    return 0;
  }
  for (int r = 0; r < ranks; r++) {
    if (pieces[r].status != 0) {
      printf("rank %d got status %d\n", r, pieces[r].status);
      return 0;
    }
    case_box_t box = case_y(c, r);
    if (memcmp(box.extent, pieces[r].box.extent, sizeof box.extent) != 0) {
      const int *e = pieces[r].box.extent, *b = box.extent;
      printf("rank %d has an output of %d,%d,%d,%d,%d, not %d,%d,%d,%d,%d\n", r,
             e[0], e[1], e[2], e[3], e[4], b[0], b[1], b[2], b[3], b[4]);
      return 0;
    }
    pieces[r].box = box;
  }
  reference_t f = {.c = c, .bias_size = {1, c->outputs, 1, 1, 1}};
  int w_size[CASE_DIMS] = {c->outputs, c->size[1] / c->groups, c->kernel[0],
                           c->kernel[1], c->kernel[2]};
  case_box_t y = case_y(c, -1);
  memcpy(f.y_size, y.extent, sizeof f.y_size);
  f.x = tensor(c, CASE_X, c->size);
  f.w = tensor(c, CASE_W, w_size);
  int good = judge(&f, whole, whole, -1, 0);
  for (int r = 0; r < ranks && good; r++)
    good = judge(&f, whole, &pieces[r], r, exact);
  free(f.x);
  free(f.w);
  if (good)
    printf("ok\n");
  return good;
}

int main(int argc, char **argv) {
  int ranks = argc - 4;
  if (ranks < 1 || ranks > CASE_PIECES) {
    fprintf(stderr, "usage: convcheck exact|close CASES WHOLE PIECE...\n");
    return 2;
  }
  FILE *cases = fopen(argv[2], "r"), *whole_file = fopen(argv[3], "rb");
  FILE *files[CASE_PIECES] = {0};
  for (int r = 0; r < ranks; r++)
    files[r] = fopen(argv[4 + r], "rb");
  if (!cases)
    return 2;
  int wrong = 0, number = 0;
  for (char line[4096]; fgets(line, sizeof line, cases); number++) {
    case_t c;
    piece_t whole = {0}, pieces[CASE_PIECES] = {0};
    if (case_read(line, &c))
      return 2;
    printf("%d ", number);
    int whole_there = whole_file && read_piece(whole_file, &whole),
        missing = -1;
    for (int r = 0; r < ranks; r++)
      if (!files[r] || !read_piece(files[r], &pieces[r]))
        missing = missing < 0 ? r : missing;
    if (!whole_there || missing >= 0) {
      printf("no output of %s\n", whole_there ? "a piece" : "the whole");
      wrong++;
    } else {
      wrong +=
          !judge_case(&c, &whole, pieces, ranks, strcmp(argv[1], "exact") == 0);
    }
    free(whole.values);
    for (int r = 0; r < ranks; r++)
      free(pieces[r].values);
  }
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
