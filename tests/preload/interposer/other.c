// SPDX-License-Identifier: Apache-2.0
// The preloaded library of another tool: counts calls and passes them to the
// next library. At exit writes the counts to the file that OTHER_COUNTS names.
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static int sets, queries, lookups;

EXPORT cudnnStatus_t cudnnSetTensor4dDescriptor(
    cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
    cudnnDataType_t dataType, int n, int c, int h, int w) {
  __typeof__(&cudnnSetTensor4dDescriptor) next;
  *(void **)&next = dlsym(RTLD_NEXT, "cudnnSetTensor4dDescriptor");
  lookups += next != cudnnSetTensor4dDescriptor;
  sets++;
  return next(tensorDesc, format, dataType, n, c, h, w);
}

EXPORT cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t inputTensorDesc,
    const cudnnFilterDescriptor_t filterDesc, int *n, int *c, int *h, int *w) {
  __typeof__(&cudnnGetConvolution2dForwardOutputDim) next;
  *(void **)&next = dlsym(RTLD_NEXT, "cudnnGetConvolution2dForwardOutputDim");
  lookups += next != cudnnGetConvolution2dForwardOutputDim;
  queries++;
  return next(convDesc, inputTensorDesc, filterDesc, n, c, h, w);
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("OTHER_COUNTS");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%d %d %d\n", sets, queries, lookups);
    fclose(file);
  }
}
