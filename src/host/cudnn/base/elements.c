// SPDX-License-Identifier: Apache-2.0
// Elements of any type, read and written as doubles.
#include "src/host/cudnn/base/number.h"
#include "src/host/cudnn/base/number8.h"
#include "src/host/cudnn/base/view.h"

#define LOAD(T, value)                                                         \
  do {                                                                         \
    const T *restrict p = from;                                                \
    if (step == 1)                                                             \
      for (int64_t i = 0; i < count; i++) {                                    \
        T v = p[i];                                                            \
        to[i] = (value);                                                       \
      }                                                                        \
    else                                                                       \
      for (int64_t i = 0; i < count; i++) {                                    \
        T v = p[i * step];                                                     \
        to[i] = (value);                                                       \
      }                                                                        \
  } while (0)

size_t host_element_bytes(cudnnDataType_t type) {
  switch ((int)type) {
  case CUDNN_DATA_DOUBLE:
  case CUDNN_DATA_INT64:
    return 8;
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_UINT8:
  case CUDNN_DATA_BOOLEAN:
  case CUDNN_DATA_FP8_E4M3:
  case CUDNN_DATA_FP8_E5M2:
    return 1;
  }
  return 0;
}

void host_elements_load(cudnnDataType_t type, const void *from, int64_t step,
                        int64_t count, double *to) {
  switch ((int)type) {
  case CUDNN_DATA_FLOAT:
    LOAD(float, v);
    return;
  case CUDNN_DATA_DOUBLE:
    LOAD(double, v);
    return;
  case CUDNN_DATA_HALF:
    LOAD(uint16_t, host_half_load(v));
    return;
  case CUDNN_DATA_BFLOAT16:
    LOAD(uint16_t, host_bfloat_load(v));
    return;
  case CUDNN_DATA_INT8:
    LOAD(int8_t, v);
    return;
  case CUDNN_DATA_UINT8:
    LOAD(uint8_t, v);
    return;
  case CUDNN_DATA_INT32:
    LOAD(int32_t, v);
    return;
  case CUDNN_DATA_INT64:
    LOAD(int64_t, (double)v);
    return;
  case CUDNN_DATA_BOOLEAN:
    LOAD(uint8_t, v != 0);
    return;
  case CUDNN_DATA_FP8_E4M3:
    LOAD(uint8_t, host_number8_load(&host_e4m3, v));
    return;
  case CUDNN_DATA_FP8_E5M2:
    LOAD(uint8_t, host_number8_load(&host_e5m2, v));
    return;
  }
}

// GPUs scale in float: 0.05f * 10 is a tie in float but not in double.
static double integer(float scaled, double low, double high) {
  if (scaled != scaled)
    return 0;
  double value = nearbyintf(scaled);
  return value < low ? low : value > high ? high : value;
}

static double whole(double value, double low, double high) {
  if (value != value)
    return 0;
  value = nearbyint(value);
  return value < low ? low : value > high ? high : value;
}

// Every combination is a loop of its own, so that the dense ones vectorise.
#define STORE_BY(T, at, blend, old, rounded)                                   \
  for (int64_t i = 0; i < count; i++) {                                        \
    double r = alpha * from[i];                                                \
    if (blend) {                                                               \
      T v = p[at];                                                             \
      r += beta * (double)(old);                                               \
    }                                                                          \
    p[at] = (T)(rounded);                                                      \
  }
#define STORE(T, old, rounded)                                                 \
  do {                                                                         \
    T *restrict p = to;                                                        \
    if (step == 1 && beta == 0)                                                \
      STORE_BY(T, i, false, old, rounded)                                      \
    else if (step == 1)                                                        \
      STORE_BY(T, i, true, old, rounded)                                       \
    else                                                                       \
      STORE_BY(T, i *step, beta != 0, old, rounded)                            \
  } while (0)

void host_elements_store(cudnnDataType_t type, void *to, int64_t step,
                         int64_t count, double alpha, const double *from,
                         double beta) {
  switch ((int)type) {
  case CUDNN_DATA_FLOAT:
    STORE(float, v, r);
    return;
  case CUDNN_DATA_DOUBLE:
    STORE(double, v, r);
    return;
  case CUDNN_DATA_HALF:
    STORE(uint16_t, host_half_load(v), host_half_round(host_round_to_odd(r)));
    return;
  case CUDNN_DATA_BFLOAT16:
    STORE(uint16_t, host_bfloat_load(v),
          host_bfloat_round(host_round_to_odd(r)));
    return;
  case CUDNN_DATA_INT8:
    STORE(int8_t, v, integer((float)r, INT8_MIN, INT8_MAX));
    return;
  case CUDNN_DATA_UINT8:
    STORE(uint8_t, v, integer((float)r, 0, UINT8_MAX));
    return;
  case CUDNN_DATA_INT32:
    STORE(int32_t, v, whole(r, INT32_MIN, INT32_MAX));
    return;
  case CUDNN_DATA_INT64: // 0x1p63 would not fit
    STORE(int64_t, v, whole(r, -0x1p63, 0x1p63 - 1024));
    return;
  case CUDNN_DATA_BOOLEAN:
    STORE(uint8_t, v, r != 0);
    return;
  case CUDNN_DATA_FP8_E4M3:
    STORE(uint8_t, host_number8_load(&host_e4m3, v),
          host_number8_round(&host_e4m3, r));
    return;
  case CUDNN_DATA_FP8_E5M2:
    STORE(uint8_t, host_number8_load(&host_e5m2, v),
          host_number8_round(&host_e5m2, r));
    return;
  }
}

void host_elements_round(cudnnDataType_t type, double *values, int64_t count) {
  enum { CHUNK = 256 };
  double room[CHUNK]; // of any type
  if (type == CUDNN_DATA_DOUBLE)
    return;
  if (type == CUDNN_DATA_FLOAT) {
    for (int64_t i = 0; i < count; i++)
      values[i] = (float)values[i];
    return;
  }
  for (int64_t i = 0; i < count; i += CHUNK) {
    int64_t part = count - i < CHUNK ? count - i : CHUNK;
    host_elements_store(type, room, 1, part, 1, values + i, 0);
    host_elements_load(type, room, 1, part, values + i);
  }
}
