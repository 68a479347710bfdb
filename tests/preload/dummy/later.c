// SPDX-License-Identifier: Apache-2.0
// Calls an op of a later cuDNN than the headers need to be of.
#include <cudnn.h>
#include <stdio.h>

#define AT(n) ((void *)(0x5000 + (n)))

cudnnStatus_t cudnnCausalConv1dForward(void *stream, const void *x,
                                       const void *weight, const void *bias,
                                       void *y, int batch, int dim, int seqLen,
                                       int kernelSize, int dataType,
                                       int activation);

int main(void) {
  cudnnTensorDescriptor_t tensor;
  cudnnCreateTensorDescriptor(&tensor);
  for (int i = 0; i < 2; i++)
    printf("= %d\n", (int)cudnnCausalConv1dForward(AT(1), AT(2), AT(3), AT(4),
                                                   AT(5), 6, 7, 8, 9, 2, 1));
  return 0;
}
