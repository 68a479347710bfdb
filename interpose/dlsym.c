// SPDX-License-Identifier: Apache-2.0
// Programs that look cuDNN up by name: dlsym and dlvsym on an explicit handle
// return sundog's stubs if a split was asked for.
#include "interpose/dlsym.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "interpose/load.h"
#include "interpose/ranges.h"
#include "interpose/real.h"
#include "interpose/slot.h"
#include "interpose/symbol.h"
#include "rules/view/registry.h"

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

// The entry that is looked up; -1 if the call must go on unchanged. Other names
// leave at once and call nothing, because dlsym may run before libc is
// initialised.
static int entry_wanted(void *handle, const char *name, const void *caller) {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name ||
      name[0] != 'c' || name[1] != 'u' || (name[2] != 'd' && name[2] != 'b'))
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

void *sdg_dlsym_hook(void *handle, const char *name, const void *caller) {
  dlsym_t *next = dlsym_next();
  int entry = entry_wanted(handle, name, caller);
  return entry < 0 ? NULL : answer(entry, next(handle, name));
}

void *sdg_dlvsym_hook(void *handle, const char *name, const char *version,
                      const void *caller) {
  dlvsym_t *next = dlvsym_next();
  int entry = entry_wanted(handle, name, caller);
  return entry < 0 ? NULL : answer(entry, next(handle, name, version));
}
