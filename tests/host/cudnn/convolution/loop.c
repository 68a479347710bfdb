// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients by loops over doubles.
#include "tests/host/cudnn/convolution/loop.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"

static size_t unit(const part_t *p) {
  return p->type == CUDNN_DATA_DOUBLE  ? sizeof(double)
         : p->type == CUDNN_DATA_FLOAT ? sizeof(float)
                                       : sizeof(uint16_t);
}

size_t part_bytes(const part_t *p) {
  return (size_t)p->span * unit(p);
}

/* Two-byte types are the high half of a float, or have 5 bits of exponent. */
static double get(const part_t *p, int64_t i) {
  uint16_t bits;
  float value;
  switch ((int)p->type) {
  case CUDNN_DATA_DOUBLE:
    return ((double *)p->data)[i];
  case CUDNN_DATA_FLOAT:
    return ((float *)p->data)[i];
  }
  bits = ((uint16_t *)p->data)[i];
  if (p->type == CUDNN_DATA_BFLOAT16) {
    uint32_t wide = (uint32_t)bits << 16;
    memcpy(&value, &wide, sizeof value);
    return value;
  }
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double size = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                               : ldexp(mantissa, -24);
  return bits >> 15 ? -size : size;
}

/* Converts -1 .. 1, infinities and NaN to the type, by dropping digits. */
static void put(part_t *p, int64_t i, double value) {
  float f = (float)value;
  uint32_t wide;
  int exponent;
  switch ((int)p->type) {
  case CUDNN_DATA_DOUBLE:
    ((double *)p->data)[i] = value;
    return;
  case CUDNN_DATA_FLOAT:
    ((float *)p->data)[i] = f;
    return;
  case CUDNN_DATA_BFLOAT16:
    memcpy(&wide, &f, sizeof wide);
    ((uint16_t *)p->data)[i] = (uint16_t)(wide >> 16);
    return;
  }
  double mantissa = frexp(fabs(value), &exponent);
  unsigned bits = isnan(value)      ? 0x7fff
                  : isinf(value)    ? 0x7c00
                  : exponent <= -13 ? 0
                                    : ((unsigned)(exponent + 14) << 10 |
                                       ((unsigned)(mantissa * 2048) & 1023));
  ((uint16_t *)p->data)[i] = (uint16_t)(bits | (signbit(value) ? 0x8000u : 0));
}

static bool next(const int64_t extent[5], int64_t at[5]) {
  int d = 4;
  while (d >= 0 && ++at[d] == extent[d])
    at[d--] = 0;
  return d >= 0;
}

static int64_t offset(const int64_t stride[5], const int64_t at[5]) {
  int64_t sum = 0;
  for (int i = 0; i < 5; i++)
    sum += stride[i] * at[i];
  return sum;
}

void part_create(part_t *p, cudnnDataType_t type, const int64_t extent[5],
                 const int64_t stride[5]) {
  *p = (part_t){.type = type, .span = 1};
  memcpy(p->extent, extent, sizeof p->extent);
  memcpy(p->stride, stride, sizeof p->stride);
  for (int i = 0; i < 5; i++)
    p->span += (extent[i] - 1) * stride[i];
  size_t n = (size_t)p->span;
  p->data = malloc(part_bytes(p));
  p->want = calloc(n, sizeof *p->want);
  p->terms = calloc(n, sizeof *p->terms);
  p->used = calloc(n, sizeof *p->used);
  for (int64_t i = 0; i < p->span; i++)
    put(p, i, NAN);
  int64_t at[5] = {0};
  do {
    int64_t i = offset(stride, at);
    put(p, i, case_real());
    p->used[i] = true;
  } while (next(extent, at));
}

void part_break(part_t *p, int count) {
  static const double values[] = {(double)INFINITY, -(double)INFINITY,
                                  (double)NAN};
  for (int i = 0; i < count; i++) {
    int64_t at[5];
    for (int j = 0; j < 5; j++)
      at[j] = case_range(0, (int)p->extent[j] - 1);
    put(p, offset(p->stride, at), values[case_range(0, 2)]);
  }
}

void part_destroy(part_t *p) {
  free(p->data);
  free(p->want);
  free(p->terms);
  free(p->used);
}

void *part_clone(const part_t *p) {
  return memcpy(malloc(part_bytes(p)), p->data, part_bytes(p));
}

static void add(part_t *p, int64_t i, double term) {
  p->want[i] += term;
  p->terms[i] += fabs(term);
}

void loop_run(const host_conv_t *c, part_t *x, part_t *w, part_t *y) {
  int64_t at[5] = {0};
  do {
    int64_t yo = offset(y->stride, at);
    double dy = get(y, yo);
    int64_t box[5] = {1, c->c, c->window[0], c->window[1], c->window[2]};
    int64_t tap[5] = {0};
    do {
      int64_t group = at[1] / c->k, xi[5] = {at[0], group * c->c + tap[1]};
      int64_t wi[5] = {at[1], tap[1]};
      bool inside = true;
      for (int i = 0; i < 3; i++) {
        xi[2 + i] =
            at[2 + i] * c->stride[i] - c->pad[i] + tap[2 + i] * c->dilation[i];
        wi[2 + i] = c->flip ? c->window[i] - 1 - tap[2 + i] : tap[2 + i];
        inside &= xi[2 + i] >= 0 && xi[2 + i] < c->in[i];
      }
      if (!inside)
        continue;
      int64_t xo = offset(x->stride, xi), wo = offset(w->stride, wi);
      add(x, xo, c->alpha * get(w, wo) * dy);
      add(w, wo, c->alpha * get(x, xo) * dy);
      add(y, yo, c->alpha * get(x, xo) * get(w, wo));
    } while (next(box, tap));
  } while (next(y->extent, at));
}

/* Rounding of the sums, and of the stored type. */
static double rounding(const part_t *p, double length) {
  switch ((int)p->type) {
  case CUDNN_DATA_DOUBLE:
    return DBL_EPSILON * (8 + sqrt(length));
  case CUDNN_DATA_HALF:
    return FLT_EPSILON * (8 + sqrt(length)) + 1.0 / 1024;
  case CUDNN_DATA_BFLOAT16:
    return FLT_EPSILON * (8 + sqrt(length)) + 1.0 / 128;
  }
  return FLT_EPSILON * (8 + sqrt(length));
}

int64_t part_wrong(const part_t *have, const part_t *before, double gamma,
                   double length) {
  double eps = rounding(have, length);
  double least = have->type == CUDNN_DATA_HALF ? ldexp(1, -24) : 0;
  for (int64_t i = 0; i < have->span; i++) {
    double value = get(have, i);
    if (!have->used[i]) {
      if (!isnan(value))
        return i;
      continue;
    }
    double old = gamma == 0 ? 0 : gamma * get(before, i);
    double want = have->want[i] + old, terms = have->terms[i] + fabs(old);
    if (!isfinite(want)) {
      if (isnan(want) ? !isnan(value) : value != want)
        return i;
      continue;
    }
    if (!(fabs(value - want) <= eps * terms + least))
      return i;
  }
  return -1;
}
