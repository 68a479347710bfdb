// SPDX-License-Identifier: Apache-2.0
// Calls with many arguments, in integer and floating registers and on the
// stack, on every path of a stub: unresolved, captured, known to pass.
#include <cudnn.h>
#include <stdio.h>

#define AT(n) ((void *)(0x5000 + (n)))

int main(void) {
  cudnnTensorDescriptor_t t[7];
  cudnnActivationDescriptor_t act;
  for (int i = 0; i < 7; i++)
    cudnnCreateTensorDescriptor(&t[i]);
  cudnnCreateActivationDescriptor(&act);
  for (int i = 0; i < 3; i++) {
    int status = cudnnNormalizationBackward(
        AT(1), 1, 2, 1, AT(2), AT(3), AT(4), AT(5), t[0], AT(6), t[1], AT(7),
        t[2], AT(8), t[3], AT(9), t[4], AT(10), t[5], AT(11), AT(12), AT(13),
        AT(14), 1.25 + i, t[6], AT(15), AT(16), act, AT(17), 1ul << 40, AT(18),
        3ul << 41, -7);
    printf("= %d\n", status);
    cudnnSetLRNDescriptor((void *)AT(20), 5, 0.5, -0.25, 1e300);
    cudnnSetAttnDescriptor((void *)AT(21), 1, 2, 3.5, 4, 5, 3, (void *)AT(22),
                           (void *)AT(23), 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                           16);
  }
  return 0;
}
