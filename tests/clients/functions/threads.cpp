// SPDX-License-Identifier: Apache-2.0
// A function that waits for a thread of its own, which calls the CUDA runtime.
//
// usage: threads ROWS own|reads: whether the thread uses memory of its own, or
// reads an input of the function
//
// Writes the rows after four calls. Its status is 0 if the runtime reports no
// error afterwards, 4 if it does.
#include <cuda_runtime_api.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

extern "C" void threads_step(const float *u, float *w, int rows, int reads);

#ifdef LIBRARY
static void work(const float *u, int reads) {
  float first = 1;
  void *own = nullptr;
  if (cudaMalloc(&own, sizeof first) != cudaSuccess)
    return;
  (void)cudaMemcpy(own, &first, sizeof first, cudaMemcpyHostToDevice);
  (void)cudaMemcpy(&first, reads ? u : own, sizeof first,
                   cudaMemcpyDeviceToHost);
  (void)cudaFree(own);
}

void threads_step(const float *u, float *w, int rows, int reads) {
  size_t count = static_cast<size_t>(rows);
  std::vector<float> in(count), out(count);
  std::thread(work, u, reads).join();
  (void)cudaMemcpy(in.data(), u, sizeof(float) * count, cudaMemcpyDeviceToHost);
  for (size_t i = 0; i < count; i++)
    out[i] = in[i > 0 ? i - 1 : 0] + in[i + 1 < count ? i + 1 : i];
  (void)cudaMemcpy(w, out.data(), sizeof(float) * count,
                   cudaMemcpyHostToDevice);
}
#else
int main(int argc, char **argv) {
  int rows = argc > 2 ? std::atoi(argv[1]) : 0;
  int reads = argc > 2 && std::strcmp(argv[2], "reads") == 0;
  size_t bytes = sizeof(float) * static_cast<size_t>(rows);
  std::vector<float> field(static_cast<size_t>(rows));
  void *memory[2];
  for (void *&at : memory)
    if (cudaMalloc(&at, bytes))
      return 2;
  float *u = static_cast<float *>(memory[0]);
  float *w = static_cast<float *>(memory[1]);
  for (int i = 0; i < rows; i++)
    field[static_cast<size_t>(i)] = static_cast<float>(i);
  (void)cudaMemcpy(u, field.data(), bytes, cudaMemcpyHostToDevice);
  for (int step = 0; step < 4; step++) {
    threads_step(u, w, rows, reads);
    std::swap(u, w);
  }
  if (cudaMemcpy(field.data(), u, bytes, cudaMemcpyDeviceToHost))
    return 4;
  for (float value : field)
    std::printf("%g\n", static_cast<double>(value));
}
#endif
