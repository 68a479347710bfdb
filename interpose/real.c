// SPDX-License-Identifier: Apache-2.0
// Looks the vendor's functions up: by what dlsym told the program, by the
// global scope behind libsundog.so, by the loaded libraries' sonames.
#include "interpose/real.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "interpose/dlsym.h"
#include "interpose/slot.h"

enum { SONAMES_MAX = 6, RANGES_MAX = 64, NAME_BYTES = 1024, SCAN_MAX = 16 };

// In the order in which they are tried.
static const char *const sonames[SDG_LIBRARY_COUNT][SONAMES_MAX] = {
    [SDG_LIBRARY_CUDART] = {"libcudart.so.13", "libcudart.so.12"},
    [SDG_LIBRARY_CUDNN] = {"libcudnn.so.9", "libcudnn_ops.so.9",
                           "libcudnn_cnn.so.9", "libcudnn_adv.so.9",
                           "libcudnn_graph.so.9"},
    [SDG_LIBRARY_NCCL] = {"libnccl.so.2"},
};

// What dlsym told the program, by entry.
static _Atomic(void *) recorded[SDG_ENTRY_COUNT];

// Code of libcudnn*: only added to, since those libraries are pinned.
static struct { _Atomic(uintptr_t) low, high; } range[RANGES_MAX];
static atomic_int ranges;
static atomic_bool scan_wanted;
static pthread_mutex_t scan_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_cudnn_file(const char *path) {
  return strncmp(base_name(path), "libcudnn", strlen("libcudnn")) == 0;
}

// Holds a reference to the library of `path` for ever, so that no slot goes
// stale when the program closes its own. False if it is not loaded any more.
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

// The program's dlerror() must not show what failed in here.
static void *loaded_find(sdg_library_t library, const char *name) {
  // Not as `return sdg_dlsym_real(...)`: RTLD_NEXT is resolved by the return
  // address, which must lie in this library.
  void *address = sdg_dlsym_real(RTLD_NEXT, name);
  __asm__ volatile("" : "+r"(address));
  for (int i = 0; !address && i < SONAMES_MAX && sonames[library][i]; i++) {
    void *handle = dlopen(sonames[library][i], RTLD_NOW | RTLD_NOLOAD);
    if (!handle)
      continue;
    address = sdg_dlsym_real(handle, name);
    if (!address)
      dlclose(handle);
  }
  dlerror();
  return address;
}

void *sdg_real_find(int entry) {
  void *address = atomic_load_explicit(&recorded[entry], memory_order_acquire);
  if (!address)
    address = address_pin(
        loaded_find(sdg_entry[entry].library, sdg_entry[entry].name));
  if (address && sdg_entry[entry].library == SDG_LIBRARY_CUDNN)
    sdg_real_expect_library();
  return address;
}

static void *library_load(sdg_library_t library, const char *name) {
  void *address = NULL;
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
  void *address = entry >= 0 ? sdg_real_find(entry)
                             : address_pin(loaded_find(library, name));
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

static bool same_folder(const char *a, const char *b) {
  size_t n = (size_t)(base_name(a) - a);
  return n == (size_t)(base_name(b) - b) && memcmp(a, b, n) == 0;
}

bool sdg_real_record(int entry, void *address) {
  sdg_library_t library = sdg_entry[entry].library;
  const char *stem = sdg_library_name(library);
  Dl_info info, known;
  if (!dladdr(address, &info) || !info.dli_fname ||
      strncmp(base_name(info.dli_fname), stem, strlen(stem)) != 0)
    return false;
  void *expected = NULL;
  if (atomic_compare_exchange_strong(&recorded[entry], &expected, address)) {
    address_pin(address);
    sdg_real_expect_library();
    return true;
  }
  // cuDNN's functions are exported by the dispatcher and by a sub-library.
  return expected == address ||
         (library == SDG_LIBRARY_CUDNN && dladdr(expected, &known) &&
          known.dli_fname && same_folder(info.dli_fname, known.dli_fname));
}

// ---- code of libcudnn* ------------------------------------------------------

typedef struct scan {
  int libraries;
  struct {
    char name[NAME_BYTES];
    int segments;
    uintptr_t low[4], high[4];
  } library[SCAN_MAX];
} scan_t;

static int scan_object(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  scan_t *scan = data;
  if (!is_cudnn_file(info->dlpi_name) || scan->libraries == SCAN_MAX ||
      strlen(info->dlpi_name) >= NAME_BYTES)
    return 0;
  int n = scan->libraries++;
  strcpy(scan->library[n].name, info->dlpi_name);
  scan->library[n].segments = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    int s = scan->library[n].segments;
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || s == 4)
      continue;
    scan->library[n].low[s] = info->dlpi_addr + segment->p_vaddr;
    scan->library[n].high[s] = scan->library[n].low[s] + segment->p_memsz;
    scan->library[n].segments++;
  }
  return 0;
}

static bool range_holds(uintptr_t address) {
  int count = atomic_load_explicit(&ranges, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (address >= atomic_load_explicit(&range[i].low, memory_order_relaxed) &&
        address < atomic_load_explicit(&range[i].high, memory_order_relaxed))
      return true;
  return false;
}

static void range_add(uintptr_t low, uintptr_t high) {
  int count = atomic_load_explicit(&ranges, memory_order_relaxed);
  if (range_holds(low) || count == RANGES_MAX)
    return;
  atomic_store_explicit(&range[count].low, low, memory_order_relaxed);
  atomic_store_explicit(&range[count].high, high, memory_order_relaxed);
  atomic_store_explicit(&ranges, count + 1, memory_order_release);
}

static void ranges_scan(void) {
  static scan_t scan; // under scan_lock; too large for a thread's small stack
  pthread_mutex_lock(&scan_lock);
  scan.libraries = 0;
  dl_iterate_phdr(scan_object, &scan);
  for (int n = 0; n < scan.libraries; n++) {
    if (range_holds(scan.library[n].low[0]))
      continue;
    // Not pinned inside dl_iterate_phdr, which holds a lock of the linker. A
    // library that went in between has no range.
    if (!library_pin(scan.library[n].name)) {
      dlerror();
      continue;
    }
    for (int s = 0; s < scan.library[n].segments; s++)
      range_add(scan.library[n].low[s], scan.library[n].high[s]);
  }
  pthread_mutex_unlock(&scan_lock);
}

void sdg_real_expect_library(void) {
  atomic_store_explicit(&scan_wanted, true, memory_order_release);
}

bool sdg_real_is_vendor_code(const void *address) {
  if (range_holds((uintptr_t)address))
    return true;
  if (!atomic_load_explicit(&scan_wanted, memory_order_acquire) ||
      !atomic_exchange(&scan_wanted, false))
    return false;
  ranges_scan();
  return range_holds((uintptr_t)address);
}
