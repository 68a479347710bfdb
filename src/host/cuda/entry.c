// SPDX-License-Identifier: Apache-2.0
// Finds functions by name, for the version of CUDA that the program asks for.
#include "src/host/cuda/call.h"
#include "src/host/exports/unsupported.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// Names whose newer form came after CUDA 4. Before `version` a name means the
// older form. Forms with other suffixes are older than every program.
static const struct {
  const char *symbol;
  int since;
} late[] = {
    {"cuCtxCreate_v3", 11040},
    {"cuCtxCreate_v4", 12050},
    {"cuDevicePrimaryCtxRelease_v2", 11000},
    {"cuDevicePrimaryCtxReset_v2", 11000},
    {"cuDevicePrimaryCtxSetFlags_v2", 11000},
    {"cuDeviceGetUuid_v2", 11040},
    {"cuEventElapsedTime_v2", 12080},
    {"cuGetProcAddress_v2", 12000},
    {"cuIpcOpenMemHandle_v2", 11000},
    {"cuMemAdvise_v2", 12020},
    {"cuMemPrefetchAsync_v2", 12020},
    {"cuMemcpyBatchAsync_v2", 13000},
    {"cuMemcpy3DBatchAsync_v2", 13000},
    {"cuStreamBatchMemOp_v2", 11070},
    {"cuStreamBeginCapture_v2", 10010},
    {"cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCtx_v2", 12050},
    {"cuStreamUpdateCaptureDependencies_v2", 12030},
    {"cuStreamWaitValue32_v2", 11070},
    {"cuStreamWaitValue64_v2", 11070},
    {"cuStreamWriteValue32_v2", 11070},
    {"cuStreamWriteValue64_v2", 11070},
};

static bool too_late(const char *symbol, int version) {
  for (size_t i = 0; i < sizeof late / sizeof *late; i++)
    if (strcmp(late[i].symbol, symbol) == 0)
      return version < late[i].since;
  return false;
}

// This library's own function, even if a preloaded library defines the same
// name.
static void *own(const char *symbol) {
  Dl_info info;
  void *self = NULL, *found = NULL;
  if (dladdr((const void *)&late, &info) && info.dli_fname)
    self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (self) {
    found = dlsym(self, symbol);
    dlclose(self);
  }
  return found;
}

// Defines cuGetProcAddress_v2.
CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status) {
  RETURN_IF(!symbol || !function, CUDA_ERROR_INVALID_VALUE);
  bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  void *found = NULL;
  bool later = false;
  for (int form = 4; form >= 1 && !found; form--) {
    char base[128], name[160];
    int length = form == 1
                     ? snprintf(base, sizeof base, "%s", symbol)
                     : snprintf(base, sizeof base, "%s_v%d", symbol, form);
    if (length < 0 || (size_t)length >= sizeof base ||
        strncmp(base, "cu", 2) != 0)
      break;
    static const char *const endings[] = {"_ptsz", "_ptds", ""};
    for (int i = per_thread ? 0 : 2; i < 3 && !found; i++) {
      snprintf(name, sizeof name, "%s%s", base, endings[i]);
      found = own(name);
    }
    if (found && too_late(base, version)) {
      found = NULL;
      later = true;
    }
  }
  *function = found;
  if (status)
    *status = found   ? CU_GET_PROC_ADDRESS_SUCCESS
              : later ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags);
CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

// Only the static runtime uses this function, to reach the driver.
CUresult cuGetExportTable(const void **table, const CUuuid *name) {
  static _Atomic int said;
  (void)name;
  host_unsupported("a CUDA runtime that is linked into the program statically "
                   "(build it with nvcc -cudart shared, or link with "
                   "-lcudart: cuGetExportTable)",
                   &said);
  if (table)
    *table = NULL;
  return CUDA_ERROR_NOT_SUPPORTED;
}
