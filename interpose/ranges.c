// SPDX-License-Identifier: Apache-2.0
// Finds the code of the libcudnn* and libcublas* libraries in memory.
#include "interpose/ranges.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { RANGES_MAX = 64, NAME_BYTES = 1024, SCAN_MAX = 16 };

// Ranges are only added, because these libraries are never unloaded.
static struct { _Atomic(uintptr_t) low, high; } range[RANGES_MAX];
static atomic_int ranges;
static atomic_bool scan_wanted;
static pthread_mutex_t scan_lock = PTHREAD_MUTEX_INITIALIZER;

bool sdg_ranges_is_cudnn(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *file = slash ? slash + 1 : path;
  return strncmp(file, "libcudnn", strlen("libcudnn")) == 0;
}

// Whether this is cuBLAS, whose second library also calls entries.
static bool is_cublas(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *file = slash ? slash + 1 : path;
  return strncmp(file, "libcublas.so", strlen("libcublas.so")) == 0 ||
         strncmp(file, "libcublasLt.so", strlen("libcublasLt.so")) == 0;
}

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
  if ((!sdg_ranges_is_cudnn(info->dlpi_name) && !is_cublas(info->dlpi_name)) ||
      scan->libraries == SCAN_MAX || strlen(info->dlpi_name) >= NAME_BYTES)
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
  static scan_t
      scan; // guarded by scan_lock; too large for a small thread's stack
  pthread_mutex_lock(&scan_lock);
  scan.libraries = 0;
  dl_iterate_phdr(scan_object, &scan);
  for (int n = 0; n < scan.libraries; n++) {
    if (range_holds(scan.library[n].low[0]))
      continue;
    // The library is pinned after dl_iterate_phdr, which holds a lock of the
    // linker. A library unloaded in between gets no range.
    if (!dlopen(scan.library[n].name, RTLD_LAZY | RTLD_NOLOAD)) {
      dlerror();
      continue;
    }
    for (int s = 0; s < scan.library[n].segments; s++)
      range_add(scan.library[n].low[s], scan.library[n].high[s]);
  }
  pthread_mutex_unlock(&scan_lock);
}

void sdg_ranges_expect(void) {
  atomic_store_explicit(&scan_wanted, true, memory_order_release);
}

bool sdg_ranges_hold(const void *address) {
  if (range_holds((uintptr_t)address))
    return true;
  if (!atomic_load_explicit(&scan_wanted, memory_order_acquire) ||
      !atomic_exchange(&scan_wanted, false))
    return false;
  ranges_scan();
  return range_holds((uintptr_t)address);
}
