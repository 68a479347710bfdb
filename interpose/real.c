// SPDX-License-Identifier: Apache-2.0
// Finds the vendor's functions: those that dlsym returned to the program, then
// those in the global scope behind libsundog.so, then by the sonames of loaded
// libraries.
#include "interpose/real.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "interpose/dlsym.h"
#include "interpose/ranges.h"
#include "interpose/slot.h"
#include "rules/view/registry.h"

enum { SONAMES_MAX = 6 };

// In the order in which they are tried.
static const char *const sonames[SDG_LIBRARY_COUNT][SONAMES_MAX] = {
    [SDG_LIBRARY_CUDART] = {"libcudart.so.13", "libcudart.so.12"},
    [SDG_LIBRARY_CUDNN] = {"libcudnn.so.9", "libcudnn_ops.so.9",
                           "libcudnn_cnn.so.9", "libcudnn_adv.so.9",
                           "libcudnn_graph.so.9"},
    [SDG_LIBRARY_NCCL] = {"libnccl.so.2"},
    [SDG_LIBRARY_CUBLAS] = {"libcublas.so.13", "libcublas.so.12"},
    [SDG_LIBRARY_CUBLASLT] = {"libcublasLt.so.13", "libcublasLt.so.12"},
};

// The real functions found so far; the first one found stays.
static _Atomic(void *) found[SDG_ENTRY_COUNT];

// The file in which the first function of a library was found. A process may
// load two installations of one library, and functions of one must not get
// handles of the other. Guarded by a lock instead of being an atomic pointer,
// because sanitizers follow what the C library does with these strings, and
// know the order that locks give.
static char chosen[SDG_LIBRARY_COUNT][PATH_MAX];
static pthread_mutex_t chosen_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// Holds a reference to the library of `path` forever, so that no slot becomes
// invalid when the program closes the library. False if it is not loaded any
// more.
static bool library_pin(const char *path) {
  return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

static void *address_pin(void *address) {
  enum { PINNED_MAX = 32 };
  static _Atomic(void *) pinned[PINNED_MAX];
  Dl_info info;
  if (!address || !dladdr(address, &info) || !info.dli_fname)
    return address;
  for (int i = 0; i < PINNED_MAX; i++) {
    void *base = NULL;
    if (atomic_compare_exchange_strong(&pinned[i], &base, info.dli_fbase)) {
      library_pin(info.dli_fname);
      return address;
    }
    if (base == info.dli_fbase)
      return address;
  }
  library_pin(info.dli_fname);
  return address;
}

static bool same_folder(const char *a, const char *b) {
  size_t n = (size_t)(base_name(a) - a);
  return n == (size_t)(base_name(b) - b) && memcmp(a, b, n) == 0;
}

// True if `address` is a function of the installation of this library that the
// process uses, which is the first one seen. False for other installations and
// for functions of another interposer. Both the dispatcher and the sub-library
// beside it export cuDNN's functions.
static bool installation_check(sdg_library_t library, void *address) {
  const char *stem = sdg_library_name(library);
  Dl_info info;
  if (!address || !dladdr(address, &info) || !info.dli_fname ||
      strncmp(base_name(info.dli_fname), stem, strlen(stem)) != 0)
    return false;
  pthread_mutex_lock(&chosen_lock);
  char *mine = chosen[library];
  if (!mine[0] && strlen(info.dli_fname) < sizeof chosen[0])
    strcpy(mine, info.dli_fname);
  bool same = library == SDG_LIBRARY_CUDNN ? same_folder(mine, info.dli_fname)
                                           : strcmp(mine, info.dli_fname) == 0;
  pthread_mutex_unlock(&chosen_lock);
  return same;
}

static void *file_find(const char *file, const char *name) {
  void *handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  void *address = handle ? sdg_dlsym_real(handle, name) : NULL;
  if (handle && !address)
    dlclose(handle);
  return address;
}

// The program's dlerror() must not show errors from here.
static void *loaded_find(sdg_library_t library, const char *name) {
  // Not `return sdg_dlsym_real(...)`: RTLD_NEXT depends on the return address,
  // which must lie in this library.
  void *address = sdg_dlsym_real(RTLD_NEXT, name);
  if (!address && sdg_registry_watches()) {
    char file[sizeof chosen[0]];
    pthread_mutex_lock(&chosen_lock);
    strcpy(file, chosen[library]);
    pthread_mutex_unlock(&chosen_lock);
    if (file[0])
      address = file_find(file, name);
  }
  for (int i = 0; !address && i < SONAMES_MAX && sonames[library][i]; i++)
    address = file_find(sonames[library][i], name);
  dlerror();
  // A program that asked for nothing takes no lock.
  if (address_pin(address) && sdg_registry_watches())
    (void)installation_check(library, address);
  return address;
}

void sdg_real_after_fork(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&chosen_lock, NULL);
}

// Keeps the first address found for the entry and returns the one kept.
static void *entry_keep(int entry, void *address) {
  void *kept = NULL;
  if (!address || atomic_compare_exchange_strong(&found[entry], &kept, address))
    return address;
  return kept;
}

// Whether the library calls entries itself.
static bool expects_calls(sdg_library_t library) {
  return library == SDG_LIBRARY_CUDNN || library == SDG_LIBRARY_CUBLAS ||
         library == SDG_LIBRARY_CUBLASLT;
}

void *sdg_real_find(int entry) {
  void *address = atomic_load_explicit(&found[entry], memory_order_acquire);
  if (!address)
    address = entry_keep(
        entry, loaded_find(sdg_entry[entry].library, sdg_entry[entry].name));
  if (address && expects_calls(sdg_entry[entry].library))
    sdg_ranges_expect();
  return address;
}

static bool is_loaded(sdg_library_t library) {
  bool loaded = false;
  for (int i = 0; !loaded && i < SONAMES_MAX && sonames[library][i]; i++) {
    void *handle = dlopen(sonames[library][i], RTLD_LAZY | RTLD_NOLOAD);
    loaded = handle != NULL;
    if (handle)
      dlclose(handle);
  }
  return loaded;
}

static void *library_load(sdg_library_t library, const char *name) {
  void *address = NULL;
  if (!is_loaded(library))
    sdg_library_set_brought(library);
  for (int i = 0; !address && i < SONAMES_MAX && sonames[library][i]; i++) {
    void *handle = dlopen(sonames[library][i], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      continue;
    address = sdg_dlsym_real(handle, name);
    if (!address)
      dlclose(handle);
  }
  dlerror();
  return address;
}

static void *function_find(sdg_library_t library, const char *name) {
  int entry = sdg_entry_find(name);
  void *address =
      entry >= 0 ? sdg_real_find(entry) : loaded_find(library, name);
  return address ? address : library_load(library, name);
}

void *sdg_real_function(sdg_library_t library, const char *name) {
  if (library == SDG_LIBRARY_NCCL) {
    char alias[64] = "p";
    strncat(alias, name, sizeof alias - 2);
    void *address = function_find(library, alias);
    if (address)
      return address;
  }
  return function_find(library, name);
}

bool sdg_real_record(int entry, void *address) {
  sdg_library_t library = sdg_entry[entry].library;
  if (!installation_check(library, address))
    return false;
  entry_keep(entry, address_pin(address));
  if (expects_calls(library))
    sdg_ranges_expect();
  return true;
}
