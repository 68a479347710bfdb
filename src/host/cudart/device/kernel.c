// SPDX-License-Identifier: Apache-2.0
// The names of the program's kernels, the functions that stand for them, and a
// report of those that it launched although they cannot run.
#include "src/host/cudart/device/kernel.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/call/symbol.h"
#include "src/host/cudart/internal.h"

enum { PATH_BYTES = 512, NAME_BYTES = 1024 };

typedef struct kernel {
  const void *function;
  const char *name;
  bool said;
  bool searched;
  host_twin_t *twin;
} kernel_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static kernel_t *kernel; // by `lock`
static int kernel_count, kernel_room;
static bool nameless_said;
static char folder[PATH_BYTES]; // where the run's reports are; or empty

static void read_folder(void) {
  const char *text = getenv("SUNDOG_REPORT");
  if (text && strlen(text) < sizeof folder)
    strcpy(folder, text);
}

void host_kernel_begin(void) {
  pthread_once(&once, read_folder);
}

// With `lock`.
static kernel_t *find(const void *function) {
  for (int i = 0; i < kernel_count; i++)
    if (kernel[i].function == function)
      return &kernel[i];
  return NULL;
}

void host_kernel_register(const void *function, const char *name) {
  pthread_mutex_lock(&lock);
  if (kernel_count == kernel_room) {
    int room = kernel_room ? 2 * kernel_room : 64;
    kernel_t *grown = realloc(kernel, (size_t)room * sizeof *grown);
    if (grown) {
      kernel = grown;
      kernel_room = room;
    }
  }
  // A kernel has no name if memory is short.
  if (kernel_count < kernel_room)
    kernel[kernel_count++] = (kernel_t){.function = function, .name = name};
  pthread_mutex_unlock(&lock);
}

bool host_kernel_known(const void *function) {
  pthread_mutex_lock(&lock);
  bool known = find(function) != NULL;
  pthread_mutex_unlock(&lock);
  return known;
}

const char *host_kernel_name(const void *function) {
  pthread_mutex_lock(&lock);
  const kernel_t *known = find(function);
  const char *name = known ? known->name : NULL;
  pthread_mutex_unlock(&lock);
  return name;
}

// ---- twins ----

// A function that the kernel's library or, failing that, any exports.
static void *exported(const void *function, const char *name) {
  Dl_info info;
  void *library = NULL, *found = NULL;
  if (dladdr(function, &info) && info.dli_fname)
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library) {
    found = dlsym(library, name);
    dlclose(library);
  }
  if (!found)
    found = dlsym(RTLD_DEFAULT, name);
  dlerror();
  return found;
}

// The symbol of the twin in C++: in "_ZN3foo3barILi3EEEvPf" the name becomes
// bar__host, the types (dim3, dim3, void **). The second dim3 is a reference to
// the first, whose number depends on what stands in front of it.
static void *twin_of_cxx(const void *function, const char *symbol,
                         const sdg_symbol_t *parts) {
  enum { NUMBERS = 12 };
  char name[NAME_BYTES + 64], suffix[8] = "_";
  void *found = NULL;
  for (int n = 0; n < NUMBERS && !found; n++) {
    if (n > 0)
      snprintf(suffix, sizeof suffix, "%c_",
               n <= 10 ? '0' + n - 1 : 'A' + n - 11);
    const char *behind = parts->identifier + parts->identifier_bytes;
    int bytes = snprintf(name, sizeof name, "%.*s%d%.*s__host%.*s%s4dim3S%sPPv",
                         (int)(parts->length - symbol), symbol,
                         parts->identifier_bytes + 6, parts->identifier_bytes,
                         parts->identifier, (int)(parts->end - behind), behind,
                         parts->is_template ? "v" : "", suffix);
    if (bytes < 0 || (size_t)bytes >= sizeof name)
      return NULL;
    found = exported(function, name);
  }
  return found;
}

static void *twin_find(const void *function, const char *symbol) {
  char name[NAME_BYTES + 8], full[NAME_BYTES];
  sdg_symbol_t parts;
  if (strlen(symbol) >= NAME_BYTES)
    return NULL;
  snprintf(name, sizeof name, "%s__host", symbol);
  void *found = exported(function, name);
  if (found || !sdg_symbol_read(symbol, full, sizeof full, &parts))
    return found;
  found = twin_of_cxx(function, symbol, &parts);
  if (found || parts.is_template)
    return found;
  snprintf(name, sizeof name, "%.*s__host", parts.identifier_bytes,
           parts.identifier);
  return exported(function, name);
}

host_twin_t *host_kernel_twin(const void *function) {
  pthread_mutex_lock(&lock);
  const kernel_t *known = find(function);
  kernel_t seen = known ? *known : (kernel_t){.searched = true};
  pthread_mutex_unlock(&lock);
  if (seen.searched)
    return seen.twin;
  void *found = twin_find(function, seen.name); // calls the linker
  memcpy(&seen.twin, &found, sizeof found);
  pthread_mutex_lock(&lock);
  kernel_t *kept = find(function);
  if (kept) {
    kept->twin = seen.twin;
    kept->searched = true;
  }
  pthread_mutex_unlock(&lock);
  return seen.twin;
}

// ---- kernels that cannot run ----

// The demangled name, if the program has loaded the C++ library.
static void readable(const char *name, char out[NAME_BYTES]) {
  char *(*demangle)(const char *, char *, size_t *, int *);
  void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  int status = -1;
  memcpy(&demangle, &found, sizeof demangle);
  char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
  snprintf(out, NAME_BYTES, "%s", text && status == 0 ? text : name);
  free(text);
}

// Writes a file that only this process writes to.
static void leave_word(const char *name) {
  char path[PATH_BYTES + 32];
  if (!*folder)
    return;
  snprintf(path, sizeof path, "%s/unlaunched-%d", folder, (int)getpid());
  int fd =
      open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return; // already reported
  if (write(fd, name, strlen(name)) < 0)
    host_log("cannot write %s", path);
  close(fd);
}

void host_kernel_refuse(const void *function) {
  char name[NAME_BYTES] = "without a name";
  pthread_once(&once, read_folder);
  pthread_mutex_lock(&lock);
  kernel_t *known = find(function);
  bool *said = known ? &known->said : &nameless_said;
  bool first = !*said;
  *said = true;
  const char *symbol = known ? known->name : NULL;
  pthread_mutex_unlock(&lock);
  if (!first)
    return;
  if (symbol)
    readable(symbol, name);
  leave_word(name);
  host_log("kernel %s is not launched: the host device runs no device code; "
           "what the kernel writes is missing from the results (if the program "
           "exports a function with this name and __host behind it, that runs)",
           name);
}
