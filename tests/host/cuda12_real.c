// SPDX-License-Identifier: Apache-2.0
// Copies in batches with the parameters of CUDA 12.8, which the host device has
// not. They check what CUDA 13 does not have in this place: the failure's
// number lies in front of the stream's address.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int compare(const char *name, const size_t *failed, void *stream) {
  struct {
    size_t failed;
    void *stream;
  } place;
  memcpy(&place, failed, sizeof place);
  printf("%s: number %zu, stream %p\n", name, place.failed, stream);
  return place.failed != 1234 || place.stream != stream;
}

int cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                         void *attributes, size_t *indices,
                         size_t attribute_count, size_t *failed, void *stream) {
  (void)dsts, (void)srcs, (void)sizes, (void)count;
  (void)attributes, (void)indices, (void)attribute_count;
  return compare("batch", failed, stream);
}

int cudaMemcpy3DBatchAsync(size_t count, void *list, size_t *failed,
                           unsigned long long flags, void *stream) {
  (void)count, (void)list, (void)flags;
  return compare("3-D batch", failed, stream);
}
