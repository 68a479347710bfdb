// SPDX-License-Identifier: Apache-2.0
// A program of CUDA 12: it declares by itself what the headers of CUDA 12
// declare, and prints everything whose form differs in CUDA 12.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  char name[256];
  char rest[776]; /* 1032 bytes in all */
} properties_t;
typedef struct {
  int type, device;
  void *device_pointer, *host_pointer;
} pointer_t;
typedef struct {
  void *dst;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
} set_t;

enum { ADVISE_READ_MOSTLY = 1, READ_MOSTLY = 1, PREFETCHED = 4, TO_HOST = 2 };

int cudaRuntimeGetVersion(int *version);
int cudaGetDeviceProperties_v2(properties_t *properties, int device);
int cudaMalloc(void **memory, size_t bytes);
int cudaMallocManaged(void **memory, size_t bytes, unsigned flags);
int cudaFree(void *memory);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemAdvise(const void *memory, size_t bytes, int advice, int device);
int cudaMemPrefetchAsync(const void *memory, size_t bytes, int device,
                         void *stream);
int cudaMemRangeGetAttribute(void *data, size_t bytes, int attribute,
                             const void *memory, size_t count);
int cudaPointerGetAttributes(pointer_t *attributes, const void *pointer);
int cudaStreamCreate(void **stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamGetCaptureInfo_v2(void *stream, int *status,
                                unsigned long long *id, void **graph,
                                const void **nodes, size_t *count);
int cudaMemsetAsync(void *memory, int value, size_t bytes, void *stream);
int cudaGraphAddMemsetNode(void **node, void *graph, void *const *needs,
                           size_t count, const set_t *set);
int cudaGraphAddDependencies(void *graph, void *const *from, void *const *to,
                             size_t count);
int cudaGraphGetEdges(void *graph, void **from, void **to, size_t *count);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasGetVersion_v2(void *handle, int *version);
size_t cudnnGetCudartVersion(void);
int ncclGetVersion(int *version);

#define OK(call)                                                               \
  do {                                                                         \
    int result = (call);                                                       \
    if (result != 0) {                                                         \
      printf("%s: %d\n", #call, result);                                       \
      return 1;                                                                \
    }                                                                          \
  } while (0)
#define IS(condition)                                                          \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("not %s\n", #condition);                                          \
      return 1;                                                                \
    }                                                                          \
  } while (0)

static int graphs(void) {
  void *stream, *graph, *exec, *node, *memory, *from[4], *to[4];
  const void *tips;
  int status = -1;
  size_t count = 4;
  unsigned long long id;
  unsigned char byte = 0;
  OK(cudaMalloc(&memory, 16));
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, 0));
  OK(cudaMemsetAsync(memory, 3, 16, stream));
  OK(cudaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &tips, &count));
  IS(status == 1 && count == 1);
  memcpy(from, tips, sizeof *from);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphAddMemsetNode(&node, graph, NULL, 0,
                            &(set_t){memory, 16, 4, 1, 16, 1}));
  OK(cudaGraphAddDependencies(graph, from, &node, 1));
  count = 4;
  OK(cudaGraphGetEdges(graph, from, to, &count));
  IS(count == 1 && to[0] == node && to[1] == NULL);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(&byte, memory, 1, 2));
  IS(byte == 4);
  OK(cudaFree(memory));
  return 0;
}

static int memory(void) {
  void *managed;
  int value;
  struct {
    pointer_t pointer;
    char guard[64];
  } found;
  memset(&found, 0x5a, sizeof found);
  OK(cudaMallocManaged(&managed, 4096, 1));
  OK(cudaMemAdvise(managed, 4096, ADVISE_READ_MOSTLY, 0));
  OK(cudaMemRangeGetAttribute(&value, sizeof value, READ_MOSTLY, managed, 10));
  IS(value == 1);
  OK(cudaMemPrefetchAsync(managed, 4096, -1, NULL));
  OK(cudaMemRangeGetAttribute(&value, sizeof value, PREFETCHED, managed, 10));
  IS(value == -1);
  OK(cudaPointerGetAttributes(&found.pointer, managed));
  IS(found.pointer.type == 3 && found.pointer.host_pointer == managed);
  for (size_t i = 0; i < sizeof found.guard; i++)
    IS(found.guard[i] == 0x5a);
  return 0;
}

int main(void) {
  struct {
    properties_t properties;
    char guard[64];
  } device;
  void *handle;
  int version;
  memset(&device, 0x5a, sizeof device);
  OK(cudaRuntimeGetVersion(&version));
  IS(version / 1000 == 12);
  OK(cudaGetDeviceProperties_v2(&device.properties, 0));
  for (size_t i = 0; i < sizeof device.guard; i++)
    IS(device.guard[i] == 0x5a);
  OK(cublasCreate_v2(&handle));
  OK(cublasGetVersion_v2(handle, &version));
  IS(version / 10000 == 12);
  OK(cublasDestroy_v2(handle));
  IS(cudnnGetCudartVersion() / 1000 == 12);
  OK(ncclGetVersion(&version));
  if (graphs() != 0 || memory() != 0)
    return 1;
  printf("%s\n", device.properties.name);
  return 0;
}
