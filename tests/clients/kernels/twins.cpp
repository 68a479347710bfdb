// SPDX-License-Identifier: Apache-2.0
// What the solver's kernels do, on the CPU: the threads of a launch in turn.
#include "tests/clients/kernels/stencils.h"

template <class T> static T value(void **args, int index) {
  return *static_cast<T *>(args[index]);
}

// The threads of a launch in y and x that an array needs.
#define THREADS(axis, extent)                                                  \
  ((size_t)grid.axis * block.axis < (size_t)(extent)                           \
       ? (size_t)grid.axis * block.axis                                        \
       : (size_t)(extent))

extern "C" void wave__host(dim3 grid, dim3 block, void **args) {
  int rows = value<int>(args, 3), columns = value<int>(args, 4);
  for (size_t i = 0; i < THREADS(y, rows); i++)
    for (size_t j = 0; j < THREADS(x, columns); j++)
      wave_at(value<const float *>(args, 0), value<const float *>(args, 1),
              value<float *>(args, 2), rows, columns, value<double>(args, 5),
              (int)i, (int)j);
}

// Of C: the kernel is no template.
extern "C" void force__host(dim3 grid, dim3 block, void **args) {
  int rows = value<int>(args, 5), columns = value<int>(args, 6);
  place first = {1, value<int>(args, 1), value<int>(args, 2)};
  if (value<place>(args, 4).used)
    first.row += value<place>(args, 4).row;
  for (size_t i = 0; i < THREADS(y, rows); i++)
    for (size_t j = 0; j < THREADS(x, columns); j++)
      force_at(value<float *>(args, 0), first, columns, value<float>(args, 3),
               (int)i, (int)j);
}

namespace solver {
template <class T, int REACH>
void diffuse__host(dim3 grid, dim3 block, void **args) {
  size_t planes = value<size_t>(args, 2), rows = value<size_t>(args, 3);
  size_t columns = value<size_t>(args, 4);
  for (size_t k = 0; k < planes; k++)
    for (size_t i = 0; i < THREADS(y, rows); i++)
      for (size_t j = 0; j < THREADS(x, columns); j++)
        diffuse_at<T, REACH>(value<const T *>(args, 0), value<T *>(args, 1),
                             planes, rows, columns, k, i, j);
}
template void diffuse__host<float, 1>(dim3, dim3, void **);
template void diffuse__host<double, 2>(dim3, dim3, void **);

void shift__host(dim3, dim3, void **args) {
  int rows = value<int>(args, 2), columns = value<int>(args, 3);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      shift_at(value<const float *>(args, 0), value<float *>(args, 1), rows,
               columns, i, j);
}
} // namespace solver

extern "C" void limit__host(dim3 grid, dim3 block, void **args) {
  long n = value<long>(args, 2);
  for (size_t i = 0; i < THREADS(x, n); i++)
    limit_at(value<const double *>(args, 0), value<double *>(args, 1), n,
             (long)i);
}

extern "C" void energy__host(dim3, dim3, void **args) {
  const float *u = value<const float *>(args, 0);
  double *total = value<double *>(args, 3);
  int count = value<int>(args, 1) * value<int>(args, 2);
  for (int i = 0; i < count; i++)
    *total += (double)u[i] * (double)u[i];
}

extern "C" void add__host(dim3 grid, dim3 block, void **args) {
  int n = value<int>(args, 2);
  for (size_t i = 0; i < THREADS(x, n); i++)
    value<float *>(args, 0)[i] += value<const float *>(args, 1)[i];
}
