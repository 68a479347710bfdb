// SPDX-License-Identifier: Apache-2.0
// Random convolutions for the tests of the engines.
#include "tests/host/cudnn/case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

void case_seed(uint64_t seed) {
  state = 88172645463325252u + seed * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 4; i++)
    case_range(0, 1);
}

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state >> 16;
}

int case_range(int low, int high) {
  return low + (int)(next() % (uint64_t)(high - low + 1));
}

double case_real(void) {
  return (double)(next() & 0xffffff) / 0x800000 - 1;
}

static void put(void *to, bool is_double, int64_t i, double value) {
  if (is_double)
    ((double *)to)[i] = value;
  else
    ((float *)to)[i] = (float)value;
}

static double get(const void *from, bool is_double, int64_t i) {
  return is_double ? ((const double *)from)[i] : ((const float *)from)[i];
}

/* Draws strides: a random order of dimensions with random gaps; channels first,
 * last and other orders are equally likely. Returns the elements spanned. */
static int64_t lay_out(const int64_t extent[5], int64_t stride[5]) {
  int order[5] = {0, 1, 2, 3, 4}, kind = case_range(0, 3);
  if (kind == 1) { /* N D H W C */
    int last[5] = {0, 2, 3, 4, 1};
    memcpy(order, last, sizeof order);
  } else if (kind == 2) {
    for (int i = 4; i > 0; i--) {
      int j = case_range(0, i), keep = order[i];
      order[i] = order[j];
      order[j] = keep;
    }
  }
  bool gaps = case_range(0, 2) == 0;
  int64_t at = gaps ? case_range(1, 2) : 1;
  for (int i = 4; i >= 0; i--) {
    stride[order[i]] = at;
    at *= extent[order[i]];
    at += gaps ? case_range(0, 3) : 0;
  }
  return at;
}

static void *fill(int64_t elements, bool is_double) {
  void *memory = malloc((size_t)elements * sizeof(double) + 64);
  for (int64_t i = 0; i < elements; i++)
    put(memory, is_double, i, case_real());
  return memory;
}

static void extents_of(const host_conv_t *conv, int64_t x[5], int64_t w[5],
                       int64_t y[5]) {
  x[0] = y[0] = conv->images;
  x[1] = (int64_t)conv->groups * conv->c;
  y[1] = w[0] = (int64_t)conv->groups * conv->k;
  w[1] = conv->c;
  for (int i = 0; i < 3; i++) {
    x[2 + i] = conv->in[i];
    w[2 + i] = conv->window[i];
    y[2 + i] = conv->out[i];
  }
}

void case_create(host_conv_t *conv, bool is_double, int max_channels,
                 int max_extent) {
  memset(conv, 0, sizeof *conv);
  conv->is_double = is_double;
  conv->images = case_range(1, 3);
  conv->groups = case_range(0, 2) ? 1 : case_range(2, 5);
  conv->c = case_range(1, max_channels);
  conv->k = case_range(1, max_channels);
  if (case_range(0, 5) == 0)
    conv->c = conv->k = 1;              /* depthwise, or a plain stencil */
  int first = case_range(0, 3) ? 1 : 0; /* mostly two dimensions */
  for (int i = 0; i < 3; i++) {
    bool used = i >= first && (i == 1 || case_range(0, 9));
    conv->window[i] = used ? case_range(1, i == 0 ? 3 : 5) : 1;
    conv->stride[i] = used && case_range(0, 1) ? case_range(1, 3) : 1;
    conv->dilation[i] = used && case_range(0, 2) == 0 ? case_range(1, 3) : 1;
    int64_t reach = (int64_t)conv->dilation[i] * (conv->window[i] - 1) + 1;
    conv->pad[i] = used && case_range(0, 2) ? case_range(0, 4) : 0;
    conv->in[i] = used ? case_range(1, max_extent) : 1;
    if (conv->in[i] + 2 * conv->pad[i] < reach)
      conv->in[i] = reach;
    conv->out[i] =
        (conv->in[i] + 2 * conv->pad[i] - reach) / conv->stride[i] + 1;
  }
  conv->flip = case_range(0, 1);
  conv->alpha = case_range(0, 1) ? 1 : case_real();
  conv->gamma = case_range(0, 1) ? 0 : case_real();
  conv->relu = case_range(0, 2) == 0;
  int64_t x[5], w[5], y[5];
  extents_of(conv, x, w, y);
  conv->x = fill(lay_out(x, conv->x_stride), is_double);
  conv->w = fill(lay_out(w, conv->w_stride), is_double);
  int64_t span = lay_out(y, conv->y_stride);
  conv->y = malloc((size_t)span * sizeof(double));
  if (case_range(0, 1)) {
    memcpy(conv->old_stride, conv->y_stride, sizeof conv->old_stride);
    conv->old = fill(span, is_double);
  } else {
    conv->old = fill(lay_out(y, conv->old_stride), is_double);
  }
  if (case_range(0, 2) == 0)
    conv->bias = fill(y[1], is_double);
  case_reset(conv);
}

void case_destroy(host_conv_t *conv) {
  free((void *)conv->x);
  free((void *)conv->w);
  free((void *)conv->old);
  free((void *)conv->bias);
  free(conv->y);
}

int64_t case_y_elements(const host_conv_t *conv) {
  int64_t x[5], w[5], y[5], elements = 1;
  extents_of(conv, x, w, y);
  for (int i = 0; i < 5; i++)
    elements += (y[i] - 1) * conv->y_stride[i];
  return elements;
}

void case_reset(host_conv_t *conv) {
  for (int64_t i = 0, n = case_y_elements(conv); i < n; i++)
    put(conv->y, conv->is_double, i, NAN);
}

static int64_t offset(const int64_t stride[5], const int64_t at[5]) {
  int64_t sum = 0;
  for (int i = 0; i < 5; i++)
    sum += stride[i] * at[i];
  return sum;
}

/* Computes one output and, for the tolerance, the sum of its absolute terms. */
static double loop(const host_conv_t *conv, const int64_t at[5],
                   double *out_terms) {
  double sum = 0, terms = 0;
  int64_t group = at[1] / conv->k;
  const int *n = conv->window;
  for (int64_t c = 0; c < conv->c; c++)
    for (int d = 0; d < n[0]; d++)
      for (int h = 0; h < n[1]; h++)
        for (int w = 0; w < n[2]; w++) {
          const int64_t tap[3] = {d, h, w};
          int64_t x[5] = {at[0], group * conv->c + c}, f[5] = {at[1], c};
          bool inside = true;
          for (int i = 0; i < 3; i++) {
            x[2 + i] = at[2 + i] * conv->stride[i] - conv->pad[i] +
                       tap[i] * conv->dilation[i];
            f[2 + i] = conv->flip ? n[i] - 1 - tap[i] : tap[i];
            inside &= x[2 + i] >= 0 && x[2 + i] < conv->in[i];
          }
          if (!inside)
            continue;
          double term =
              get(conv->x, conv->is_double, offset(conv->x_stride, x)) *
              get(conv->w, conv->is_double, offset(conv->w_stride, f));
          sum += term;
          terms += fabs(term);
        }
  *out_terms = terms;
  return sum;
}

static bool next_point(const int64_t extent[5], int64_t at[5]) {
  int d = 4;
  while (d >= 0 && ++at[d] == extent[d])
    at[d--] = 0;
  return d >= 0;
}

void case_load_old(host_conv_t *conv) {
  int64_t x[5], w[5], y[5], at[5] = {0};
  extents_of(conv, x, w, y);
  do {
    put(conv->y, conv->is_double, offset(conv->y_stride, at),
        get(conv->old, conv->is_double, offset(conv->old_stride, at)));
  } while (next_point(y, at));
  free((void *)conv->old);
  size_t bytes = (size_t)case_y_elements(conv) * sizeof(double);
  void *old = malloc(bytes);
  memcpy(old, conv->y,
         (size_t)case_y_elements(conv) *
             (conv->is_double ? sizeof(double) : sizeof(float)));
  conv->old = old;
  memcpy(conv->old_stride, conv->y_stride, sizeof conv->old_stride);
}

int64_t case_wrong(const host_conv_t *conv) {
  int64_t x[5], w[5], y[5], elements = case_y_elements(conv);
  extents_of(conv, x, w, y);
  char *written = calloc((size_t)elements, 1);
  int64_t wrong = -1;
  double eps = conv->is_double ? DBL_EPSILON : FLT_EPSILON;
  int64_t at[5] = {0};
  do {
    double terms;
    double want = conv->alpha * loop(conv, at, &terms);
    terms = fabs(conv->alpha) * terms;
    if (conv->gamma != 0) {
      double old = conv->gamma * get(conv->old, conv->is_double,
                                     offset(conv->old_stride, at));
      want += old;
      terms += fabs(old);
    }
    if (conv->bias) {
      want += get(conv->bias, conv->is_double, at[1]);
      terms += fabs(get(conv->bias, conv->is_double, at[1]));
    }
    if (conv->relu && want < 0)
      want = 0;
    int64_t i = offset(conv->y_stride, at);
    double have = get(conv->y, conv->is_double, i);
    written[i] = 1;
    if (!(fabs(have - want) <= eps * (4 + sqrt((double)conv->c * 25)) * terms))
      wrong = wrong < 0 ? i : wrong;
  } while (next_point(y, at));
  for (int64_t i = 0; i < elements && wrong < 0; i++)
    if (!written[i] && !isnan(get(conv->y, conv->is_double, i)))
      wrong = i;
  free(written);
  return wrong;
}

const char *case_text(const host_conv_t *conv) {
  static char text[512];
  const host_conv_t *c = conv;
  snprintf(text, sizeof text,
           "n%d g%d c%d k%d in %ldx%ldx%ld window %dx%dx%d stride %dx%dx%d "
           "dilation %dx%dx%d pad %dx%dx%d x stride %ld,%ld,%ld,%ld,%ld",
           c->images, c->groups, c->c, c->k, c->in[0], c->in[1], c->in[2],
           c->window[0], c->window[1], c->window[2], c->stride[0], c->stride[1],
           c->stride[2], c->dilation[0], c->dilation[1], c->dilation[2],
           c->pad[0], c->pad[1], c->pad[2], c->x_stride[0], c->x_stride[1],
           c->x_stride[2], c->x_stride[3], c->x_stride[4]);
  return text;
}
