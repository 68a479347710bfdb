// SPDX-License-Identifier: Apache-2.0
// A second interposer, like a tool preloads: counts calls and passes them to
// the next definition.
#include <dlfcn.h>

extern int interposer_calls;
int interposer_calls;

#define PASS(name)                                                             \
  extern int name(long, long, long, long, long, long, long);                   \
  int name(long a, long b, long c, long d, long e, long f, long g) {           \
    int (*next)(long, long, long, long, long, long, long);                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name);                                 \
    interposer_calls++;                                                        \
    return next(a, b, c, d, e, f, g);                                          \
  }

PASS(cudnnSetTensor4dDescriptor)
PASS(cudnnSetTensorNdDescriptor)
PASS(cudnnSetFilter4dDescriptor)
PASS(cudnnSetFilterNdDescriptor)
PASS(cudnnSetConvolutionNdDescriptor)
PASS(cudnnGetConvolution2dForwardOutputDim)
PASS(cudnnGetConvolutionNdForwardOutputDim)
PASS(cudnnGetConvolutionForwardWorkspaceSize)
PASS(cudnnGetTensorSizeInBytes)
PASS(cudnnGetErrorString)
