/* SPDX-License-Identifier: Apache-2.0 */
/* A function with a struct that libffi 3.4.4 passes wrongly on x86-64. With
 * -DLIBRARY: its library; else a program that calls it. Prints the second
 * element of its result, which is 12; 3: the CUDA runtime fails after the call.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "tests/calls.h"

enum { ROWS = 4, COLUMNS = 16, COUNT = ROWS * COLUMNS };

typedef struct addends {
  long whole;
  double real;
} addends_t;

void sixth_scale(const float *x, float *y, int rows, int columns, long third,
                 double factor, addends_t two);

#ifdef LIBRARY
void sixth_scale(const float *x, float *y, int rows, int columns, long third,
                 double factor, addends_t two) {
  for (int i = 0; i < rows * columns; i++)
    y[i] = (float)(x[i] * factor + (double)(two.whole + third) + two.real);
}
#else
int main(void) {
  float *x, *y;
  CHECK(cudaMallocManaged((void **)&x, COUNT * sizeof *x, 1));
  CHECK(cudaMallocManaged((void **)&y, COUNT * sizeof *y, 1));
  for (int i = 0; i < COUNT; i++)
    x[i] = y[i] = (float)i;
  sixth_scale(x, y, ROWS, COLUMNS, 5, 2, (addends_t){2, 3});
  if (cudaDeviceSynchronize() != cudaSuccess)
    return 3;
  printf("%g\n", y[1]);
  return 0;
}
#endif
