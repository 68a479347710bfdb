// SPDX-License-Identifier: Apache-2.0
// A program that uses two installations of cuDNN, and prints which library it
// reaches through each handle.
// usage: second COPY
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *look(const char *file) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  void *address = library ? dlsym(library, "cudnnScaleTensor") : NULL;
  Dl_info info;
  if (!address || !dladdr(address, &info))
    return "nothing";
  const char *slash = strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

int main(int argc, char **argv) {
  cudnnTensorDescriptor_t x;
  if (argc < 2 || cudnnCreateTensorDescriptor(&x) != CUDNN_STATUS_SUCCESS)
    return 2;
  printf("first %s\n", look("libcudnn.so.9"));
  printf("second %s\n", look(argv[1]));
  return 0;
}
