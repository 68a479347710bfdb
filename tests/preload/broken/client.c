// SPDX-License-Identifier: Apache-2.0
// Calls functions of the CUDA runtime that copy, wait and query.
#include <cuda_runtime_api.h>
#include <stdio.h>

#define SHOW(call) printf("%s\n", cudaGetErrorName(call))

int main(void) {
  char from[4] = "abc", to[4];
  SHOW(cudaStreamSynchronize(0));
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaStreamQuery(0));
  SHOW(cudaMemcpy(to, from, sizeof to, cudaMemcpyHostToHost));
  SHOW(cudaMemcpyAsync(to, from, sizeof to, cudaMemcpyHostToHost, 0));
  return 0;
}
