// SPDX-License-Identifier: Apache-2.0
// Closures that capture calls of functions by their declared signatures.
#include "interpose/function/function.h"

#include <ffi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/closure.h"
#include "interpose/function/probe.h"
#include "interpose/function/real.h"
#include "interpose/function/structs.h"
#include "interpose/load.h"
#include "interpose/slot.h"
#include "rules/file/function/function.h"
#include "rules/file/setup.h"
#include "rules/function/call.h"
#include "rules/memory/memory.h"
#include "rules/observe/reach.h"
#include "rules/vendor/vendor.h"
#include "rules/view/registry.h"
#include "src/base/options.h"
#include "src/call/functions.h"
#include "src/job/job.h"
#include "src/observe/declared.h"
#include "src/observe/report.h"
#include "src/observe/trace.h"

// In the object that `sundog run` preloads; NULL without it.
extern sdg_functions_t sundog_functions __attribute__((weak));

// What a call may return: an integer or address, or a number. On x86-64 this
// struct is returned in both registers, so that it is right for each.
typedef struct result {
  uint64_t integer;
  double number;
} result_t;

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
static _Atomic(void *) found[SDG_SECTIONS_MAX]; // what the program looked up
static closure_t *closures[SDG_SECTIONS_MAX];   // before the slot is set

// Routines that call sdg_function_probe with their number, 16 bytes each.
enum { PROBE_BYTES = 16 };
_Static_assert((int)SDG_SECTIONS_MAX == 32, "there are 32 in arch.inc");
extern char sdg_function_probes[];

int sdg_function_find(const char *name) {
  if (!&sundog_functions)
    return -1;
  for (uint64_t i = 0; i < sundog_functions.count; i++) {
    const char *a = name, *b = sundog_functions.row[i].name;
    while (*a && *a == *b)
      a++, b++;
    if (*a == *b)
      return (int)i;
  }
  return -1;
}

void *sdg_function_record(int index, void *address) {
  sdg_functions_row_t *row = &sundog_functions.row[index];
  void *kept = NULL;
  if (!address || address == row->stub || index >= SDG_SECTIONS_MAX)
    return address;
  if (atomic_compare_exchange_strong(&found[index], &kept, address) ||
      kept == address)
    return row->stub;
  (void)!sdg_fail(SDG_E_FUNCTION_UNSEEN,
                  "the program has looked up several functions '%s'",
                  row->name);
  return address;
}

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
  if (argument->use != SDG_ARGUMENT_NUMBER || argument->by_reference)
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
  result_t *result;
} pending_t;

static void invoke(const sdg_function_call_t *call, void *const *value,
                   bool keeps) {
  const pending_t *pending = call->user;
  void *copy[SDG_ARGUMENTS_MAX];
  result_t unkept;
  memcpy(copy, value, (size_t)call->function->arguments * sizeof *copy);
  ffi_call(&pending->closure->cif, pending->closure->real,
           keeps ? pending->result : &unkept, copy);
}

// -1, or no number.
static void result_refuse(const closure_t *closure, result_t *result) {
  size_t bytes = closure->cif.rtype->size;
  memset(result, 0xff, bytes > 8 ? bytes : 8);
}

// Whole view: memory of unknown extent that a shared call may use, so that it
// has to be up to date. Tensors are brought up to date by what the section says
// of them. If the call is not shared, the calls that the function makes itself
// are followed, each by what it uses.
static void memory_note(const sdg_function_call_t *function,
                        sdg_memory_access_t *out, sdg_call_t *io_call) {
  int count = 0;
  if (!sdg_setup_is_whole())
    return;
  for (int a = 0; a < function->function->arguments; a++) {
    const sdg_argument_t *argument = &function->function->argument[a];
    bool address = argument->use == SDG_ARGUMENT_POINTER ||
                   (argument->use == SDG_ARGUMENT_IN && argument->tensor < 0);
    if (!address)
      continue;
    if (count == 0)
      *out = (sdg_memory_access_t){.name = function->function->name,
                                   .stream = io_call->stream};
    sdg_access_t *access = &out->access[count++];
    memcpy(&access->at, function->value[a], sizeof access->at);
    access->reads = true;
    access->writes = argument->use == SDG_ARGUMENT_POINTER;
    out->accesses = count;
    io_call->memory = out;
  }
}

// ---- exceptions ------------------------------------------------------------

// A call that is being carried out. A function may leave it by an exception of
// C++.
typedef struct frame {
  const closure_t *closure;
  struct frame *outer;
  int depth; // at the call
} frame_t;
static _Thread_local frame_t *innermost
    __attribute__((tls_model("initial-exec")));

int sdg_function_left(int version, int actions, uint64_t class, void *exception,
                      void *context);

// The personality of capture()'s frame: whoever unwinds the stack calls it, and
// goes on. The plan was left in its middle, on this rank perhaps alone.
__attribute__((used)) int sdg_function_left(int version, int actions,
                                            uint64_t class, void *exception,
                                            void *context) {
  enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 }; // as in <unwind.h>
  frame_t *frame = innermost;
  (void)version, (void)class, (void)exception, (void)context;
  if (!(actions & CLEANUP_PHASE) || !frame)
    return CONTINUE_UNWIND;
  innermost = frame->outer;
  sdg_memory_leave();
  (void)sdg_job_fail(sdg_fail(SDG_E_FUNCTION,
                              "%s: it was left by an exception, so that the "
                              "ranks' results are incomplete",
                              frame->closure->function->name));
  sdg_report_fail();
  sdg_capture_unwind(frame->depth);
  return CONTINUE_UNWIND;
}

bool sdg_function_capture(sdg_function_call_t *function, bool *out_refused) {
  sdg_memory_access_t memory;
  sdg_call_t call;
  bool done = true, refused = true, observed = sdg_options_get()->observing;
  sdg_capture_enter();
  sdg_status_t status = sdg_function_call_init(function, &call);
  if (status == SDG_OK) {
    memory_note(function, &memory, &call);
    if (observed)
      sdg_reach_try(&call);
    done = sdg_registry_judge(&call) == SDG_VERDICT_DONE;
    if (observed)
      sdg_trace_call(&call, done);
    refused = done && call.refused;
    if (done && !refused && call.result) { // of the runtime: no call was made
      refused = true;
      status = sdg_fail(SDG_E_CUDA, "%s: %s", function->function->name,
                        sdg_vendor_text(SDG_STREAM_GIVEN, call.result));
      sdg_report_fail();
    }
  } else {
    sdg_report_fail();
  }
  // The function may have no status to return: later calls of the CUDA runtime
  // fail, so that nobody takes old values for results.
  if (refused)
    (void)sdg_job_fail(status == SDG_OK ? SDG_E_FUNCTION : status);
  sdg_capture_leave();
  if (sdg_job_disarmed())
    sdg_slot_disarm();
  *out_refused = refused;
  return done;
}

// True: the call was carried out, or refused.
static __attribute__((noinline)) bool capture(closure_t *closure,
                                              result_t *result, void **value) {
  pending_t pending = {closure, result};
  sdg_function_call_t function = {.function = closure->function,
                                  .value = value,
                                  .invoke = invoke,
                                  .user = &pending,
                                  .returned = result};
  bool refused;
  frame_t frame = {closure, innermost, sdg_capture_depth()};
  __asm__ volatile(".cfi_personality 0x1b, sdg_function_left");
  innermost = &frame;
  bool done = sdg_function_capture(&function, &refused);
  innermost = frame.outer;
  if (refused)
    result_refuse(closure, result);
  return done;
}

// A call in a process made by fork, which is no rank.
static bool child_refuses(const closure_t *closure, result_t *result) {
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

static void closure_called(ffi_cif *cif, void *result, void **value,
                           void *user) {
  closure_t *closure = user;
  if (!atomic_load_explicit(&closure->called, memory_order_relaxed))
    atomic_store_explicit(&closure->called, true, memory_order_relaxed);
  if (child_refuses(closure, result))
    return;
  if (!probe_was_right(closure, value)) {
    (void)sdg_job_fail(sdg_fail(SDG_E_INTERNAL, "where %s gets its arguments",
                                closure->function->name));
    sdg_report_fail();
    memset(result, 0xff, sizeof(result_t));
    return;
  }
  if (sdg_capture_is_foreign(NULL) || !capture(closure, result, value))
    ffi_call(cif, closure->real, result, value);
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

// ---- the first call --------------------------------------------------------

static sdg_status_t closure_make(const sdg_function_t *function, void *real,
                                 closure_t **out) {
  static ffi_type *result_member[] = {&ffi_type_uint64, &ffi_type_double, NULL};
  static ffi_type result_type = {.type = FFI_TYPE_STRUCT,
                                 .elements = result_member};
  ffi_type *returned = &result_type;
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

// Numbers from the end of the table; those at its begin are the stubs'.
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

// A function that no loaded library has, or whose closure could not be made.
static result_t nothing(void) {
  return (result_t){UINT64_MAX, -1};
}

static const sdg_function_t *declared(const char *symbol) {
  const sdg_rules_t *rules;
  if (sdg_setup_rules(&rules) != SDG_OK)
    return NULL;
  for (int f = 0; f < rules->functions; f++)
    if (!rules->function[f].is_kernel &&
        strcmp(rules->function[f].symbol, symbol) == 0)
      return &rules->function[f];
  return NULL;
}

static void *target_make(unsigned index) {
  const char *name = sundog_functions.row[index].name;
  const sdg_function_t *function = sdg_job_asked() ? declared(name) : NULL;
  void *real = atomic_load(&found[index]);
  if (!real)
    real = sdg_function_real(name, function ? function->library : "");
  if (!real) {
    (void)sdg_job_fail(SDG_E_FUNCTION_UNSEEN);
    sdg_report_fail();
    return (void *)nothing;
  }
  atomic_store(&found[index], real);
  if (!function || sdg_slot_disarmed())
    return real;
  sdg_load_watch_fork();
  if (closure_make(function, real, &closures[index]) == SDG_OK)
    return sdg_function_probes + PROBE_BYTES * index;
  sdg_report_fail();
  return (void *)nothing;
}

void *sdg_function_resolve(unsigned index) {
  sdg_load_options();
  sdg_capture_enter();
  pthread_mutex_lock(&lock);
  void *target = target_make(index);
  __atomic_store_n(&sundog_functions.row[index].slot, target, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
  sdg_capture_leave();
  return target;
}

void sdg_function_finish(void) {
  const sdg_rules_t *rules;
  sdg_function_defined_finish();
  if (!&sundog_functions || sdg_setup_rules(&rules) != SDG_OK)
    return;
  for (int f = 0; f < rules->functions; f++) {
    const sdg_function_t *function = &rules->function[f];
    if (function->is_kernel)
      continue;
    int index = sdg_function_find(function->symbol);
    bool called = index >= 0 && atomic_load(&found[index]);
    sdg_declared_write(function->name, called ? SDG_DECLARED_CALLED
                                       : sdg_function_exists(function->symbol,
                                                             function->library)
                                           ? SDG_DECLARED_UNUSED
                                           : SDG_DECLARED_ABSENT);
  }
}

void sdg_function_disarm(void) {
  if (!&sundog_functions)
    return;
  for (uint64_t i = 0; i < sundog_functions.count; i++) {
    void *real = atomic_load(&found[i]);
    if (real)
      __atomic_store_n(&sundog_functions.row[i].slot, real, __ATOMIC_RELEASE);
  }
}
