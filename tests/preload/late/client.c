// SPDX-License-Identifier: Apache-2.0
// Calls an entry before cuDNN is loaded, after it was loaded, and after the
// program closed it again. Only with sundog preloaded.
// usage: client FILE local|global|held
//   held: calls the address that dlsym returned for the library; if a split was
//         asked for, this is an address of sundog
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef cudnnStatus_t create_t(cudnnTensorDescriptor_t *);

static create_t *look(void *library) {
  create_t *create;
  *(void **)&create = dlsym(library, "cudnnCreateTensorDescriptor");
  return create;
}

static int call(create_t *create) {
  cudnnTensorDescriptor_t x = NULL;
  return create ? (int)create(&x) : -1;
}

int main(int argc, char **argv) {
  char text[16] = "unchanged";
  __typeof__(&cudnnGetLastErrorString) get_text;
  *(void **)&get_text = dlsym(RTLD_DEFAULT, "cudnnGetLastErrorString");
  create_t *create = look(RTLD_DEFAULT);
  if (argc < 3 || !get_text)
    return 2;
  get_text(text, sizeof text);
  dlerror();
  printf("not loaded: %d '%s'\n", call(create), text);
  // A failed look-up of sundog must not leave an error for the program.
  printf("dlerror: %s\n", dlerror() ? "spoiled" : "none");
  int global = strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  void *library = dlopen(argv[1], RTLD_NOW | global);
  if (!library)
    return 3;
  if (strcmp(argv[2], "held") == 0)
    create = look(library);
  printf("loaded: %d\n", call(create));
  printf("closed: %d\n", dlclose(library));
  printf("again: %d\n", call(create));
  return 0;
}
