// SPDX-License-Identifier: Apache-2.0
// A program that `sundog doctor` starts. It prints which of NVIDIA's libraries
// the dynamic linker finds in this environment, and their versions. One line
// per finding, fields separated by tabs:
//
//   preloaded PATH            libsundog.so, if the linker preloaded it
//   cudart|cudnn|nccl|driver VERSION PATH
//   broken LIBRARY TEXT       it exists but cannot be loaded
//   devices COUNT NAME        number of GPUs; the first one's name
//   nodevice TEXT             why the runtime finds no GPU
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_S = 20 }; // a driver that hangs must not hang the doctor

static int object_note(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes, (void)data;
  const char *base = strrchr(info->dlpi_name, '/');
  if (strncmp(base ? base + 1 : info->dlpi_name, "libsundog.so", 12) == 0)
    printf("preloaded\t%s\n", info->dlpi_name);
  return 0;
}

// The file that the library was loaded from; its soname if the linker does not
// say.
static const char *path_of(void *function, const char *soname) {
  Dl_info info;
  return dladdr(function, &info) && info.dli_fname ? info.dli_fname : soname;
}

// Opens the first of these libraries that exists; NULL if none does.
static void *library_open(const char *library, const char *const *names) {
  for (; *names; names++) {
    void *handle = dlopen(*names, RTLD_LAZY | RTLD_GLOBAL);
    if (handle)
      return handle;
    const char *text = dlerror();
    // The linker's message for a file that does not exist.
    if (text && !(strstr(text, "cannot open shared object file") &&
                  strncmp(text, *names, strlen(*names)) == 0))
      printf("broken\t%s\t%s\n", library, text);
  }
  return NULL;
}

// For functions of the form status f(int *version).
static void version_print(const char *library, const char *const *names,
                          const char *function) {
  void *handle = library_open(library, names);
  int (*get)(int *) = handle ? (int (*)(int *))dlsym(handle, function) : NULL;
  int version = 0;
  if (get)
    printf("%s\t%d\t%s\n", library, get(&version) == 0 ? version : 0,
           path_of((void *)get, names[0]));
}

static void cudnn_print(void) {
  static const char *const names[] = {"libcudnn.so.9", NULL};
  void *handle = library_open("cudnn", names);
  size_t (*get)(void) =
      handle ? (size_t(*)(void))dlsym(handle, "cudnnGetVersion") : NULL;
  if (get)
    printf("cudnn\t%zu\t%s\n", get(), path_of((void *)get, names[0]));
}

static void devices_print(void) {
  static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
                                      NULL};
  void *handle = library_open("cudart", names);
  if (!handle)
    return;
  cudaError_t (*count_get)(int *) =
      (cudaError_t(*)(int *))dlsym(handle, "cudaGetDeviceCount");
  const char *(*text_get)(cudaError_t) =
      (const char *(*)(cudaError_t))dlsym(handle, "cudaGetErrorString");
  // The name is the structure's first member in every version of CUDA.
  cudaError_t (*properties_get)(struct cudaDeviceProp *, int) = (cudaError_t(*)(
      struct cudaDeviceProp *, int))dlsym(handle, "cudaGetDeviceProperties");
  int count = 0;
  cudaError_t status = count_get ? count_get(&count) : cudaErrorUnknown;
  if (status != cudaSuccess) {
    printf("nodevice\t%s\n", text_get ? text_get(status) : "");
    return;
  }
  struct cudaDeviceProp properties[2]; // room for a newer one
  memset(properties, 0, sizeof properties);
  if (count > 0 && properties_get)
    (void)properties_get(properties, 0);
  printf("devices\t%d\t%s\n", count, properties[0].name);
}

int main(void) {
  static const char *const cudart[] = {"libcudart.so.13", "libcudart.so.12",
                                       NULL};
  static const char *const nccl[] = {"libnccl.so.2", NULL};
  static const char *const driver[] = {"libcuda.so.1", NULL};
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(LIMIT_S);
  dl_iterate_phdr(object_note, NULL);
  version_print("cudart", cudart, "cudaRuntimeGetVersion");
  cudnn_print();
  version_print("nccl", nccl, "ncclGetVersion");
  version_print("driver", driver, "cuDriverGetVersion");
  devices_print();
  return EXIT_SUCCESS;
}
