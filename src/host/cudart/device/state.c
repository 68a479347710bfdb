// SPDX-License-Identifier: Apache-2.0
// The state of the device as a whole: fork, the sticky error, each thread's
// last error, the memory limit.
#include "src/host/cudart/internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t started_once = PTHREAD_ONCE_INIT;
static _Atomic int forked;
static _Atomic int sticky;
static size_t memory_limit;
static bool memory_poisoned;
static _Thread_local cudaError_t last_error, error_before;
static _Atomic bool used;
static _Thread_local bool in_face;
_Thread_local int host_in_callback;

void host_log(const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "sundog host device: %s\n", line);
}

static void mark_forked(void) {
  atomic_store(&forked, 1);
}

static size_t machine_bytes(void) {
  return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

// Reads the option as a number of bytes. If it is not a number: 0, which allows
// no memory, and a line on stderr.
static size_t limit_read(const char *text) {
  char *end;
  errno = 0;
  unsigned long long bytes = strtoull(text, &end, 10);
  if (errno == 0 && end != text && *end == '\0' && text[0] != '-')
    return (size_t)bytes;
  host_log("SUNDOG_HOST_MEMORY=%s is not a number of bytes; "
           "no memory is given out",
           text);
  return 0;
}

static bool yes_read(const char *name, const char *text) {
  static const char *const words[] = {"no",  "0", "false", "off", "",
                                      "yes", "1", "true",  "on"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(text, words[i]) == 0)
      return i >= 5;
  host_log("%s=%s is neither yes nor no", name, text);
  return false;
}

static void start(void) {
  const char *text = getenv("SUNDOG_HOST_MEMORY");
  memory_limit = text && *text ? limit_read(text) : machine_bytes();
  text = getenv("SUNDOG_HOST_POISON");
  memory_poisoned = text && yes_read("SUNDOG_HOST_POISON", text);
  pthread_atfork(NULL, NULL, mark_forked);
}

size_t host_memory_limit(void) {
  pthread_once(&started_once, start);
  return memory_limit;
}

bool host_memory_poisoned(void) {
  pthread_once(&started_once, start);
  return memory_poisoned;
}

cudaError_t host_result(cudaError_t error) {
  if (HOST_UNLIKELY(error != cudaSuccess))
    last_error = error;
  return error;
}

cudaError_t host_enter_query(void) {
  pthread_once(&started_once, start);
  if (HOST_UNLIKELY(!atomic_load_explicit(&used, memory_order_relaxed)) &&
      !in_face)
    atomic_store(&used, true);
  if (HOST_UNLIKELY(atomic_load_explicit(&forked, memory_order_relaxed)))
    return host_result(cudaErrorInitializationError);
  if (HOST_UNLIKELY(host_in_callback))
    return host_result(cudaErrorNotPermitted);
  return cudaSuccess;
}

void host_face_begin(void) {
  in_face = true;
  error_before = last_error;
}

void host_face_end(void) {
  in_face = false;
  last_error = error_before;
}

bool host_used(void) {
  return atomic_load(&used);
}

cudaError_t host_enter(void) {
  cudaError_t error = host_enter_query();
  return error ? error : host_result(host_sticky());
}

cudaError_t host_sticky(void) {
  return (cudaError_t)atomic_load_explicit(&sticky, memory_order_relaxed);
}

void host_sticky_set(cudaError_t error) {
  int none = cudaSuccess;
  atomic_compare_exchange_strong(&sticky, &none, (int)error);
}

void host_sticky_clear(void) {
  atomic_store(&sticky, cudaSuccess);
}

cudaError_t cudaGetLastError(void) {
  cudaError_t error = host_sticky();
  if (error == cudaSuccess)
    error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  cudaError_t error = host_sticky();
  return error != cudaSuccess ? error : last_error;
}
