// SPDX-License-Identifier: Apache-2.0
// Programs that look cuDNN up by name: dlsym and dlvsym on an explicit handle
// return sundog's stubs if a split was asked for.
#include "interpose/dlsym.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "interpose/function/function.h"
#include "interpose/load.h"
#include "interpose/loaded.h"
#include "interpose/ranges.h"
#include "interpose/real.h"
#include "interpose/slot.h"
#include "interpose/symbol.h"
#include "rules/view/registry.h"
#include "src/base/vendor.h"
#include "src/job/job.h"

typedef void *dlsym_t(void *, const char *);
typedef void *dlvsym_t(void *, const char *, const char *);

// Jump targets of the exported functions (arch.inc), set before each jump.
_Atomic(dlsym_t *) sdg_dlsym_next;
_Atomic(dlvsym_t *) sdg_dlvsym_next;

static void *find_nothing(void *handle, const char *name) {
  (void)handle, (void)name;
  return NULL;
}

static void *find_no_version(void *handle, const char *name,
                             const char *version) {
  (void)handle, (void)name, (void)version;
  return NULL;
}

static dlsym_t *dlsym_next(void) {
  dlsym_t *next = atomic_load_explicit(&sdg_dlsym_next, memory_order_acquire);
  if (next)
    return next;
  next = (dlsym_t *)sdg_symbol_next("dlsym");
  if (!next)
    next = find_nothing;
  atomic_store_explicit(&sdg_dlsym_next, next, memory_order_release);
  return next;
}

static dlvsym_t *dlvsym_next(void) {
  dlvsym_t *next = atomic_load_explicit(&sdg_dlvsym_next, memory_order_acquire);
  if (next)
    return next;
  next = (dlvsym_t *)sdg_symbol_next("dlvsym");
  if (!next)
    next = find_no_version;
  atomic_store_explicit(&sdg_dlvsym_next, next, memory_order_release);
  return next;
}

void *sdg_dlsym_real(void *handle, const char *name) {
  // The next dlsym takes this frame's return address as its caller, so that
  // RTLD_NEXT means behind libsundog.so.
  void *address = dlsym_next()(handle, name);
  __asm__ volatile("" : "+r"(address));
  return address;
}

// NVIDIA's libraries have runtimes of their own, too. They are not the program.
static bool is_vendors(const char *path) {
  static const char *const stem[] = {"libcu", "libnccl", "libnpp", "libnv"};
  const char *slash = strrchr(path, '/');
  const char *file = slash ? slash + 1 : path;
  for (size_t i = 0; i < sizeof stem / sizeof *stem; i++)
    if (strncmp(file, stem[i], strlen(stem[i])) == 0)
      return true;
  return false;
}

// A CUDA runtime that is linked into the program gets all functions of the
// driver by one that it looks up here. Other programs that use the driver do
// the same; only a runtime has this message.
static void runtime_note(const char *name, const void *caller) {
  static const char first[] = "cuGetProcAddress";
  static const char message[] =
      "CUDA driver version is insufficient for CUDA runtime version";
  char object[128];
  Dl_info info;
  for (size_t i = 0; i + 1 < sizeof first; i++)
    if (name[i] != first[i])
      return;
  if (!environ)
    return;
  sdg_load_options();
  if (!sdg_job_asked() || sdg_slot_disarmed() || !dladdr(caller, &info) ||
      !info.dli_fname || is_vendors(info.dli_fname))
    return;
  if (sdg_loaded_contains(caller, message, object, sizeof object))
    sdg_library_note_own_cudart(object);
}

// The entry that is looked up; -1 if the call must go on unchanged. Other names
// leave at once and call nothing, because dlsym may run before libc is
// initialised.
static int entry_wanted(void *handle, const char *name, const void *caller) {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name ||
      name[0] != 'c' || name[1] != 'u')
    return -1;
  if (name[2] == 'G')
    runtime_note(name, caller);
  if (name[2] != 'd' && name[2] != 'b')
    return -1;
  if (!environ)
    return -1;
  sdg_load_options();
  if (!sdg_registry_watches() || sdg_slot_disarmed())
    return -1;
  int entry = sdg_entry_find(name);
  if (entry < 0)
    return -1;
  // The cuDNN dispatcher looks up the same names in its sub-libraries. With
  // sundog's stubs it would call itself forever.
  Dl_info info;
  if (sdg_ranges_hold(caller))
    return -1;
  if (dladdr(caller, &info) && info.dli_fname &&
      sdg_ranges_is_cudnn(info.dli_fname)) {
    sdg_ranges_expect();
    return -1;
  }
  return entry;
}

static void *answer(int entry, void *address) {
  return address && sdg_real_record(entry, address) ? sdg_entry[entry].stub
                                                    : NULL;
}

// A declared function of the program's own, from an explicit handle; -1: none.
static int function_wanted(void *handle, const char *name) {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name || !environ)
    return -1;
  return sdg_function_find(name);
}

// Whether the name may be that of a function that the program has described.
static bool may_be_defined(void *handle, const char *name) {
  return handle != RTLD_NEXT && name && sdg_function_any_defined();
}

void *sdg_dlsym_hook(void *handle, const char *name, const void *caller) {
  dlsym_t *next = dlsym_next();
  int function = function_wanted(handle, name);
  if (function >= 0)
    return sdg_function_record(function, next(handle, name));
  if (may_be_defined(handle, name)) {
    void *code = sdg_function_redefined(name, next(handle, name));
    if (code)
      return code;
  }
  int entry = entry_wanted(handle, name, caller);
  return entry < 0 ? NULL : answer(entry, next(handle, name));
}

void *sdg_dlvsym_hook(void *handle, const char *name, const char *version,
                      const void *caller) {
  dlvsym_t *next = dlvsym_next();
  int function = function_wanted(handle, name);
  if (function >= 0)
    return sdg_function_record(function, next(handle, name, version));
  if (may_be_defined(handle, name)) {
    void *code = sdg_function_redefined(name, next(handle, name, version));
    if (code)
      return code;
  }
  int entry = entry_wanted(handle, name, caller);
  return entry < 0 ? NULL : answer(entry, next(handle, name, version));
}
