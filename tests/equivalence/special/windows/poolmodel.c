// SPDX-License-Identifier: Apache-2.0
// Draws poolings, and computes them by loops in double precision.
#include <math.h>
#include <string.h>

#include "poolcase.h"

int draw_in(uint64_t *state, int lo, int hi) {
  *state =
      *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return lo + (int)((*state >> 33) % (uint64_t)(hi - lo + 1));
}

static void cuts_draw(uint64_t *state, int extent, int pieces, bool empty,
                      int *cut) {
  cut[0] = 0;
  for (int i = 1; i < pieces; i++)
    cut[i] = draw_in(state, cut[i - 1] + !empty,
                     empty ? extent : extent - (pieces - i));
  cut[pieces] = extent;
}

bool pool_merges(const pool_t *p, int d) {
  return p->global && d >= 2 && p->pieces[d] > 1;
}

// y's cuts follow the windows' centres, unless the program says its own.
static bool cuts_make(uint64_t *state, bool whole, pool_t *p) {
  for (int d = 0; d < DIMS; d++) {
    int n = p->pieces[d];
    if (p->x[d] < n && !whole)
      return false;
    cuts_draw(state, p->x[d], n, whole, p->x_cut[d]);
    int k = d < 2 ? 1 : p->window[d - 2], s = d < 2 ? 1 : p->stride[d - 2];
    int pad = d < 2 ? 0 : p->pad[d - 2];
    p->y_cut[d][0] = 0;
    for (int i = 1; i < n; i++) {
      int room = p->x_cut[d][i] + pad - (k - 1) / 2 + s - 1;
      int cut = room < 0 ? 0 : room / s;
      p->y_cut[d][i] = cut > p->y[d] ? p->y[d] : cut;
    }
    p->y_cut[d][n] = p->y[d];
    if (p->own_sizes && d >= 2 && p->y[d] >= n)
      cuts_draw(state, p->y[d], n, whole, p->y_cut[d]);
    for (int i = 0; i < n && !whole && !pool_merges(p, d); i++)
      if (p->y_cut[d][i] >= p->y_cut[d][i + 1])
        return false;
  }
  return true;
}

bool pool_draw(uint64_t *state, const int *pieces, int spatial, bool whole,
               const char *special, pool_t *p) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
  static const double scales[][2] = {{1, 0}, {1, 0}, {0.5, 0}, {2, 0.5}};
  memset(p, 0, sizeof *p);
  p->mode = (cudnnPoolingMode_t)draw_in(state, 0, 3);
  p->nan = draw_in(state, 0, 1) ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN;
  p->type = types[draw_in(state, 0, 3)];
  p->wrap = strcmp(special, "wrap") == 0;
  p->global = strcmp(special, "global") == 0;
  p->own_sizes = !whole && draw_in(state, 0, 3) == 0;
  p->layout = draw_in(state, 0, 2);
  const double *scale = scales[draw_in(state, 0, 3)];
  p->alpha = scale[0];
  p->beta = scale[1];
  for (int d = 0; d < DIMS; d++) {
    p->pieces[d] = pieces[d];
    int least = whole ? 1 : pieces[d];
    p->x[d] = draw_in(state, least,
                      d < 2           ? pieces[d] + 1
                      : pieces[d] > 1 ? 18
                                      : 7);
  }
  for (int i = 0; i < 3; i++) {
    bool there = i >= 3 - spatial;
    p->window[i] = there ? draw_in(state, 1, 5) : 1;
    p->stride[i] = there ? draw_in(state, 1, 4) : 1;
    p->pad[i] = draw_in(state, 0, p->window[i] - 1);
    p->x[i + 2] = there ? p->x[i + 2] : 1;
    if (pool_merges(p, i + 2)) {
      p->window[i] = p->x[i + 2];
      p->pad[i] = 0;
    }
    int room = p->x[i + 2] + 2 * p->pad[i] - p->window[i];
    if (room < 0)
      return false;
    p->y[i + 2] = room / p->stride[i] + 1;
  }
  // One element on every rank is refused: it may be the same one.
  bool single = pieces[2] * pieces[3] * pieces[4] > 1;
  for (int d = 2; d < DIMS; d++)
    single &= p->x[d] <= pieces[d] && p->y[d] <= pieces[d];
  if (single && !whole)
    return false;
  // By chance over all of it: a mean of pieces' means has other bits.
  bool fills = true;
  for (int d = 2; d < DIMS; d++)
    fills &= pieces[d] == 1 || (p->window[d - 2] == p->x[d] && !p->pad[d - 2]);
  if (fills && whole && !p->global && pieces[2] * pieces[3] * pieces[4] > 1)
    return false;
  p->y[0] = p->x[0];
  p->y[1] = p->x[1];
  p->seed = (uint32_t)draw_in(state, 0, 1 << 30);
  return cuts_make(state, whole, p);
}

// Few different numbers: maxima are often equal.
double pool_value(const pool_t *p, char tensor, const int *at) {
  uint32_t hash = p->seed + (uint32_t)tensor * 7919u;
  for (int d = 0; d < DIMS; d++)
    hash = (hash ^ (uint32_t)at[d]) * 16777619u + 12345u;
  hash ^= hash >> 15;
  hash *= 2246822519u;
  hash ^= hash >> 13;
  if (tensor == 'x' && p->seed % 4 == 0 && hash % 23 == 0)
    return NAN;
  return (double)((int)(hash >> 8) % 17 - 8) * 0.25;
}

typedef struct {
  int lo[3], hi[3]; // rows that count
  double divisor;
} reach_t;

static reach_t reach_of(const pool_t *p, const int *at) {
  reach_t r = {.divisor = 1};
  for (int i = 0; i < 3; i++) {
    bool periodic = p->wrap && i == 1;
    int lo = at[i + 2] * p->stride[i] - p->pad[i], hi = lo + p->window[i];
    r.lo[i] = lo < 0 && !periodic ? 0 : lo;
    r.hi[i] = hi > p->x[i + 2] && !periodic ? p->x[i + 2] : hi;
    r.divisor *= p->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                     ? p->window[i]
                     : r.hi[i] - r.lo[i];
  }
  return r;
}

static bool is_max(const pool_t *p) {
  return p->mode == CUDNN_POOLING_MAX ||
         p->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

static int fold(int i, int n) {
  return (i % n + n) % n;
}

// The sum under a window, or its maximum, of which `best` says where it is.
static double scan(const pool_t *p, const int *at, int *best) {
  reach_t r = reach_of(p, at);
  double sum = 0, most = -INFINITY;
  bool found = false, is_nan = false;
  for (int d = r.lo[0]; d < r.hi[0]; d++)
    for (int h = r.lo[1]; h < r.hi[1]; h++)
      for (int w = r.lo[2]; w < r.hi[2]; w++) {
        int from[DIMS] = {at[0], at[1], d, fold(h, p->x[3]), w};
        double value = pool_value(p, 'x', from);
        sum += value;
        bool counts = !isnan(value) || p->nan == CUDNN_PROPAGATE_NAN;
        if (!counts || is_nan || (found && !isnan(value) && value <= most))
          continue;
        found = true;
        is_nan = isnan(value);
        most = value;
        memcpy(best, from, sizeof from);
      }
  if (!found)
    best[0] = -1;
  return is_max(p) ? most : sum / r.divisor;
}

double pool_forward(const pool_t *p, const int *at) {
  int best[DIMS];
  return scan(p, at, best);
}

double pool_backward(const pool_t *p, const int *at) {
  int o[DIMS] = {at[0], at[1]};
  double sum = 0;
  for (o[2] = 0; o[2] < p->y[2]; o[2]++)
    for (o[3] = 0; o[3] < p->y[3]; o[3]++)
      for (o[4] = 0; o[4] < p->y[4]; o[4]++) {
        reach_t r = reach_of(p, o);
        int sees = 1, best[DIMS];
        for (int i = 0; i < 3; i++) {
          int times = 0;
          for (int j = r.lo[i]; j < r.hi[i]; j++)
            times += fold(j, p->x[i + 2]) == at[i + 2];
          sees *= times;
        }
        if (!sees)
          continue;
        double dy = pool_value(p, 'd', o);
        if (!is_max(p)) {
          sum += sees * dy / r.divisor;
          continue;
        }
        (void)scan(p, o, best);
        if (memcmp(best, at, sizeof best) == 0)
          sum += dy;
      }
  return sum;
}

int type_bytes(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

double type_epsilon(cudnnDataType_t type) {
  return ldexp(1, type == CUDNN_DATA_DOUBLE  ? -53
                  : type == CUDNN_DATA_FLOAT ? -24
                  : type == CUDNN_DATA_HALF  ? -11
                                             : -8);
}

double type_get(cudnnDataType_t type, const void *from) {
  double d;
  float f;
  uint16_t bits;
  if (type == CUDNN_DATA_DOUBLE)
    return memcpy(&d, from, sizeof d), d;
  if (type == CUDNN_DATA_FLOAT)
    return memcpy(&f, from, sizeof f), (double)f;
  memcpy(&bits, from, sizeof bits);
  if (type == CUDNN_DATA_BFLOAT16) {
    uint32_t wide = (uint32_t)bits << 16;
    return memcpy(&f, &wide, sizeof f), (double)f;
  }
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  d = exponent == 31  ? (fraction ? NAN : INFINITY)
      : exponent == 0 ? ldexp(fraction, -24)
                      : ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -d : d;
}

// Values of few bits, which need no rounding.
void type_put(cudnnDataType_t type, double value, void *to) {
  float f = (float)value;
  if (type == CUDNN_DATA_DOUBLE) {
    memcpy(to, &value, sizeof value);
  } else if (type == CUDNN_DATA_FLOAT) {
    memcpy(to, &f, sizeof f);
  } else {
    uint32_t wide;
    memcpy(&wide, &f, sizeof wide);
    uint16_t bits = (uint16_t)(wide >> 16);
    if (type == CUDNN_DATA_HALF)
      bits =
          (uint16_t)(isnan(value) ? 0x7e00u
                     : value == 0 ? 0u
                                  : (wide >> 31 << 15) |
                                        (((wide >> 23 & 255u) - 112u) << 10) |
                                        (wide >> 13 & 1023u));
    memcpy(to, &bits, sizeof bits);
  }
}
