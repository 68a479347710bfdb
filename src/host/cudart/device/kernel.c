// SPDX-License-Identifier: Apache-2.0
// The names of the program's kernels, and a report of those that it launched
// although no kernel can run.
#include "src/host/cudart/device/kernel.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/host/cudart/internal.h"

enum { PATH_BYTES = 512, NAME_BYTES = 1024 };

typedef struct kernel {
  const void *function;
  const char *name;
  bool said;
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
    kernel[kernel_count++] = (kernel_t){function, name, false};
  pthread_mutex_unlock(&lock);
}

bool host_kernel_known(const void *function) {
  pthread_mutex_lock(&lock);
  bool known = find(function) != NULL;
  pthread_mutex_unlock(&lock);
  return known;
}

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
           "what the kernel writes is missing from the results",
           name);
}
