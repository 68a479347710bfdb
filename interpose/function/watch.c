// SPDX-License-Identifier: Apache-2.0
// Notes the arguments of watched functions, for `sundog inspect`.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "interpose/capture.h"
#include "interpose/function/real.h"
#include "interpose/function/watch.h"
#include "interpose/load.h"
#include "interpose/loaded.h"
#include "rules/memory/memory.h"
#include "rules/observe/arguments.h"
#include "src/call/functions.h"
#include "src/observe/inspect_record.h"

// In the object that `sundog inspect` preloads; NULL without it.
extern sdg_functions_t sundog_watched __attribute__((weak));

#if defined(__x86_64__)
enum { REGISTERS = 6 };
#else
enum { REGISTERS = 8 };
#endif

// How many bytes of a register of vectors arguments may use; read by
// sundog_watch.
extern unsigned sdg_watch_vector_bytes;
__attribute__((visibility("hidden"))) unsigned sdg_watch_vector_bytes = 16;

enum {
  ALWAYS = 1024, // calls of a function that are looked at
  SELDOM = 64,   // then one of so many
  LOWEST = 65536 // addresses of memory are not smaller
};
static const uint64_t HIGHEST = UINT64_C(1) << 57;

// cuMemGetAddressRange
typedef int range_t(unsigned long long *base, size_t *bytes,
                    unsigned long long address);

static struct {
  _Atomic(void *) real;
  _Atomic(uint64_t) calls;
  char library[SDG_ARGUMENTS_LIBRARY_BYTES];
} watched[SDG_WATCHED_MAX];

#if defined(__x86_64__)
// Earlier calls, by constructors, keep registers of 16 bytes.
__attribute__((constructor)) static void vectors_measure(void) {
  if (__builtin_cpu_supports("avx512f"))
    sdg_watch_vector_bytes = 64;
  else if (__builtin_cpu_supports("avx"))
    sdg_watch_vector_bytes = 32;
}
#endif

// A function that no loaded library has.
static uint64_t nothing(void) {
  return UINT64_MAX;
}

// Threads that search at the same time find the same.
static void *real_find(unsigned index) {
  char library[SDG_ARGUMENTS_LIBRARY_BYTES];
  void *real = sdg_function_look(sundog_watched.row[index].name, library,
                                 sizeof library);
  if (!real)
    return (void *)nothing;
  sdg_arguments_name(index, sundog_watched.row[index].name, library,
                     &watched[index].calls);
  atomic_store(&watched[index].real, real);
  return real;
}

// Copies memory that may not be there. Returns the number of bytes.
static ssize_t memory_read(uint64_t address, void *out, size_t bytes) {
  struct iovec to = {out, bytes}, from = {(void *)(uintptr_t)address, bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0);
}

// The driver, if the program uses the CUDA runtime. The runtime has loaded it;
// the host device's has not.
static void *driver_find(void) {
  static const char *const runtimes[] = {"libcudart.so", NULL};
  unsigned long long seen = 0;
  char name[64];
  return sdg_loaded_find(runtimes, &seen, name, sizeof name)
             ? dlopen("libcuda.so.1", RTLD_NOW)
             : NULL;
}

// Asks the driver, which knows every kind of memory, about those that sundog
// has not seen.
bool sdg_watch_room(uint64_t address, size_t *out_bytes) {
  static _Atomic(range_t *) range;
  unsigned long long base;
  size_t bytes;
  const void *at = (const void *)(uintptr_t)address;
  if (address < LOWEST || address > HIGHEST)
    return false;
  if (sdg_memory_room(at, out_bytes))
    return true;
  range_t *find = atomic_load(&range);
  if (!find) {
    void *driver = driver_find();
    void *found = driver ? dlsym(driver, "cuMemGetAddressRange_v2") : NULL;
    memcpy(&find, &found, sizeof find);
    atomic_store(&range, find);
  }
  if (!find || find(&base, &bytes, address) != 0 || address - base >= bytes)
    return false;
  *out_bytes = bytes - (size_t)(address - base);
  return true;
}

static bool integer_read(uint64_t address, int32_t *out) {
  return address >= LOWEST &&
         memory_read(address, out, sizeof *out) == (ssize_t)sizeof *out;
}

bool sdg_watch_looks(uint64_t calls) {
  return calls < ALWAYS || calls % SELDOM == 0;
}

// What lies on the stack, where arguments may be. The stack may end.
static int stack_read(const uint64_t *stack, uint64_t *out, int count) {
  ssize_t got =
      memory_read((uint64_t)(uintptr_t)stack, out, (size_t)count * sizeof *out);
  return got < 0 ? 0 : (int)((size_t)got / sizeof *out);
}

void *sdg_watch_called(unsigned number, const uint64_t *integer,
                       const uint64_t *stack);

// Called by sundog_watch, which keeps the registers of arguments. Returns where
// the call goes.
__attribute__((visibility("hidden"))) void *
sdg_watch_called(unsigned number, const uint64_t *integer,
                 const uint64_t *stack) {
  unsigned index = number - SDG_FUNCTIONS_FIRST;
  int error = errno;
  if (sdg_capture_is_foreign(NULL)) { // a signal's, during a note
    void *found = atomic_load(&watched[index].real);
    if (!found)
      found = real_find(index);
    errno = error;
    return found;
  }
  sdg_capture_enter();
  sdg_load_options();
  void *real = atomic_load(&watched[index].real);
  if (!real)
    real = real_find(index);
  uint64_t calls = atomic_fetch_add(&watched[index].calls, 1);
  if (sdg_inspect_record_wanted() && sdg_watch_looks(calls)) {
    sdg_arguments_t arguments = {
        .registers = REGISTERS, .room = sdg_watch_room, .read = integer_read};
    for (int i = 0; i < REGISTERS; i++)
      arguments.value[i] = integer[i];
    arguments.count = REGISTERS + stack_read(stack, arguments.value + REGISTERS,
                                             SDG_ARGUMENTS_SEEN - REGISTERS);
    sdg_load_watch_fork();
    sdg_arguments_note(index, &arguments);
  }
  sdg_capture_leave();
  errno = error;
  return real;
}
