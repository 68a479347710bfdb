// SPDX-License-Identifier: Apache-2.0
// Tensors on the device for tests of any operation.
#include "tests/host/cudnn/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

static size_t bytes_of(cudnnDataType_t type) {
  switch ((int)type) {
  case CUDNN_DATA_DOUBLE:
    return 8;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_UINT8:
    return 1;
  default:
    return 4;
  }
}

/* Significant bits and the smallest exponent of a normal number. */
static int digits(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE     ? 53
         : type == CUDNN_DATA_HALF     ? 11
         : type == CUDNN_DATA_BFLOAT16 ? 8
                                       : 24;
}

static double unit_at(cudnnDataType_t type, double value) {
  int exponent;
  frexp(value, &exponent);
  int least = type == CUDNN_DATA_HALF ? -13 : -125;
  return ldexp(1, (exponent < least ? least : exponent) - digits(type));
}

/* By the definition of the formats, bit by bit. */
static void encode(cudnnDataType_t type, double value, unsigned char *to) {
  if (type == CUDNN_DATA_DOUBLE) {
    memcpy(to, &value, 8);
  } else if (type == CUDNN_DATA_FLOAT) {
    memcpy(to, &(float){(float)value}, 4);
  } else if (type == CUDNN_DATA_INT32) {
    memcpy(to, &(int32_t){(int32_t)value}, 4);
  } else if (type == CUDNN_DATA_INT8) {
    memcpy(to, &(int8_t){(int8_t)value}, 1);
  } else if (type == CUDNN_DATA_UINT8) {
    memcpy(to, &(uint8_t){(uint8_t)value}, 1);
  } else {
    int fraction = digits(type) - 1;
    int bias = type == CUDNN_DATA_HALF ? 15 : 127;
    unsigned top = type == CUDNN_DATA_HALF ? 31 : 255, bits;
    if (isnan(value)) {
      bits = top << fraction | 1U << (fraction - 1);
    } else {
      double units = nearbyint(fabs(value) / unit_at(type, value));
      int exponent;
      frexp(value, &exponent);
      int field = value == 0 ? 0 : exponent - 1 + bias;
      bits = field < 1 ? (unsigned)units
                       : ((unsigned)field << fraction) +
                             ((unsigned)units - (1U << fraction));
    }
    memcpy(to, &(uint16_t){(uint16_t)(bits | (signbit(value) ? 0x8000U : 0))},
           2);
  }
}

static double decode(cudnnDataType_t type, const unsigned char *from) {
  switch ((int)type) {
  case CUDNN_DATA_DOUBLE:
    return *(const double *)from;
  case CUDNN_DATA_FLOAT:
    return *(const float *)from;
  case CUDNN_DATA_INT32:
    return *(const int32_t *)from;
  case CUDNN_DATA_INT8:
    return *(const int8_t *)from;
  case CUDNN_DATA_UINT8:
    return *from;
  }
  uint16_t bits;
  memcpy(&bits, from, 2);
  int fraction = digits(type) - 1;
  int bias = type == CUDNN_DATA_HALF ? 15 : 127;
  int field = (bits & 0x7fff) >> fraction, part = bits & ((1 << fraction) - 1);
  double size = field == (type == CUDNN_DATA_HALF ? 31 : 255)
                    ? (part ? NAN : INFINITY)
                : field ? ldexp((1 << fraction) + part, field - bias - fraction)
                        : ldexp(part, 1 - bias - fraction);
  return bits & 0x8000 ? -size : size;
}

void tensor_index(const tensor_t *t, int64_t at, int *index) {
  for (int i = t->rank - 1; i >= 0; i--) {
    index[i] = (int)(at % t->dim[i]);
    at /= t->dim[i];
  }
}

int64_t tensor_at(const tensor_t *t, const int *index) {
  int64_t at = 0;
  for (int i = 0; i < t->rank; i++)
    at = at * t->dim[i] + index[i];
  return at;
}

static size_t place(const tensor_t *t, int64_t at) {
  int index[8];
  tensor_index(t, at, index);
  size_t sum = 0;
  for (int i = 0; i < t->rank; i++)
    sum += (size_t)index[i] * (size_t)t->stride[i];
  return sum * t->unit;
}

static void draw(tensor_t *t, int nans) {
  bool whole = t->unit == 1 || t->type == CUDNN_DATA_INT32;
  for (int64_t i = 0; i < t->count; i++) {
    double v = whole ? case_range(-9, 9) : 2 * case_real();
    if (t->type == CUDNN_DATA_UINT8)
      v = fabs(v);
    if (nans && case_range(1, nans) == 1 && !whole)
      v = NAN;
    unsigned char bits[8];
    encode(t->type, v, bits);
    t->value[i] = decode(t->type, bits);
  }
}

static void make(tensor_t *t, int nans) {
  t->unit = bytes_of(t->type);
  t->count = 1;
  for (int i = 0; i < t->rank; i++)
    t->count *= t->dim[i];
  OK(cudnnCreateTensorDescriptor(&t->desc));
  OK(cudnnSetTensorNdDescriptor(t->desc, t->type, t->rank, t->dim, t->stride));
  OK(cudnnGetTensorSizeInBytes(t->desc, &t->bytes));
  t->before = malloc(t->bytes);
  t->value = malloc((size_t)t->count * sizeof *t->value);
  memset(t->before, 0xa5, t->bytes);
  OK(cudaMalloc(&t->device, t->bytes));
  draw(t, nans);
  tensor_upload(t);
}

void tensor_create(tensor_t *t, cudnnDataType_t type, int rank, const int *dim,
                   int nans) {
  *t = (tensor_t){.type = type, .rank = rank};
  memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
  int order[8], kind = case_range(0, 3), step = 1;
  for (int i = 0; i < rank; i++)
    order[i] = kind != 1 || i == 0 ? i : i + 1 < rank ? i + 1 : 1;
  for (int i = rank - 1; kind == 2 && i > 0; i--) {
    int j = case_range(0, i), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
  bool gaps = case_range(0, 2) == 0;
  for (int i = rank - 1; i >= 0; i--) {
    t->stride[order[i]] = step;
    step = step * dim[order[i]] + (gaps ? case_range(0, 2) : 0);
  }
  make(t, nans);
}

void tensor_create_like(tensor_t *t, const tensor_t *like) {
  *t = (tensor_t){.type = like->type, .rank = like->rank};
  memcpy(t->dim, like->dim, sizeof t->dim);
  memcpy(t->stride, like->stride, sizeof t->stride);
  make(t, 0);
}

tensor_t tensor_vector(cudnnDataType_t type, int count) {
  tensor_t like = {.type = type,
                   .rank = 3,
                   .dim = {1, 1, count},
                   .stride = {count, count, 1}};
  tensor_t t;
  tensor_create_like(&t, &like);
  return t;
}

void tensor_destroy(tensor_t *t) {
  OK(cudnnDestroyTensorDescriptor(t->desc));
  OK(cudaFree(t->device));
  free(t->before);
  free(t->value);
}

void tensor_upload(tensor_t *t) {
  for (int64_t i = 0; i < t->count; i++)
    encode(t->type, t->value[i], t->before + place(t, i));
  OK(cudaMemcpy(t->device, t->before, t->bytes, cudaMemcpyHostToDevice));
}

void tensor_download(tensor_t *t) {
  OK(cudaMemcpy(t->before, t->device, t->bytes, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < t->count; i++)
    t->value[i] = decode(t->type, t->before + place(t, i));
}

int64_t tensor_wrong(const tensor_t *t, const double *want, const double *scale,
                     double factor) {
  unsigned char *now = malloc(t->bytes), *gaps = calloc(t->bytes, 1);
  OK(cudaMemcpy(now, t->device, t->bytes, cudaMemcpyDeviceToHost));
  int64_t wrong = -1;
  bool whole = t->unit == 1 || t->type == CUDNN_DATA_INT32;
  for (int64_t i = 0; i < t->count; i++) {
    size_t at = place(t, i);
    double have = decode(t->type, now + at);
    memset(gaps + at, 1, t->unit);
    double around = fabs(scale ? scale[i] : want[i]);
    double unit = whole ? 0 : unit_at(t->type, fmax(around, fabs(want[i])));
    bool same = isnan(want[i])   ? isnan(have)
                : isinf(want[i]) ? have == want[i]
                                 : fabs(have - want[i]) <= factor * unit;
    if (!same && wrong == -1)
      wrong = i;
  }
  for (size_t i = 0; i < t->bytes && wrong == -1; i++)
    if (!gaps[i] && now[i] != t->before[i])
      wrong = -2;
  free(now);
  free(gaps);
  return wrong;
}

const char *tensor_text(const tensor_t *t) {
  static char text[4][256];
  static int turn;
  char *to = text[turn = (turn + 1) % 4];
  int at = snprintf(to, 256, "type %d ", (int)t->type);
  for (int i = 0; i < t->rank; i++)
    at += snprintf(to + at, 256 - (size_t)at, "%s%d/%d", i ? "x" : "",
                   t->dim[i], t->stride[i]);
  return to;
}

scalar_t scalar(cudnnDataType_t type, double value) {
  scalar_t s;
  if (type == CUDNN_DATA_DOUBLE)
    s.d = value;
  else
    s.f = (float)value;
  return s;
}
