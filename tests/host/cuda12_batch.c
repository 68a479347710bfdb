// SPDX-License-Identifier: Apache-2.0
// A program of CUDA 12.8 that copies in batches, by functions that have one
// parameter more than in CUDA 13. It prints what each returned.
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **memory, size_t bytes);
int cudaStreamCreate(void **stream);
int cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                         void *attributes, size_t *indices,
                         size_t attribute_count, size_t *failed, void *stream);
int cudaMemcpy3DBatchAsync(size_t count, void *list, size_t *failed,
                           unsigned long long flags, void *stream);

int main(void) {
  enum { BYTES = 64 };
  char to[BYTES], about[64] = {1};
  void *from, *stream, *target = to;
  size_t bytes = BYTES, first = 0, failed = 0;
  if (cudaMalloc(&from, BYTES) || cudaStreamCreate(&stream))
    return 1;
  printf("batch %d\n", cudaMemcpyBatchAsync(&target, &from, &bytes, 1, about,
                                            &first, 1, &failed, stream));
  printf("3-D batch %d\n", cudaMemcpy3DBatchAsync(0, NULL, &failed, 0, stream));
  return 0;
}
