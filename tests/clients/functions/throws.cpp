// SPDX-License-Identifier: Apache-2.0
// A function that throws an exception, and a program that catches it.
//
// usage: throws ROWS all|none: whether the third of four calls throws
//
// Writes how many exceptions it has caught. Its status is 0 if the runtime
// reports no error afterwards, 4 if it does.
#include <cuda_runtime_api.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

extern "C" void throws_step(const float *u, float *w, int rows, int step);

#ifdef LIBRARY
void throws_step(const float *u, float *w, int rows, int step) {
  if (step == 2)
    throw std::runtime_error("the third step");
  for (int i = 0; i < rows; i++)
    w[i] = u[i > 0 ? i - 1 : 0] + u[i + 1 < rows ? i + 1 : i];
}
#else
int main(int argc, char **argv) {
  int rows = argc > 2 ? std::atoi(argv[1]) : 0, caught = 0;
  bool all = argc > 2 && std::strcmp(argv[2], "all") == 0;
  size_t bytes = sizeof(float) * static_cast<size_t>(rows);
  void *memory[2];
  if (cudaMallocManaged(&memory[0], bytes) ||
      cudaMallocManaged(&memory[1], bytes))
    return 2;
  float *u = static_cast<float *>(memory[0]);
  float *w = static_cast<float *>(memory[1]);
  for (int i = 0; i < rows; i++)
    u[i] = static_cast<float>(i);
  for (int step = 0; step < 4; step++)
    try {
      throws_step(u, w, rows, all ? step : 0);
    } catch (const std::exception &) {
      caught++;
    }
  std::printf("%d\n", caught);
  return cudaDeviceSynchronize() ? 4 : 0;
}
#endif
