// SPDX-License-Identifier: Apache-2.0
// The library as a whole: versions, properties, names of statuses, the last
// refusal, and handles.
#include "src/host/cudnn/descriptor/types.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/descriptor/callback.h"
#include "src/host/host.h"

// NVIDIA's 9.19 for CUDA 13 says 13.1 whatever toolkit is installed.
enum { BUILT_WITH_13 = 13010, BUILT_WITH_12 = 12090 };

static _Thread_local char last_refusal[256];

cudnnStatus_t host_refuse(cudnnStatus_t status, const char *expression) {
  snprintf(last_refusal, sizeof last_refusal, "%s: %s",
           cudnnGetErrorString(status), expression);
  host_report(status, last_refusal);
  return status;
}

size_t cudnnGetVersion(void) {
  return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void) {
  int version = 0;
  (void)cudaRuntimeGetVersion(&version);
  return version < 13000 ? BUILT_WITH_12 : BUILT_WITH_13;
}

size_t cudnnGetMaxDeviceVersion(void) {
  return CUDNN_MAX_DEVICE_VERSION;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value) {
  REFUSE_IF(!value, CUDNN_STATUS_BAD_PARAM);
  switch (type) {
  case MAJOR_VERSION:
    *value = CUDNN_MAJOR;
    return CUDNN_STATUS_SUCCESS;
  case MINOR_VERSION:
    *value = CUDNN_MINOR;
    return CUDNN_STATUS_SUCCESS;
  case PATCH_LEVEL:
    *value = CUDNN_PATCHLEVEL;
    return CUDNN_STATUS_SUCCESS;
  }
  return host_refuse(CUDNN_STATUS_BAD_PARAM, "unknown property");
}

cudnnStatus_t cudnnGraphVersionCheck(void) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpsVersionCheck(void) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCnnVersionCheck(void) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnAdvVersionCheck(void) {
  return CUDNN_STATUS_SUCCESS;
}

#define STATUSES(X)                                                            \
  X(SUCCESS)                                                                   \
  X(NOT_INITIALIZED)                                                           \
  X(SUBLIBRARY_VERSION_MISMATCH)                                               \
  X(SERIALIZATION_VERSION_MISMATCH)                                            \
  X(DEPRECATED)                                                                \
  X(LICENSE_ERROR)                                                             \
  X(RUNTIME_IN_PROGRESS)                                                       \
  X(RUNTIME_FP_OVERFLOW)                                                       \
  X(SUBLIBRARY_LOADING_FAILED)                                                 \
  X(BAD_PARAM)                                                                 \
  X(BAD_PARAM_NULL_POINTER)                                                    \
  X(BAD_PARAM_MISALIGNED_POINTER)                                              \
  X(BAD_PARAM_NOT_FINALIZED)                                                   \
  X(BAD_PARAM_OUT_OF_BOUND)                                                    \
  X(BAD_PARAM_SIZE_INSUFFICIENT)                                               \
  X(BAD_PARAM_STREAM_MISMATCH)                                                 \
  X(BAD_PARAM_SHAPE_MISMATCH)                                                  \
  X(BAD_PARAM_DUPLICATED_ENTRIES)                                              \
  X(BAD_PARAM_ATTRIBUTE_TYPE)                                                  \
  X(BAD_PARAM_CUDA_GRAPH_MISMATCH)                                             \
  X(BAD_PARAM_DESCRIPTOR_TYPE)                                                 \
  X(NOT_SUPPORTED)                                                             \
  X(NOT_SUPPORTED_GRAPH_PATTERN)                                               \
  X(NOT_SUPPORTED_SHAPE)                                                       \
  X(NOT_SUPPORTED_DATA_TYPE)                                                   \
  X(NOT_SUPPORTED_LAYOUT)                                                      \
  X(NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER)                                    \
  X(NOT_SUPPORTED_INCOMPATIBLE_CUDART)                                         \
  X(NOT_SUPPORTED_ARCH_MISMATCH)                                               \
  X(NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING)                                \
  X(NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE)                                      \
  X(NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT)                                  \
  X(NOT_SUPPORTED_PADDING)                                                     \
  X(NOT_SUPPORTED_BAD_LAUNCH_PARAM)                                            \
  X(NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API)                                       \
  X(NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE)                                       \
  X(INTERNAL_ERROR)                                                            \
  X(INTERNAL_ERROR_COMPILATION_FAILED)                                         \
  X(INTERNAL_ERROR_UNEXPECTED_VALUE)                                           \
  X(INTERNAL_ERROR_HOST_ALLOCATION_FAILED)                                     \
  X(INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)                                   \
  X(INTERNAL_ERROR_BAD_LAUNCH_PARAM)                                           \
  X(INTERNAL_ERROR_TEXTURE_CREATION_FAILED)                                    \
  X(EXECUTION_FAILED)                                                          \
  X(EXECUTION_FAILED_CUDA_DRIVER)                                              \
  X(EXECUTION_FAILED_CUBLAS)                                                   \
  X(EXECUTION_FAILED_CUDART)                                                   \
  X(EXECUTION_FAILED_CURAND)

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch ((int)status) {
#define NAME(name)                                                             \
  case CUDNN_STATUS_##name:                                                    \
    return "CUDNN_STATUS_" #name;
    STATUSES(NAME)
#undef NAME
  case 2001: // the library knows these, its header does not
    return "CUDNN_STATUS_INVALID_VALUE";
  }
  return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char *message, size_t max_size) {
  if (message && max_size > 0)
    snprintf(message, max_size, "%s", last_refusal);
}

// ---- NVIDIA's library beside this one ---------------------------------------

typedef struct {
  char folder[PATH_MAX]; // of this library
  char other[PATH_MAX];  // a cuDNN from elsewhere; empty: none
} loaded_t;

// The folder that really holds a file, without its name; false if there is no
// such file.
static bool folder_of(const char *path, char out[PATH_MAX]) {
  if (!realpath(path, out))
    return false;
  char *slash = strrchr(out, '/');
  if (slash)
    *slash = '\0';
  return slash;
}

// Whether a file has the name of one of cuDNN's libraries, of any version.
static bool is_cudnn(const char *file) {
  static const char *const names[] = {"libcudnn.so", "libcudnn_graph.so",
                                      "libcudnn_ops.so", "libcudnn_cnn.so",
                                      "libcudnn_adv.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(file, names[i], strlen(names[i])) == 0)
      return true;
  return false;
}

static int object_look(struct dl_phdr_info *info, size_t bytes, void *data) {
  loaded_t *loaded = data;
  char folder[PATH_MAX];
  const char *slash = strrchr(info->dlpi_name, '/');
  (void)bytes;
  if (!slash || !is_cudnn(slash + 1) || !folder_of(info->dlpi_name, folder) ||
      strcmp(folder, loaded->folder) == 0)
    return 0;
  snprintf(loaded->other, sizeof loaded->other, "%s", info->dlpi_name);
  return 1;
}

// A program that opens NVIDIA's libcudnn.so.9 by its path gets that library on
// top of sub-libraries of this one, which the loader finds by name.
static bool is_mixed(void) {
  static const char here;
  loaded_t loaded = {.other = ""};
  Dl_info own;
  if (!dladdr(&here, &own) || !folder_of(own.dli_fname, loaded.folder))
    return false;
  dl_iterate_phdr(object_look, &loaded);
  if (loaded.other[0])
    fprintf(stderr,
            "sundog host device: the program has opened %s by its path, which "
            "is not the host device's library. Let it open libcudnn.so.9 by "
            "name; a Python package does so where NVIDIA's package with that "
            "file is not installed\n",
            loaded.other);
  return loaded.other[0];
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  *handle = NULL;
  REFUSE_IF(is_mixed(), CUDNN_STATUS_NOT_INITIALIZED);
  int devices = 0;
  REFUSE_IF(cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1,
            CUDNN_STATUS_NOT_INITIALIZED);
  struct cudnnContext *context = calloc(1, sizeof *context);
  REFUSE_IF(!context, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  *handle = context;
  return CUDNN_STATUS_SUCCESS;
}

// As on a GPU, the queued work is finished first. The handle's stream may have
// been destroyed.
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (handle)
    cudaDeviceSynchronize();
  free(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  REFUSE_IF(!handle || !stream, CUDNN_STATUS_BAD_PARAM);
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle,
                                     cudnnStatus_t *rstatus,
                                     cudnnErrQueryMode_t mode,
                                     cudnnRuntimeTag_t *tag) {
  (void)tag; // reserved: must be NULL in NVIDIA's documentation
  REFUSE_IF(!handle || !rstatus, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((int)mode < CUDNN_ERRQUERY_RAWCODE ||
                (int)mode > CUDNN_ERRQUERY_BLOCKING,
            CUDNN_STATUS_BAD_PARAM);
  // Nothing is reported through runtime flags here: an error while queued work
  // runs becomes the device's sticky error.
  cudaError_t state = mode == CUDNN_ERRQUERY_BLOCKING
                          ? cudaStreamSynchronize(handle->stream)
                          : cudaStreamQuery(handle->stream);
  *rstatus = state == cudaSuccess         ? CUDNN_STATUS_SUCCESS
             : state == cudaErrorNotReady ? CUDNN_STATUS_RUNTIME_IN_PROGRESS
                                          : CUDNN_STATUS_EXECUTION_FAILED;
  return CUDNN_STATUS_SUCCESS;
}
