// SPDX-License-Identifier: Apache-2.0
// Notes the kernels that a program launches, for `sundog inspect`.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/kernel.h"
#include "interpose/function/watch.h"
#include "rules/observe/arguments.h"
#include "src/call/functions.h"
#include "src/call/symbol.h"

// A kernel by its symbol: after a library was unloaded, another kernel may have
// the same address.
typedef struct seen {
  char *symbol;
  _Atomic(uint64_t) launches;
  int parameters; // 0: not known
  sdg_parameter_t parameter[SDG_ARGUMENTS_SEEN];
  char types[SDG_ARGUMENTS_SEEN * 12 + 1];
} seen_t;

static seen_t seen[SDG_ARGUMENTS_KERNELS];
static atomic_int kernels;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of writers

// The word of C for a parameter.
static const char *type_of(const sdg_parameter_t *parameter) {
  if (!parameter->is_known)
    return "?";
  if (parameter->is_address)
    return "*";
  if (parameter->kind == 'f')
    return parameter->bytes == 8 ? "double" : "float";
  if (parameter->kind != 'i')
    return "?";
  return parameter->bytes == 8   ? "long"
         : parameter->bytes == 4 ? "int"
         : parameter->bytes == 2 ? "short"
                                 : "char";
}

// Symbols of C tell no parameters.
static void parameters_read(seen_t *io) {
  sdg_symbol_t symbol;
  char name[512];
  size_t used = 0;
  if (!sdg_symbol_read(io->symbol, name, sizeof name, &symbol))
    return;
  int count = sdg_symbol_parameters(&symbol, SDG_ARGUMENTS_SEEN, io->parameter);
  io->parameters = count < 0 ? 0 : count;
  for (int i = 0; i < io->parameters; i++)
    used += (size_t)snprintf(io->types + used, sizeof io->types - used, "%s%s",
                             i ? " " : "", type_of(&io->parameter[i]));
}

static int seen_find(const char *symbol) {
  int count = atomic_load_explicit(&kernels, memory_order_acquire);
  for (int k = 0; k < count; k++)
    if (strcmp(seen[k].symbol, symbol) == 0)
      return k;
  return -1;
}

static int seen_make(const char *symbol) {
  int k = atomic_load(&kernels);
  if (k == SDG_ARGUMENTS_KERNELS || !(seen[k].symbol = strdup(symbol)))
    return -1;
  parameters_read(&seen[k]);
  sdg_arguments_name(SDG_WATCHED_MAX + (unsigned)k, seen[k].symbol, "",
                     &seen[k].launches);
  sdg_arguments_types(SDG_WATCHED_MAX + (unsigned)k, seen[k].types);
  atomic_store_explicit(&kernels, k + 1, memory_order_release);
  return k;
}

// Only addresses and integers whose size is known.
static uint64_t value_of(const sdg_parameter_t *parameter, const void *at) {
  uint64_t value = 0;
  if (!parameter->is_known ||
      (!parameter->is_address && parameter->kind != 'i'))
    return 0;
  memcpy(&value, at,
         parameter->is_address ? sizeof value : (size_t)parameter->bytes);
  return value;
}

// Kernels have no numbers of the host by address.
static bool refers(uint64_t address, int32_t *out) {
  (void)address, (void)out;
  return false;
}

static void launch_note(int k, void *const *value) {
  sdg_arguments_t arguments = {.registers = seen[k].parameters,
                               .count = seen[k].parameters,
                               .room = sdg_watch_room,
                               .read = refers};
  for (int i = 0; i < seen[k].parameters; i++)
    arguments.value[i] = value_of(&seen[k].parameter[i], value[i]);
  sdg_arguments_note(SDG_WATCHED_MAX + (unsigned)k, &arguments);
}

void sdg_watch_kernel(const void *kernel, void *const *value) {
  sdg_capture_enter();
  const char *symbol = sdg_kernel_symbol(kernel);
  int k = symbol ? seen_find(symbol) : -1;
  if (symbol && k < 0) {
    pthread_mutex_lock(&lock);
    k = seen_find(symbol);
    if (k < 0)
      k = seen_make(symbol);
    pthread_mutex_unlock(&lock);
  }
  if (k >= 0 && sdg_watch_looks(atomic_fetch_add(&seen[k].launches, 1)))
    launch_note(k, value);
  sdg_capture_leave();
}
