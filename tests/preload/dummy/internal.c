// SPDX-License-Identifier: Apache-2.0
// A call whose real function calls other entries.
#include <cudnn.h>
#include <stdio.h>

int main(void) {
  cudnnTensorDescriptor_t y;
  size_t bytes = 0;
  cudnnCreateTensorDescriptor(&y);
  for (int i = 0; i < 2; i++) {
    printf("%d\n", (int)cudnnScaleTensor(NULL, y, NULL, NULL));
    printf("%d\n", (int)cudnnDropoutGetReserveSpaceSize(y, &bytes));
  }
  return 0;
}
