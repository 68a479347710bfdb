// SPDX-License-Identifier: Apache-2.0
// A driver (libcuda.so.1) without devices: NVIDIA's planner looks for these
// functions before it compiles a kernel, and calls the first three only.

#define PRESENT 0
enum { NO_DEVICE = 100, VERSION = 13000 }; // CUDA_ERROR_NO_DEVICE

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);

int cuInit(unsigned flags) {
  (void)flags;
  return NO_DEVICE;
}

int cuDriverGetVersion(int *version) {
  *version = VERSION;
  return PRESENT;
}

int cuDeviceGetCount(int *count) {
  *count = 0;
  return PRESENT;
}

#define ABSENT(name)                                                           \
  int name(void);                                                              \
  int name(void) {                                                             \
    return NO_DEVICE;                                                          \
  }
ABSENT(cuCtxGetCurrent)
ABSENT(cuCtxGetLimit)
ABSENT(cuCtxPopCurrent)
ABSENT(cuCtxPushCurrent)
ABSENT(cuDeviceGet)
ABSENT(cuGetErrorName)
ABSENT(cuGetErrorString)
ABSENT(cuKernelGetAttribute)
ABSENT(cuKernelSetAttribute)
ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuLaunchKernel)
ABSENT(cuLaunchKernelEx)
ABSENT(cuLibraryGetKernel)
ABSENT(cuLibraryLoadData)
ABSENT(cuLibraryLoadFromFile)
ABSENT(cuLibraryUnload)
ABSENT(cuLinkAddData)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate)
ABSENT(cuLinkDestroy)
ABSENT(cuOccupancyMaxPotentialClusterSize)
ABSENT(cuStreamGetCtx)
