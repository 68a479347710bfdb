// SPDX-License-Identifier: Apache-2.0
// Functions of a legacy solver in C++: a template, which its library
// instantiates.
#include <cstddef>

namespace solver {

// r += the limited difference of the neighbours in a row; whole rows at once.
template <typename T>
void limit(T *r, unsigned long rows, unsigned long columns, T most) {
  for (unsigned long i = 0; i < rows; i++)
    for (unsigned long j = 1; j + 1 < columns; j++) {
      T slope = r[i * columns + j + 1] - r[i * columns + j - 1];
      r[i * columns + j] += slope > most ? most : slope < -most ? -most : slope;
    }
}

template void limit<float>(float *, unsigned long, unsigned long, float);

} // namespace solver

extern "C" void wave_limit(float *r, unsigned long rows, unsigned long columns,
                           float most) {
  solver::limit(r, rows, columns, most);
}
