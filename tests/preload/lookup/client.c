// SPDX-License-Identifier: Apache-2.0
// A program that loads cuDNN itself and looks every function up.
// usage: client FILE [handle|version|default]
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;
static const char *how = "handle";

static void *look(const char *name) {
  void *address;
  if (strcmp(how, "version") == 0)
    address = dlvsym(library, name, "libcudnn.so.9");
  else if (strcmp(how, "default") == 0)
    address = dlsym(RTLD_DEFAULT, name);
  else
    address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return address;
}

#define CUDNN(name) ((__typeof__(&name))look(#name))
#include "tests/preload/descriptor_calls.h"

int main(int argc, char **argv) {
  if (argc > 2)
    how = argv[2];
  int global = strcmp(how, "default") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  library = argc > 1 ? dlopen(argv[1], RTLD_NOW | global) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  // A missing name must stay missing, with an error.
  dlerror();
  if (dlsym(library, "cudnnNoSuchFunction") || !dlerror())
    return 3;
  return descriptor_calls();
}
