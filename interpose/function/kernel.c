// SPDX-License-Identifier: Apache-2.0
// Finds the section of a launched kernel, and launches it with other arguments
// and another grid.
#include "interpose/function/kernel.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/function.h"
#include "interpose/function/watch.h"
#include "interpose/invocation.h"
#include "interpose/real.h"
#include "interpose/slot.h"
#include "rules/cut/cut.h"
#include "rules/file/setup.h"
#include "rules/function/call.h"
#include "rules/function/launch.h"
#include "rules/vendor/args.h"
#include "src/base/hash.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/job/job.h"
#include "src/observe/declared.h"
#include "src/observe/report.h"

bool sdg_kernel_declared(void) {
  const sdg_rules_t *rules;
  if (!*sdg_options_get()->rules || sdg_setup_rules(&rules) != SDG_OK)
    return false;
  for (int f = 0; f < rules->functions; f++)
    if (rules->function[f].is_kernel)
      return true;
  return false;
}

// ---- which section a kernel has --------------------------------------------

// What is known of a kernel's address. Never freed.
typedef struct known {
  struct known *next;
  const void *kernel;             // a function of the program, or cudaKernel_t
  unsigned long long unloads;     // of libraries, at that time
  const sdg_function_t *function; // NULL: no section is about it
} known_t;

enum { BUCKETS = 256 };
static _Atomic(known_t *) buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what follows
static char *symbol_of[SDG_SECTIONS_MAX]; // the kernel of a section

static int unloads_read(struct dl_phdr_info *info, size_t bytes, void *out) {
  (void)bytes;
  *(unsigned long long *)out = info->dlpi_subs;
  return 1; // every object has the same number
}

// Another library may have been loaded where one was.
static unsigned long long unloads(void) {
  unsigned long long count = 0;
  dl_iterate_phdr(unloads_read, &count);
  return count;
}

typedef cudaError_t name_of_t(const char **name, const void *kernel);
typedef cudaError_t parameter_of_t(const void *kernel, size_t index,
                                   size_t *offset, size_t *bytes);

static void *runtime_function(const char *name) {
  return sdg_real_function(SDG_LIBRARY_CUDART, name);
}

const char *sdg_kernel_symbol(const void *kernel) {
  const char *symbol = NULL;
  name_of_t *name_of;
  void *found = runtime_function("cudaFuncGetName");
  memcpy(&name_of, &found, sizeof name_of);
  return found && name_of(&symbol, kernel) == cudaSuccess ? symbol : NULL;
}

// Fails if the kernel has other parameters than the section. Old runtimes, and
// the host device, do not know: then nothing is compared.
static sdg_status_t parameters_compare(const sdg_function_t *function,
                                       parameter_of_t *parameter_of,
                                       const void *kernel) {
  size_t offset, bytes;
  if (parameter_of(kernel, 0, &offset, &bytes) != cudaSuccess)
    return SDG_OK;
  for (int a = 0; a <= function->arguments; a++) {
    bool is = parameter_of(kernel, (size_t)a, &offset, &bytes) == cudaSuccess;
    bool said = a < function->arguments;
    if (is && said && bytes == sdg_kernel_argument_bytes(function, a))
      continue;
    if (!is && !said)
      return SDG_OK;
    return is && said
               ? sdg_fail(SDG_E_KERNEL_UNKNOWN,
                          "%s: '%s' has %zu bytes in the section, and "
                          "parameter %d of the kernel has %zu",
                          function->name, function->argument[a].name,
                          sdg_kernel_argument_bytes(function, a), a + 1, bytes)
               : sdg_fail(SDG_E_KERNEL_UNKNOWN,
                          "%s: the section has %d arguments, and the kernel "
                          "has %s",
                          function->name, function->arguments,
                          is ? "more" : "fewer");
  }
  return SDG_OK;
}

static sdg_status_t parameters_check(const sdg_function_t *function,
                                     const void *kernel) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  parameter_of_t *parameter_of;
  void *found = runtime_function("cudaFuncGetParamInfo");
  memcpy(&parameter_of, &found, sizeof parameter_of);
  if (!found || !cuda)
    return SDG_OK;
  sdg_status_t status = parameters_compare(function, parameter_of, kernel);
  (void)cuda->cudaGetLastError(); // asking for one too many is an error
  return status;
}

// Instances of a template may have tensors of other types.
static sdg_status_t symbol_keep(int section, const sdg_function_t *function,
                                const char *symbol) {
  if (symbol_of[section] && strcmp(symbol_of[section], symbol) != 0)
    return sdg_fail(SDG_E_KERNEL_UNKNOWN,
                    "[kernel %s] matches %s and %s: write a section for each, "
                    "with a pattern of its symbol",
                    function->name, symbol_of[section], symbol);
  if (!symbol_of[section])
    symbol_of[section] = strdup(symbol);
  return symbol_of[section] ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "%s", symbol);
}

static sdg_status_t section_find(const void *kernel,
                                 const sdg_function_t **out) {
  const sdg_rules_t *rules;
  *out = NULL;
  SDG_TRY(sdg_setup_rules(&rules));
  if (!runtime_function("cudaFuncGetName"))
    return sdg_fail(SDG_E_KERNEL_UNKNOWN,
                    "the CUDA runtime does not tell the names of kernels");
  const char *symbol = sdg_kernel_symbol(kernel);
  if (!symbol)
    return SDG_OK; // the launch fails with the same error
  int section = sdg_kernel_find(rules, symbol);
  if (section < 0)
    return SDG_OK;
  const sdg_function_t *function = &rules->function[section];
  SDG_TRY(symbol_keep(section, function, symbol));
  SDG_TRY(sdg_kernel_compare(function, symbol));
  SDG_TRY(parameters_check(function, kernel));
  *out = function;
  return SDG_OK;
}

static known_t *known_get(_Atomic(known_t *) *bucket, const void *kernel,
                          unsigned long long now) {
  known_t *known = atomic_load_explicit(bucket, memory_order_acquire);
  while (known && (known->kernel != kernel || known->unloads != now))
    known = known->next;
  return known;
}

static sdg_status_t known_make(_Atomic(known_t *) *bucket, const void *kernel,
                               unsigned long long now, known_t **out) {
  const sdg_function_t *function;
  SDG_TRY(section_find(kernel, &function));
  SDG_TRY(SDG_ALLOCATE(*out, 1, "a kernel"));
  **out = (known_t){.next = atomic_load(bucket),
                    .kernel = kernel,
                    .unloads = now,
                    .function = function};
  atomic_store_explicit(bucket, *out, memory_order_release);
  return SDG_OK;
}

static sdg_status_t function_of(const void *kernel,
                                const sdg_function_t **out) {
  unsigned long long now = unloads();
  uint64_t hash = sdg_hash_word(SDG_HASH_SEED, (uint64_t)(uintptr_t)kernel);
  _Atomic(known_t *) *bucket = &buckets[hash % BUCKETS];
  known_t *known = known_get(bucket, kernel, now);
  sdg_status_t status = SDG_OK;
  if (!known) {
    sdg_capture_enter();
    pthread_mutex_lock(&lock);
    known = known_get(bucket, kernel, now);
    if (!known)
      status = known_make(bucket, kernel, now, &known);
    pthread_mutex_unlock(&lock);
    sdg_capture_leave();
  }
  *out = status == SDG_OK ? known->function : NULL;
  return status;
}

// ---- launches --------------------------------------------------------------

typedef struct launch {
  int entry;
  const void *args; // struct sdg_args_ of the entry
  const void *kernel;
  dim3 grid;
  void **value;
  cudaError_t result;
} launch_t;

static bool has_config(int entry) {
  return entry == SDG_ENTRY_cudaLaunchKernelExC ||
         entry == SDG_ENTRY_cudaLaunchKernelExC_ptsz;
}

// Other entries have the parameters of cudaLaunchKernel.
static bool launch_read(int entry, const void *args, launch_t *out) {
  *out = (launch_t){.entry = entry, .args = args};
  if (has_config(entry)) {
    const struct sdg_args_cudaLaunchKernelExC *all = args;
    if (!all->config)
      return false;
    out->kernel = all->func;
    out->grid = all->config->gridDim;
    out->value = all->args;
  } else {
    const struct sdg_args_cudaLaunchKernel *all = args;
    out->kernel = all->func;
    out->grid = all->gridDim;
    out->value = all->args;
  }
  return out->kernel && out->value;
}

static cudaError_t relaunch(const launch_t *launch, dim3 grid, void **value) {
  void *real =
      atomic_load_explicit(&sdg_real[launch->entry], memory_order_acquire);
  if (has_config(launch->entry)) {
    const struct sdg_args_cudaLaunchKernelExC *all = launch->args;
    __typeof__(&cudaLaunchKernelExC) call;
    cudaLaunchConfig_t config = *all->config;
    memcpy(&call, &real, sizeof call);
    config.gridDim = grid;
    return call(&config, all->func, value);
  }
  const struct sdg_args_cudaLaunchKernel *all = launch->args;
  __typeof__(&cudaLaunchKernel) call;
  memcpy(&call, &real, sizeof call);
  return call(all->func, grid, all->blockDim, value, all->sharedMem,
              all->stream);
}

static sdg_status_t grid_of(const sdg_function_call_t *call, void *const *value,
                            dim3 *io_grid) {
  int64_t piece[SDG_ARGUMENTS_MAX];
  unsigned grid[SDG_GRID_DIMS] = {io_grid->x, io_grid->y, io_grid->z};
  bool other = false;
  SDG_TRY(sdg_function_integers(call->function, value, piece));
  for (int a = 0; a < call->function->arguments; a++)
    other |=
        call->function->argument[a].is_size && piece[a] != call->integer[a];
  if (other)
    SDG_TRY(sdg_kernel_grid(call->function, call->integer, piece, grid));
  *io_grid = (dim3){grid[0], grid[1], grid[2]};
  return SDG_OK;
}

// The program gets the first failure of the launches that stand for its own.
static void invoke(const sdg_function_call_t *call, void *const *value,
                   bool keeps) {
  (void)keeps;
  launch_t *launch = call->user;
  void *copy[SDG_ARGUMENTS_MAX];
  dim3 grid = launch->grid;
  sdg_status_t status = grid_of(call, value, &grid);
  if (status != SDG_OK) {
    if (!sdg_cut_wanted())
      (void)sdg_job_fail(status);
    sdg_report_fail();
    launch->result = cudaErrorLaunchFailure;
    return;
  }
  memcpy(copy, value, (size_t)call->function->arguments * sizeof *copy);
  cudaError_t result = relaunch(launch, grid, copy);
  if (launch->result == cudaSuccess)
    launch->result = result;
}

static bool refuse(sdg_status_t status, int *out_result) {
  (void)sdg_job_fail(status);
  sdg_report_fail();
  *out_result = cudaErrorLaunchFailure;
  return true;
}

// In the whole view a launch that is not shared runs in full, on memory that is
// up to date. True: it is refused.
static bool touch(int entry, const void *args, const void *caller,
                  int *out_result) {
  *out_result =
      sdg_setup_is_whole() ? sdg_capture_touch_memory(entry, args, caller) : 0;
  return *out_result != 0;
}

// Tries the launch in pieces, too.
static bool cut_launch(launch_t *launch, const void *kernel_stream,
                       int *out_result) {
  const sdg_function_t *function = NULL;
  if (function_of(launch->kernel, &function) != SDG_OK || !function)
    return false;
  launch_t played = *launch;
  sdg_function_call_t call = {.function = function,
                              .value = launch->value,
                              .stream = kernel_stream,
                              .invoke = invoke,
                              .user = &played};
  sdg_capture_enter();
  sdg_cut_t *cut = sdg_cut_begin(&call);
  *out_result = relaunch(launch, launch->grid, launch->value);
  sdg_cut_end(cut, NULL);
  sdg_capture_leave();
  return true;
}

bool sdg_kernel_capture(int entry, const void *args, const void *caller,
                        int *out_result) {
  launch_t launch;
  const sdg_function_t *function;
  if (sdg_capture_is_foreign(caller))
    return false;
  bool read = launch_read(entry, args, &launch);
  if (sdg_cut_wanted()) {
    sdg_memory_access_t used;
    sdg_invocation_access(entry, args, &used);
    return read && cut_launch(&launch, used.stream, out_result);
  }
  if (!sdg_job_asked()) { // `sundog inspect`
    if (read)
      sdg_watch_kernel(launch.kernel, launch.value);
    *out_result = sdg_capture_touch_memory(entry, args, caller);
    return *out_result != 0;
  }
  if (!read)
    return touch(entry, args, caller, out_result);
  sdg_status_t status = function_of(launch.kernel, &function);
  if (status != SDG_OK)
    return refuse(status, out_result);
  if (!function || sdg_function_passes(function, launch.value))
    return touch(entry, args, caller, out_result);
  sdg_memory_access_t memory;
  sdg_invocation_access(entry, args, &memory);
  sdg_function_call_t call = {.function = function,
                              .value = launch.value,
                              .stream = memory.stream,
                              .invoke = invoke,
                              .user = &launch};
  bool refused;
  bool done = sdg_function_capture(&call, &refused);
  *out_result = refused ? cudaErrorLaunchFailure : launch.result;
  return done || touch(entry, args, caller, out_result);
}

bool sdg_kernel_node(int entry, const void *kernel, const void *caller) {
  const sdg_function_t *function;
  int result;
  // In the whole view a graph's launches run in full.
  if (sdg_capture_is_foreign(caller) || !kernel || !sdg_job_asked() ||
      sdg_setup_is_whole())
    return false;
  sdg_status_t status = function_of(kernel, &function);
  if (status == SDG_OK && function)
    status = sdg_fail(SDG_E_KERNEL_UNKNOWN,
                      "%s makes %s a node of a graph: launch it, in a capture "
                      "if need be",
                      sdg_entry[entry].name, function->name);
  return status != SDG_OK && refuse(status, &result);
}

// ---- what became of declared kernels ----------------------------------------

typedef struct registered {
  struct registered *next;
  char symbol[];
} registered_t;
static _Atomic(registered_t *) newest;

// Runs before the rules are read.
void sdg_kernel_register(const char *symbol) {
  size_t bytes = strlen(symbol) + 1;
  registered_t *made = malloc(sizeof *made + bytes);
  if (!made)
    return;
  memcpy(made->symbol, symbol, bytes);
  made->next = atomic_load(&newest);
  while (!atomic_compare_exchange_weak(&newest, &made->next, made))
    ;
}

static bool is_registered(const sdg_rules_t *rules, int section) {
  const registered_t *at = atomic_load(&newest);
  while (at && sdg_kernel_find(rules, at->symbol) != section)
    at = at->next;
  return at != NULL;
}

void sdg_kernel_finish(void) {
  const sdg_rules_t *rules;
  if (!sdg_kernel_declared() || sdg_setup_rules(&rules) != SDG_OK)
    return;
  for (int f = 0; f < rules->functions; f++) {
    char name[SDG_FUNCTION_NAME_BYTES + 8];
    if (!rules->function[f].is_kernel)
      continue;
    snprintf(name, sizeof name, "kernel %s", rules->function[f].name);
    sdg_declared_write(name, symbol_of[f]              ? SDG_DECLARED_CALLED
                             : is_registered(rules, f) ? SDG_DECLARED_UNUSED
                                                       : SDG_DECLARED_ABSENT);
  }
}
