// SPDX-License-Identifier: Apache-2.0
// Finds structs that libffi would pass wrongly.
#include "interpose/function/structs.h"

#include <ffi.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
enum { INTEGER_REGISTERS = 6, FLOATING_REGISTERS = 8 };

typedef struct both {
  int64_t integer;
  double number;
} both_t;

static double first_of(void *a, void *b, void *c, void *d, void *e,
                       double first, both_t both) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)both;
  return first;
}

// Whether this libffi has the fault.
static bool libffi_overwrites(void) {
  ffi_type *member[] = {&ffi_type_sint64, &ffi_type_double, NULL};
  ffi_type both_type = {.type = FFI_TYPE_STRUCT, .elements = member};
  ffi_type *type[] = {&ffi_type_pointer, &ffi_type_pointer, &ffi_type_pointer,
                      &ffi_type_pointer, &ffi_type_pointer, &ffi_type_double,
                      &both_type};
  void *nothing = NULL;
  double first = 1, got = 0;
  both_t both = {2, 3};
  void *value[] = {&nothing, &nothing, &nothing, &nothing,
                   &nothing, &first,   &both};
  ffi_cif cif;
  if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, 7, &ffi_type_double, type) != FFI_OK)
    return true;
  ffi_call(&cif, FFI_FN(first_of), &got, value);
  return got != first;
}

// Whether the first 8 bytes of a struct, and the next 8, are floating numbers
// alone. Returns the bytes of all.
static size_t struct_read(const sdg_argument_t *argument, bool *out_floating) {
  out_floating[0] = out_floating[1] = true;
  for (int m = 0; m < argument->members; m++) {
    size_t at = sdg_argument_offset(argument, m);
    if (at < 16)
      out_floating[at / 8] &= argument->number[m].kind == 'f';
  }
  return sdg_argument_offset(argument, argument->members);
}

const char *sdg_function_struct_wrong(const sdg_function_t *function) {
  int integers = 0, floating = 0;
  for (int a = 0; a < function->arguments; a++) {
    const sdg_argument_t *argument = &function->argument[a];
    if (sdg_argument_is_address(argument)) {
      integers++;
      continue;
    }
    if (!argument->members) {
      *(argument->number[0].kind == 'f' ? &floating : &integers) += 1;
      continue;
    }
    bool number[2];
    size_t bytes = struct_read(argument, number);
    if (bytes > 16)
      continue; // on the stack
    int more = bytes > 8 ? number[0] + number[1] : number[0];
    int both = bytes > 8 ? 2 : 1;
    int before = integers < INTEGER_REGISTERS ? integers : INTEGER_REGISTERS;
    int first = floating < FLOATING_REGISTERS ? floating : FLOATING_REGISTERS;
    if (before + both - more > INTEGER_REGISTERS ||
        first + more > FLOATING_REGISTERS)
      continue; // on the stack
    if (bytes > 8 && !number[0] && number[1] &&
        before == INTEGER_REGISTERS - 1 && floating > 0 && libffi_overwrites())
      return argument->name;
    integers += both - more;
    floating += more;
  }
  return NULL;
}
#else
const char *sdg_function_struct_wrong(const sdg_function_t *function) {
  (void)function;
  return NULL;
}
#endif
