// SPDX-License-Identifier: Apache-2.0
// A cuDNN that the program opens by its path, beside the host device's, is
// refused when a handle is made; by name, there is one only.
//
// usage: program PATH STATUS (of cudnnCreate from the library at this path)
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  cudnnHandle_t handle = NULL;
  cudnnStatus_t (*create)(cudnnHandle_t *);
  void *library = count > 2 ? dlopen(words[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  *(void **)&create = dlsym(library, "cudnnCreate");
  int status = (int)create(&handle);
  if (status != atoi(words[2])) {
    fprintf(stderr, "status %d, not %s\n", status, words[2]);
    return 1;
  }
  return 0;
}
