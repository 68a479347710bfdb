// SPDX-License-Identifier: Apache-2.0
// Prints names and versions of the given library, the names of known and
// unknown status codes, and whether they have a text; the texts may differ
// between libraries.
//
// Usage: names LIBRARY CODES. Only functions of the library itself are called,
// not those of libraries that it loads.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is asked of every code; the text of code 123456 is that of no code. */
static const char *const names[] = {
    "cudaGetErrorName",
    "cublasGetStatusName",
    "cublasLtGetStatusName",
    "cudnnGetErrorString",
};
static const char *const texts[] = {
    "cudaGetErrorString",
    "cublasGetStatusString",
    "cublasLtGetStatusString",
    "ncclGetErrorString",
};
static const char *const numbers[] = {
    "cublasGetCudartVersion",   "cublasLtGetVersion",
    "cublasLtGetCudartVersion", "cudnnGetVersion",
    "cudnnGetCudartVersion",
};
static const char *const versions[] = {
    "cudaRuntimeGetVersion", "cudaDriverGetVersion", "ncclGetVersion"};

typedef const char *(*describe_t)(int code);

static void own(void *library, const char *path, const char *name,
                void *out_function) {
  *(void **)out_function = NULL;
  const char *file = strrchr(path, '/') + 1, *end = strstr(file, ".so");
  size_t length = strcspn(name, "GRDV"); /* cudaGet, ncclGet, cudnnGet ... */
  static const char *const works[][2] = {{"cuda", "libcudart"},
                                         {"cublas", "libcublas"},
                                         {"cublasLt", "libcublasLt"},
                                         {"cudnn", "libcudnn"},
                                         {"nccl", "libnccl"}};
  for (int i = 0; i < 5; i++)
    if (strlen(works[i][0]) == length &&
        strncmp(works[i][0], name, length) == 0 &&
        strlen(works[i][1]) == (size_t)(end - file) &&
        strncmp(works[i][1], file, (size_t)(end - file)) == 0)
      *(void **)out_function = dlsym(library, name);
}

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library)
    return 2;
  int codes = atoi(argv[2]);
  for (int i = 0; i < 4; i++) {
    describe_t name;
    own(library, argv[1], names[i], &name);
    for (int code = -10; name && code < codes; code++)
      printf("%s(%d): %s\n", names[i], code, name(code));
    describe_t text;
    own(library, argv[1], texts[i], &text);
    for (int code = -10; text && code < codes; code++) {
      const char *found = text(code), *none = text(123456);
      printf("%s(%d): %s\n", texts[i], code,
             strcmp(found, none) == 0 ? none : "a text");
    }
  }
  for (int i = 0; i < 5; i++) {
    size_t (*number)(void);
    own(library, argv[1], numbers[i], &number);
    if (number)
      printf("%s: %zu\n", numbers[i], number());
  }
  for (int i = 0; i < 3; i++) {
    int (*version)(int *);
    own(library, argv[1], versions[i], &version);
    int value = -1;
    if (!version)
      continue;
    int status = version(&value);
    printf("%s: %d %d, without a result %d\n", versions[i], status, value,
           version(NULL));
  }
  return 0;
}
