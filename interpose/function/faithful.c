// SPDX-License-Identifier: Apache-2.0
// Passes calls on with all registers, whatever the function's arguments are.
#include "interpose/function/faithful.h"

#include <ffi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/closure.h"
#include "interpose/function/unwind.h"

// The registers of arguments, and words of the stack: enough for 24 arguments,
// some of them structs. A stack has as many above its first frame.
#ifdef __x86_64__
enum { INTEGERS = 6 };
#else
enum { INTEGERS = 8 };
#endif
enum { FLOATS = 8, STACK = 48, WORDS = INTEGERS + FLOATS + STACK };

typedef struct faithful {
  struct faithful *next; // of all that were made
  const sdg_function_t *function;
  void (*declared)(void), (*real)(void);
  void *code;
  ffi_cif cif;
  ffi_type *type[WORDS];
} faithful_t;

// Leak checkers do not look into memory that is executable, which alone has the
// address of each.
static _Atomic(faithful_t *) all;

// What this thread's call to a closure has begun.
static _Thread_local sdg_cut_t *begun
    __attribute__((tls_model("initial-exec")));

static bool returns_number(const faithful_t *faithful) {
  return faithful->function->returned.number.kind == 'f';
}

typedef struct trial {
  sdg_unwind_t unwind; // first
  bool within;         // a trial of another function
  sdg_cut_t *cut;
} trial_t;

static void trial_left(const sdg_unwind_t *unwind) {
  const trial_t *trial = (const trial_t *)unwind;
  sdg_capture_enter();
  if (trial->cut || !trial->within)
    sdg_cut_left(trial->cut);
}

static void called(ffi_cif *cif, void *result, void **value, void *user) {
  const faithful_t *faithful = user;
  void *copy[WORDS];
  sdg_returned_t unkept;
  trial_t trial = {.within = sdg_cut_tries()};
  __asm__ volatile(".cfi_personality 0x1b, sdg_unwind_frame");
  sdg_unwind_begin(&trial.unwind, trial_left);
  memcpy(copy, value, sizeof copy);
  begun = NULL;
  ffi_call(cif, faithful->declared, &unkept, copy);
  trial.cut = begun;
  begun = NULL;
  memcpy(copy, value, sizeof copy);
  ffi_call(cif, faithful->real, result, copy);
  sdg_unwind_end(&trial.unwind);
  const void *returned = result;
#ifdef __x86_64__
  if (returns_number(faithful))
    returned = &((const sdg_returned_t *)result)->number;
#endif
  sdg_capture_enter();
  sdg_cut_end(trial.cut, returned);
  sdg_capture_leave();
}

void sdg_faithful_begin(sdg_function_call_t *function) {
  sdg_capture_enter();
  begun = sdg_cut_begin(function);
  sdg_capture_leave();
}

// On x86-64 this struct is returned in both registers. Elsewhere a number is
// expected where the section says so.
static ffi_type *returned_type(const faithful_t *faithful) {
  static ffi_type *member[] = {&ffi_type_uint64, &ffi_type_double, NULL};
  static ffi_type both = {.type = FFI_TYPE_STRUCT, .elements = member};
#ifndef __x86_64__
  if (returns_number(faithful))
    return faithful->function->returned.number.bytes == 8 ? &ffi_type_double
                                                          : &ffi_type_float;
#else
  (void)faithful;
#endif
  return &both;
}

sdg_status_t sdg_faithful_make(const sdg_function_t *function,
                               void (*declared)(void), void (*real)(void),
                               void **out_code) {
  faithful_t *faithful;
  SDG_TRY(SDG_ALLOCATE(faithful, 1, "a closure"));
  faithful->function = function;
  faithful->declared = declared;
  faithful->real = real;
  for (int i = 0; i < WORDS; i++)
    faithful->type[i] = i >= INTEGERS && i < INTEGERS + FLOATS
                            ? &ffi_type_double
                            : &ffi_type_uint64;
  ffi_closure *made = ffi_closure_alloc(sizeof *made, &faithful->code);
  if (!made ||
      ffi_prep_cif(&faithful->cif, FFI_DEFAULT_ABI, WORDS,
                   returned_type(faithful), faithful->type) != FFI_OK ||
      ffi_prep_closure_loc(made, &faithful->cif, called, faithful,
                           faithful->code) != FFI_OK) {
    if (made)
      ffi_closure_free(made);
    free(faithful);
    return sdg_fail(SDG_E_FUNCTION_UNSEEN,
                    "no code can be made for calls of '%s': does this system "
                    "forbid memory that is executable?",
                    function->name);
  }
  faithful->next = atomic_load(&all);
  while (!atomic_compare_exchange_weak(&all, &faithful->next, faithful))
    ;
  *out_code = faithful->code;
  return SDG_OK;
}

__attribute__((noinline)) void sdg_faithful_poison(void) {
  // As an address it is none, as an integer too large, as a number a NaN.
  const uint64_t poison = UINT64_C(0x7ff4c5f67ff4c5f6);
  volatile uint64_t room[512];
  for (size_t i = 0; i < sizeof room / sizeof *room; i++)
    room[i] = poison;
#ifdef __x86_64__
  __asm__ volatile(
      "movq %0, %%xmm0; movq %0, %%xmm1; movq %0, %%xmm2; movq %0, %%xmm3;"
      "movq %0, %%xmm4; movq %0, %%xmm5; movq %0, %%xmm6; movq %0, %%xmm7"
      :
      : "r"(poison)
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
#elif defined __aarch64__
  __asm__ volatile("fmov d0, %0; fmov d1, %0; fmov d2, %0; fmov d3, %0;"
                   "fmov d4, %0; fmov d5, %0; fmov d6, %0; fmov d7, %0"
                   :
                   : "r"(poison)
                   : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7");
#endif
}
