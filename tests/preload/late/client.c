// SPDX-License-Identifier: Apache-2.0
// Calls an entry before cuDNN is loaded, after it was loaded locally, and after
// the program closed it again. Only with sundog preloaded.
// usage: client FILE
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int create(void) {
  __typeof__(&cudnnCreateTensorDescriptor) entry;
  *(void **)&entry = dlsym(RTLD_DEFAULT, "cudnnCreateTensorDescriptor");
  cudnnTensorDescriptor_t x = NULL;
  return entry ? (int)entry(&x) : -1;
}

int main(int argc, char **argv) {
  char text[16] = "unchanged";
  __typeof__(&cudnnGetLastErrorString) get_text;
  *(void **)&get_text = dlsym(RTLD_DEFAULT, "cudnnGetLastErrorString");
  if (argc < 2 || !get_text)
    return 2;
  get_text(text, sizeof text);
  printf("not loaded: %d '%s'\n", create(), text);
  dlerror();
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return 3;
  printf("loaded: %d\n", create());
  // What sundog looked up in vain is not the program's error.
  printf("dlerror: %s\n", dlerror() ? "spoiled" : "none");
  printf("closed: %d\n", dlclose(library));
  printf("again: %d\n", create());
  return 0;
}
