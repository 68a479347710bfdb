// SPDX-License-Identifier: Apache-2.0
// Threads that make their first calls of each entry at the same time.
#include <cudnn.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 8, ROUNDS = 50 };
static pthread_barrier_t start;

static void *work(void *argument) {
  int size = 10 + (int)(long)argument, wrong = 0;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t op;
  pthread_barrier_wait(&start);
  for (int i = 0; i < ROUNDS; i++) {
    int n = 0, c = 0, h = 0, wide = 0;
    wrong += cudnnCreateTensorDescriptor(&x) != CUDNN_STATUS_SUCCESS;
    wrong += cudnnCreateFilterDescriptor(&w) != CUDNN_STATUS_SUCCESS;
    wrong += cudnnCreateConvolutionDescriptor(&op) != CUDNN_STATUS_SUCCESS;
    wrong +=
        cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2,
                                   size, size) != CUDNN_STATUS_SUCCESS;
    wrong += cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                        4, 2, 3, 3) != CUDNN_STATUS_SUCCESS;
    wrong += cudnnSetConvolution2dDescriptor(
                 op, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                 CUDNN_DATA_FLOAT) != CUDNN_STATUS_SUCCESS;
    for (int again = 0; again < 2; again++) {
      wrong += cudnnGetConvolution2dForwardOutputDim(
                   op, x, w, &n, &c, &h, &wide) != CUDNN_STATUS_SUCCESS;
      wrong += h != size - 2 || wide != size - 2 || c != 4;
    }
    wrong += cudnnDestroyConvolutionDescriptor(op) != CUDNN_STATUS_SUCCESS;
    wrong += cudnnDestroyFilterDescriptor(w) != CUDNN_STATUS_SUCCESS;
    wrong += cudnnDestroyTensorDescriptor(x) != CUDNN_STATUS_SUCCESS;
  }
  return (void *)(long)wrong;
}

int main(void) {
  pthread_t thread[THREADS];
  long wrong = 0;
  pthread_barrier_init(&start, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(thread[i], &result);
    wrong += (long)result;
  }
  printf("%ld wrong\n", wrong);
  return wrong != 0;
}
