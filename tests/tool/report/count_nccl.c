// SPDX-License-Identifier: Apache-2.0
// An NCCL that counts what a rank receives, beside sundog's own count.
//
// It takes the place of libnccl.so.2 and hands each call on to the library
// $COUNTED_NCCL. At exit it writes "RECEIVED SUMMED", bytes of messages and of
// results of sums, to $COUNTED_FOLDER/counted-RANK.
#include <dlfcn.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_llong received, summed;

// As a number, which C converts to a pointer to a function.
static uintptr_t real_find(const char *name) {
  static void *library;
  if (!library)
    library = dlopen(getenv("COUNTED_NCCL"), RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) {
    fprintf(stderr, "count_nccl: no %s: %s\n", name, dlerror());
    abort();
  }
  return (uintptr_t)found;
}

#define REAL(name) ((__typeof__(&name))real_find(#name))

static long long bytes_of(size_t count, ncclDataType_t type) {
  static const int size[] = {
      [ncclInt8] = 1,    [ncclUint8] = 1,   [ncclInt32] = 4,
      [ncclUint32] = 4,  [ncclInt64] = 8,   [ncclUint64] = 8,
      [ncclFloat16] = 2, [ncclFloat32] = 4, [ncclFloat64] = 8,
      [ncclBfloat16] = 2};
  return (long long)count * size[type];
}

EXPORT ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type,
                             int peer, ncclComm_t comm, cudaStream_t stream) {
  received += bytes_of(count, type);
  return REAL(ncclRecv)(to, count, type, peer, comm, stream);
}
EXPORT ncclResult_t ncclSend(const void *from, size_t count,
                             ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream) {
  return REAL(ncclSend)(from, count, type, peer, comm, stream);
}
EXPORT ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                                  ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream) {
  summed += bytes_of(count, type);
  return REAL(ncclAllReduce)(from, to, count, type, op, comm, stream);
}
EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return REAL(ncclCommAbort)(comm);
}
EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  return REAL(ncclCommCount)(comm, count);
}
EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm,
                                          ncclResult_t *error) {
  return REAL(ncclCommGetAsyncError)(comm, error);
}
EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                           ncclUniqueId id, int rank,
                                           ncclConfig_t *config) {
  return REAL(ncclCommInitRankConfig)(comm, ranks, id, rank, config);
}
EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                                  ncclComm_t *out, ncclConfig_t *config) {
  return REAL(ncclCommSplit)(comm, color, key, out, config);
}
EXPORT const char *ncclGetErrorString(ncclResult_t result) {
  return REAL(ncclGetErrorString)(result);
}
EXPORT const char *ncclGetLastError(ncclComm_t comm) {
  return REAL(ncclGetLastError)(comm);
}
EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  return REAL(ncclGetUniqueId)(id);
}
// The header declares these without their parameter lists.
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupStart(void);
EXPORT ncclResult_t ncclGroupEnd(void) {
  return REAL(ncclGroupEnd)();
}
EXPORT ncclResult_t ncclGroupStart(void) {
  return REAL(ncclGroupStart)();
}

__attribute__((destructor)) static void count_write(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/counted-%s", getenv("COUNTED_FOLDER"),
           getenv("SUNDOG_RANK"));
  FILE *file = fopen(path, "we");
  if (!file)
    abort();
  fprintf(file, "%lld %lld\n", (long long)received, (long long)summed);
  fclose(file);
}
