// SPDX-License-Identifier: Apache-2.0
// Linked to the sub-libraries or to libcudnn.so.9, and run with the counting
// interposer: it must see every call once, so no work-alike may call a public
// name of cuDNN itself.
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  int *calls = dlsym(RTLD_DEFAULT, "interposer_calls");
  if (!calls) {
    fprintf(stderr, "not preloaded\n");
    return 2;
  }
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  int n, c, h, width, failed = 0, expected = 0;
  size_t bytes;
#define OK(call) failed += (call) != CUDNN_STATUS_SUCCESS
#define SEEN(call)                                                             \
  do {                                                                         \
    OK(call);                                                                  \
    if (*calls != ++expected) {                                                \
      fprintf(stderr, "%s: %d calls, not %d\n", #call, *calls, expected);      \
      return 1;                                                                \
    }                                                                          \
  } while (0)
  OK(cudnnCreate(&handle));
  OK(cudnnCreateTensorDescriptor(&x));
  OK(cudnnCreateTensorDescriptor(&y));
  OK(cudnnCreateFilterDescriptor(&w));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  SEEN(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, 0, 2, 3, 9, 9));
  SEEN(cudnnSetFilter4dDescriptor(w, 0, CUDNN_TENSOR_NCHW, 4, 3, 3, 3));
  const int pad[] = {1, 1}, step[] = {1, 1};
  SEEN(cudnnSetConvolutionNdDescriptor(conv, 2, pad, step, step,
                                       CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  SEEN(cudnnGetConvolution2dForwardOutputDim(conv, x, w, &n, &c, &h, &width));
  SEEN(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, 0, n, c, h, width));
  SEEN(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, conv, y, 0,
                                               &bytes));
  SEEN(cudnnGetTensorSizeInBytes(y, &bytes));
  OK(cudnnDestroy(handle));
  return failed;
}
