// SPDX-License-Identifier: Apache-2.0
// Functions of a solver in C++.
#include "tests/tool/cut/stencils.h"

void cut_shear(const double *u, double *w, const int *rows, const int *columns,
               double by) {
  for (int r = 0; r < *rows; r++)
    for (int c = 0; c < *columns; c++) {
      const double *at = u + r * *columns + c;
      w[r * *columns + c] = *at + by * (r + 1 < *rows ? at[*columns] : *at);
    }
}

namespace solver {
// Limits r to what is in w, row by row.
template <typename T>
void limit(T *r, unsigned long rows, unsigned long columns, const T *most) {
  for (unsigned long i = 0; i < rows; i++)
    for (unsigned long k = 0; k < columns; k++)
      if (r[i * columns + k] > most[i])
        r[i * columns + k] = most[i];
}
template void limit<float>(float *, unsigned long, unsigned long,
                           const float *);
} // namespace solver
