// SPDX-License-Identifier: Apache-2.0
// A program with its own CUDA runtime, like one that is linked to
// libcudart_static.
#include <stdlib.h>

int cudaGetDeviceCount(int *count);

int cudaGetDeviceCount(int *count) {
  *count = 0;
  return 35; // cudaErrorInsufficientDriver
}

int main(int argc, char **argv) {
  int count;
  return cudaGetDeviceCount(&count) == 35 && argc > 1 ? atoi(argv[1]) : 1;
}
