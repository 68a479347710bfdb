/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tool/draft/tried.h"

#include <string.h>

#define AT(p, i, j) p[(size_t)(i) * (size_t)columns + (size_t)(j)]

void tried_deep(const double *u, double *w, int planes, int rows, int columns) {
  for (int k = 1; k < planes; k++)
    for (int i = 0; i + 2 < rows; i++)
      for (int j = 0; j < columns; j++)
        AT(w, k * rows + i, j) =
            AT(u, (k - 1) * rows + i, j) + AT(u, k * rows + i + 2, j);
}

void tried_half(const unsigned short *u, unsigned short *w, int rows,
                int columns) {
  memmove(w + columns, u, (size_t)(rows - 1) * (size_t)columns * sizeof *u);
}

void tried_double(float *u, int rows, int columns) {
  for (int i = 0; i < rows * columns; i++)
    u[i] *= 2;
}

void tried_sum(float *u, int rows, int columns) {
  for (int i = columns; i < rows * columns; i++)
    u[i] += u[i - columns];
}

void tried_count(const float *u, float *w, int rows, int columns) {
  static int calls;
  calls++;
  for (int i = 0; i < rows * columns; i++)
    w[i] = u[i] + (float)calls;
}

void tried_branch(const float *u, float *w, int rows, int columns) {
  for (int i = 3; i < rows; i++)
    for (int j = 0; j < columns; j++)
      AT(w, i, j) = AT(u, i - 3, j) > 0 ? AT(u, i, j) : 0;
}

void tried_stream(const float *u, float *w, int rows, int columns,
                  cudaStream_t stream) {
  cudaMemcpyAsync(w + columns, u,
                  (size_t)(rows - 1) * (size_t)columns * sizeof *u,
                  cudaMemcpyDeviceToDevice, stream);
}

void tried_mask(const float *u, const int *mask, float *w, int rows,
                int columns) {
  for (int i = 0; i + 1 < rows; i++)
    for (int j = 0; j < columns; j++)
      AT(w, i, j) = AT(mask, i + 1, j) ? AT(u, i + 1, j) : 0;
}

void tried_padded(const float *u, float *w, int rows, int columns) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      AT(w, i, j) = AT(u, i, j) + AT(u, i + 2, j);
}
