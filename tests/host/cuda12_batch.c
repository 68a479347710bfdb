// SPDX-License-Identifier: Apache-2.0
// A program of CUDA 12.8 that copies in batches, by functions that have one
// parameter more than in CUDA 13. It prints what each returned; with an
// argument, after a convolution has written something.
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **memory, size_t bytes);
int cudaStreamCreate(void **stream);
int cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                         void *attributes, size_t *indices,
                         size_t attribute_count, size_t *failed, void *stream);
int cudaMemcpy3DBatchAsync(size_t count, void *list, size_t *failed,
                           unsigned long long flags, void *stream);
int cudnnCreate(void **handle);
int cudnnCreateTensorDescriptor(void **tensor);
int cudnnSetTensor4dDescriptor(void *tensor, int layout, int type, int n, int c,
                               int h, int w);
int cudnnCreateFilterDescriptor(void **filter);
int cudnnSetFilter4dDescriptor(void *filter, int type, int layout, int k, int c,
                               int h, int w);
int cudnnCreateConvolutionDescriptor(void **conv);
int cudnnSetConvolution2dDescriptor(void *conv, int pad_h, int pad_w,
                                    int stride_h, int stride_w, int dilation_h,
                                    int dilation_w, int mode, int type);
int cudnnConvolutionForward(void *handle, const void *alpha, void *x_tensor,
                            const void *x, void *w_filter, const void *w,
                            void *conv, int algorithm, void *space,
                            size_t space_bytes, const void *beta,
                            void *y_tensor, void *y);

#ifdef CALLER
int copy(void **dsts, void **srcs, size_t *sizes, size_t *failed,
         void *stream) {
  char about[64] = {1};
  size_t first = 0;
  printf("batch %d\n", cudaMemcpyBatchAsync(dsts, srcs, sizes, 1, about, &first,
                                            1, failed, stream));
  printf("3-D batch %d\n", cudaMemcpy3DBatchAsync(0, NULL, failed, 0, stream));
  return 0;
}
#else
int copy(void **dsts, void **srcs, size_t *sizes, size_t *failed, void *stream);

enum { BYTES = 64, SIDE = 16 };

static int convolve(void) {
  void *handle, *tensor, *filter, *conv, *x, *w, *y;
  const float one = 1, zero = 0;
  return cudnnCreate(&handle) || cudnnCreateTensorDescriptor(&tensor) ||
         cudnnSetTensor4dDescriptor(tensor, 0, 0, 1, 1, SIDE, SIDE) ||
         cudnnCreateFilterDescriptor(&filter) ||
         cudnnSetFilter4dDescriptor(filter, 0, 0, 1, 1, 3, 3) ||
         cudnnCreateConvolutionDescriptor(&conv) ||
         cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, 1, 0) ||
         cudaMalloc(&x, SIDE * SIDE * sizeof one) ||
         cudaMalloc(&w, 9 * sizeof one) ||
         cudaMalloc(&y, SIDE * SIDE * sizeof one) ||
         cudnnConvolutionForward(handle, &one, tensor, x, filter, w, conv, 0,
                                 NULL, 0, &zero, tensor, y);
}

int main(int argc, char **argv) {
  (void)argv;
  char to[BYTES];
  void *from, *target = to;
  size_t bytes = BYTES;
  struct {
    size_t failed;
    void *stream;
  } place = {1234, NULL}; // cuda12_real.c reads both
  if (cudaMalloc(&from, BYTES) || cudaStreamCreate(&place.stream) ||
      (argc > 1 && convolve()))
    return 1;
  return copy(&target, &from, &bytes, &place.failed, place.stream);
}
#endif
