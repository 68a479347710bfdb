// SPDX-License-Identifier: Apache-2.0
// The program torch.c with every function of cuDNN looked up at run time.
//
// usage: reach HOW
//   soname    dlopen("libcudnn.so.9") and dlsym
//   version   the same with dlvsym
//   path      with the library's absolute path
//   deepbind  with RTLD_DEEPBIND
//   graph     libcudnn_graph.so.9 alone
#include <cudnn.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(F)                                                           \
  F(cudnnCreate)                                                               \
  F(cudnnDestroy)                                                              \
  F(cudnnBackendCreateDescriptor)                                              \
  F(cudnnBackendDestroyDescriptor)                                             \
  F(cudnnBackendSetAttribute)                                                  \
  F(cudnnBackendGetAttribute)                                                  \
  F(cudnnBackendFinalize)                                                      \
  F(cudnnBackendExecute)

static struct {
#define MEMBER(name) __typeof__(&name) name##_at;
  FUNCTIONS(MEMBER)
} found;

static void *look(void *handle, const char *how, const char *name) {
  void *at = strcmp(how, "version") == 0 ? dlvsym(handle, name, "libcudnn.so.9")
                                         : dlsym(handle, name);
  if (!at) {
    fprintf(stderr, "reach: %s\n", dlerror());
    exit(EXIT_FAILURE);
  }
  return at;
}

static void *library_open(const char *how) {
  const char *name =
      strcmp(how, "graph") == 0 ? "libcudnn_graph.so.9" : "libcudnn.so.9";
  struct link_map *map;
  if (strcmp(how, "deepbind") == 0)
    return dlopen(name, RTLD_NOW | RTLD_DEEPBIND);
  void *handle = dlopen(name, RTLD_NOW);
  if (handle && strcmp(how, "path") == 0 &&
      dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
    return dlopen(map->l_name, RTLD_NOW);
  return handle;
}

static void functions_find(const char *how) {
  void *handle = library_open(how);
  if (!handle) {
    fprintf(stderr, "reach: %s\n", dlerror());
    exit(EXIT_FAILURE);
  }
  // ISO C has no functions in objects; POSIX does.
#define FIND(name)                                                             \
  *(void **)(void *)&found.name##_at = look(handle, how, #name);
  FUNCTIONS(FIND)
}

#define cudnnCreate                   found.cudnnCreate_at
#define cudnnDestroy                  found.cudnnDestroy_at
#define cudnnBackendCreateDescriptor  found.cudnnBackendCreateDescriptor_at
#define cudnnBackendDestroyDescriptor found.cudnnBackendDestroyDescriptor_at
#define cudnnBackendSetAttribute      found.cudnnBackendSetAttribute_at
#define cudnnBackendGetAttribute      found.cudnnBackendGetAttribute_at
#define cudnnBackendFinalize          found.cudnnBackendFinalize_at
#define cudnnBackendExecute           found.cudnnBackendExecute_at
#define main                          torch_main
int torch_main(int count, char **words);
#include "tests/clients/graphs/build.c"
#include "tests/clients/graphs/plan.c"
#include "tests/clients/graphs/torch.c"
#undef main

int main(int count, char **words) {
  char *plain[] = {words[0], NULL};
  if (count != 2)
    return EXIT_FAILURE;
  functions_find(words[1]);
  return torch_main(1, plain);
}
