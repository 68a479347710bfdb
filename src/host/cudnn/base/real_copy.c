// SPDX-License-Identifier: Apache-2.0
// Converts between the program's types and the type of the computation; draws
// dropout masks.
#include <string.h>

#include "src/host/cudnn/base/real.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/elementwise/dropout_mask.h"

// Elements that are converted at once.
enum { HOST_CHUNK = 256 };

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void REAL(host_real_load)(cudnnDataType_t type, const void *from, int64_t count,
                          real_t *to) {
  double room[HOST_CHUNK];
  size_t unit = host_type_bytes(type);
  cudnnDataType_t own =
      sizeof(real_t) == sizeof(double) ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  if (type == own) {
    memcpy(to, from, (size_t)count * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < count; i += HOST_CHUNK) {
    int64_t n = lesser(count - i, HOST_CHUNK);
    host_elements_load(type, (const char *)from + (size_t)i * unit, 1, n, room);
    for (int64_t j = 0; j < n; j++)
      to[i + j] = (real_t)room[j];
  }
}

void REAL(host_real_store)(cudnnDataType_t type, void *to, int64_t count,
                           const real_t *from, bool adds) {
  double room[HOST_CHUNK];
  size_t unit = host_type_bytes(type);
  for (int64_t i = 0; i < count; i += HOST_CHUNK) {
    int64_t n = lesser(count - i, HOST_CHUNK);
    for (int64_t j = 0; j < n; j++)
      room[j] = (double)from[i + j];
    host_elements_store(type, (char *)to + (size_t)i * unit, 1, n, 1, room,
                        adds ? 1 : 0);
  }
}

void REAL(host_real_mask)(real_t *mask, int64_t count, double probability,
                          void *states) {
  uint32_t bits[64];
  real_t scale = probability < 1 ? (real_t)(1 / (1 - probability)) : 0;
  for (int64_t i = 0; i < count; i += 2048) {
    int64_t n = lesser(count - i, 2048);
    host_dropmask_draw(states, (float)probability, n, bits);
    for (int64_t j = 0; j < n; j++)
      mask[i + j] = bits[j / 32] >> (j % 32) & 1 ? scale : 0;
  }
}

void REAL(host_real_add_rows)(const real_t *from, int64_t rows, int64_t width,
                              real_t *to) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < width; j++)
      to[j] += from[i * width + j];
}
