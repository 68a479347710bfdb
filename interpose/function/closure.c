// SPDX-License-Identifier: Apache-2.0
// Closures that capture calls of functions by their declared signatures.
#include "interpose/function/closure.h"

#include <ffi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/faithful.h"
#include "interpose/function/function.h"
#include "interpose/function/probe.h"
#include "interpose/function/structs.h"
#include "interpose/function/unwind.h"
#include "interpose/slot.h"
#include "rules/file/function/function.h"
#include "rules/function/call.h"
#include "rules/memory/memory.h"
#include "src/call/functions.h"
#include "src/job/job.h"
#include "src/observe/report.h"

// In the object that `sundog run` preloads; NULL without it.
extern sdg_functions_t sundog_functions __attribute__((weak));

typedef struct closure {
  const sdg_function_t *function;
  void (*real)(void);
  void *code; // captures a call
  sdg_probe_layout_t layout;
  atomic_bool called;
  ffi_cif cif;
  ffi_type *type[SDG_ARGUMENTS_MAX];
  ffi_type record[SDG_ARGUMENTS_MAX]; // of arguments that are structs
  ffi_type *member[SDG_ARGUMENTS_MAX][SDG_MEMBERS_MAX + 1];
} closure_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Those of stubs have the stub's number; others come from the end.
static closure_t *closures[SDG_SECTIONS_MAX];

// Routines that call sdg_function_probe with their number, 16 bytes each.
enum { PROBE_BYTES = 16 };
_Static_assert((int)SDG_SECTIONS_MAX == 32, "there are 32 in arch.inc");
extern char sdg_function_probes[];

// ---- types -----------------------------------------------------------------

static ffi_type *type_of(sdg_number_t number) {
  if (number.kind == 'f')
    return number.bytes == 8 ? &ffi_type_double : &ffi_type_float;
  bool sign = number.kind == 'i';
  switch (number.bytes) {
  case 1:
    return sign ? &ffi_type_sint8 : &ffi_type_uint8;
  case 2:
    return sign ? &ffi_type_sint16 : &ffi_type_uint16;
  case 4:
    return sign ? &ffi_type_sint32 : &ffi_type_uint32;
  default:
    return sign ? &ffi_type_sint64 : &ffi_type_uint64;
  }
}

static ffi_type *argument_type(closure_t *closure, int index) {
  const sdg_argument_t *argument = &closure->function->argument[index];
  if (sdg_argument_is_address(argument))
    return &ffi_type_pointer;
  if (!argument->members)
    return type_of(argument->number[0]);
  for (int m = 0; m < argument->members; m++)
    closure->member[index][m] = type_of(argument->number[m]);
  closure->record[index] =
      (ffi_type){.type = FFI_TYPE_STRUCT, .elements = closure->member[index]};
  return &closure->record[index];
}

// ---- calls -----------------------------------------------------------------

typedef struct pending {
  closure_t *closure;
  sdg_returned_t *result;
} pending_t;

static void invoke(const sdg_function_call_t *call, void *const *value,
                   bool keeps) {
  const pending_t *pending = call->user;
  void *copy[SDG_ARGUMENTS_MAX];
  sdg_returned_t unkept;
  memcpy(copy, value, (size_t)call->function->arguments * sizeof *copy);
  if (sdg_cut_wanted())
    sdg_faithful_poison();
  ffi_call(&pending->closure->cif, pending->closure->real,
           keeps ? pending->result : &unkept, copy);
}

// What the program gets of a refused call: -1 as an integer, NaN as a number.
static void result_refuse(const closure_t *closure, sdg_returned_t *result) {
  size_t bytes = closure->cif.rtype->size;
  memset(result, 0xff, bytes > 8 ? bytes : 8);
}

// ---- exceptions ------------------------------------------------------------

typedef struct captured {
  sdg_unwind_t unwind; // first
  const closure_t *closure;
} captured_t;

// The plan has stopped in its middle, perhaps on this rank alone.
static void captured_left(const sdg_unwind_t *unwind) {
  const captured_t *captured = (const captured_t *)unwind;
  sdg_memory_leave();
  (void)sdg_job_fail(sdg_fail(SDG_E_FUNCTION,
                              "%s: it was left by an exception, so that the "
                              "ranks' results are incomplete",
                              captured->closure->function->name));
  sdg_report_fail();
}

// True: the call was carried out, or refused.
static __attribute__((noinline)) bool
capture(closure_t *closure, sdg_returned_t *result, void **value) {
  pending_t pending = {closure, result};
  sdg_function_call_t function = {.function = closure->function,
                                  .value = value,
                                  .invoke = invoke,
                                  .user = &pending,
                                  .returned = result};
  bool refused;
  captured_t captured = {.closure = closure};
  __asm__ volatile(".cfi_personality 0x1b, sdg_unwind_frame");
  sdg_unwind_begin(&captured.unwind, captured_left);
  bool done = sdg_function_capture(&function, &refused);
  sdg_unwind_end(&captured.unwind);
  if (refused)
    result_refuse(closure, result);
  return done;
}

// A call in a process made by fork, which is no rank.
static bool child_refuses(const closure_t *closure, sdg_returned_t *result) {
  if (!sdg_slot_disarmed() || sdg_capture_is_ours(NULL))
    return false;
  sdg_capture_enter();
  bool refused = sdg_job_child(closure->function->name) != SDG_OK;
  if (refused) {
    sdg_report_fail();
    result_refuse(closure, result);
  }
  sdg_capture_leave();
  return refused;
}

// What the probe of this thread's call has read; the closure reads the same.
static _Thread_local uint64_t read_bits[SDG_ARGUMENTS_MAX];

static bool probe_was_right(const closure_t *closure, void *const *value) {
  void *read[SDG_ARGUMENTS_MAX];
  for (int i = 0; i < closure->layout.sizes; i++)
    read[closure->layout.size[i].argument] = &read_bits[i];
  return sdg_probe_agrees(closure->function, &closure->layout, value, read);
}

// Part of a faithful call, which makes the program's own call itself.
static void cut_called(closure_t *closure, void *result, void **value) {
  pending_t pending = {closure, result};
  sdg_function_call_t function = {.function = closure->function,
                                  .value = value,
                                  .invoke = invoke,
                                  .user = &pending,
                                  .returned = result};
  sdg_faithful_begin(&function);
}

static void closure_called(ffi_cif *cif, void *result, void **value,
                           void *user) {
  closure_t *closure = user;
  if (sdg_cut_wanted()) {
    cut_called(closure, result, value);
    return;
  }
  if (!atomic_load_explicit(&closure->called, memory_order_relaxed))
    atomic_store_explicit(&closure->called, true, memory_order_relaxed);
  if (child_refuses(closure, result))
    return;
  if (!probe_was_right(closure, value)) {
    (void)sdg_job_fail(sdg_fail(SDG_E_INTERNAL, "where %s gets its arguments",
                                closure->function->name));
    sdg_report_fail();
    memset(result, 0xff, sizeof(sdg_returned_t));
    return;
  }
  if (!sdg_capture_is_foreign(NULL) && capture(closure, result, value))
    return;
  ffi_call(cif, closure->real, result, value);
  if (sdg_capture_watches())
    sdg_capture_after(0);
}

void *sdg_function_probe(unsigned index, const char *saved) {
  const closure_t *closure = closures[index];
  void *value[SDG_ARGUMENTS_MAX];
  sdg_probe_values(&closure->layout, saved, value);
  if (!sdg_slot_disarmed() && !sdg_job_failed() &&
      sdg_function_passes(closure->function, value))
    return (void *)closure->real;
  for (int i = 0; i < closure->layout.sizes; i++)
    memcpy(&read_bits[i], value[closure->layout.size[i].argument],
           sizeof read_bits[i]);
  return closure->code;
}

// ---- making them -----------------------------------------------------------

static sdg_status_t closure_make(const sdg_function_t *function, void *real,
                                 closure_t **out) {
  static ffi_type *result_member[] = {&ffi_type_uint64, &ffi_type_double, NULL};
  static ffi_type sdg_returned_type = {.type = FFI_TYPE_STRUCT,
                                       .elements = result_member};
  ffi_type *returned = &sdg_returned_type;
  const char *wrong = sdg_function_struct_wrong(function);
  if (wrong)
    return sdg_fail(SDG_E_FUNCTION_UNSEEN,
                    "'%s': the libffi in sundog passes '%s' wrongly: a struct "
                    "of integers and then floating numbers in the place of the "
                    "sixth integer. Another libffi may not",
                    function->name, wrong);
  closure_t *closure;
  SDG_TRY(SDG_ALLOCATE(closure, 1, "a closure"));
  closure->function = function;
  memcpy(&closure->real, &real, sizeof closure->real);
  for (int a = 0; a < function->arguments; a++)
    closure->type[a] = argument_type(closure, a);
  if (function->returned.number.bytes)
    returned = type_of(function->returned.number);
  ffi_closure *made = ffi_closure_alloc(sizeof *made, &closure->code);
  if (!made ||
      ffi_prep_cif(&closure->cif, FFI_DEFAULT_ABI,
                   (unsigned)function->arguments, returned,
                   closure->type) != FFI_OK ||
      ffi_prep_closure_loc(made, &closure->cif, closure_called, closure,
                           closure->code) != FFI_OK)
    return sdg_fail(SDG_E_FUNCTION_UNSEEN,
                    "no code can be made for calls of '%s': does this system "
                    "forbid memory that is executable?",
                    function->name);
  sdg_probe_layout(function, &closure->layout);
  *out = closure;
  return SDG_OK;
}

static sdg_status_t faithful_make(const closure_t *closure, void **out_code) {
  void (*code)(void);
  memcpy(&code, &closure->code, sizeof code);
  return sdg_faithful_make(closure->function, code, closure->real, out_code);
}

sdg_status_t sdg_function_closure_at(unsigned index,
                                     const sdg_function_t *function, void *real,
                                     void **out_code) {
  pthread_mutex_lock(&lock);
  sdg_status_t status = closure_make(function, real, &closures[index]);
  pthread_mutex_unlock(&lock);
  *out_code = sdg_function_probes + PROBE_BYTES * index;
  if (status == SDG_OK && sdg_cut_wanted())
    status = faithful_make(closures[index], out_code);
  return status;
}

sdg_status_t sdg_function_closure(const sdg_function_t *function, void *real,
                                  void **out_code,
                                  const atomic_bool **out_called) {
  int stubs = &sundog_functions ? (int)sundog_functions.count : 0;
  sdg_status_t status = SDG_OK;
  pthread_mutex_lock(&lock);
  int index = SDG_SECTIONS_MAX - 1;
  while (index >= stubs && closures[index])
    index--;
  if (index < stubs)
    status = sdg_fail(SDG_E_RULES_VALUE,
                      "sundog_define %s: more than %d "
                      "functions",
                      function->name, SDG_SECTIONS_MAX);
  else
    status = closure_make(function, real, &closures[index]);
  pthread_mutex_unlock(&lock);
  if (status != SDG_OK)
    return status;
  *out_code = sdg_function_probes + PROBE_BYTES * index;
  *out_called = &closures[index]->called;
  return SDG_OK;
}
