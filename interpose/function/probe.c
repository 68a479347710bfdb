// SPDX-License-Identifier: Apache-2.0
// Where a call's arguments are, by the calling conventions.
#include "interpose/function/probe.h"

#include <string.h>

// What sdg_resolve saves of registers, and where the caller's stack is from
// there.
#if defined(__x86_64__)
enum { INTEGERS = 6, FLOATS = 8, INTEGERS_AT = 128, STACK_AT = 208 };
#else
enum { INTEGERS = 8, FLOATS = 8, INTEGERS_AT = 16, STACK_AT = 224 };
#endif

typedef struct used {
  int integers, floats, words; // registers, and eight bytes each of the stack
} used_t;

// What decides how a struct of numbers is passed.
typedef struct record {
  int bytes;
  bool floating[SDG_MEMBERS_MAX]; // of each eight bytes: only floating numbers
  bool alike;                     // all members are of one floating type
} record_t;

static record_t record_of(const sdg_argument_t *argument) {
  record_t record = {.bytes =
                         (int)sdg_argument_offset(argument, argument->members),
                     .alike = true};
  memset(record.floating, true, sizeof record.floating);
  for (int m = 0; m < argument->members; m++) {
    bool floating = argument->number[m].kind == 'f';
    record.floating[sdg_argument_offset(argument, m) / 8] &= floating;
    record.alike &=
        floating && argument->number[m].bytes == argument->number[0].bytes;
  }
  return record;
}

static int integer_place(used_t *used) {
  return used->integers < INTEGERS ? INTEGERS_AT + 8 * used->integers++
                                   : STACK_AT + 8 * used->words++;
}

static void float_pass(used_t *used) {
  if (used->floats < FLOATS)
    used->floats++;
  else
    used->words++;
}

#if defined(__x86_64__)
// In registers, if it is small and there are enough of them for all of it.
static void record_pass(const sdg_argument_t *argument, used_t *used) {
  record_t record = record_of(argument);
  int words = (record.bytes + 7) / 8, floats = 0;
  for (int w = 0; w < words; w++)
    floats += record.floating[w];
  if (record.bytes > 16 || used->integers + words - floats > INTEGERS ||
      used->floats + floats > FLOATS) {
    used->words += words;
    return;
  }
  used->integers += words - floats;
  used->floats += floats;
}
#else
// What does not fit in the registers that are left ends the use of them.
static void words_pass(int count, int words, int most, int *io_registers,
                       used_t *used) {
  if (*io_registers + count <= most) {
    *io_registers += count;
    return;
  }
  *io_registers = most;
  used->words += words;
}

static void record_pass(const sdg_argument_t *argument, used_t *used) {
  record_t record = record_of(argument);
  int words = (record.bytes + 7) / 8;
  if (record.alike && argument->members <= 4)
    words_pass(argument->members, words, FLOATS, &used->floats, used);
  else if (record.bytes > 16)
    (void)integer_place(used); // the address of a copy
  else
    words_pass(words, words, INTEGERS, &used->integers, used);
}
#endif

void sdg_probe_layout(const sdg_function_t *function, sdg_probe_layout_t *out) {
  used_t used = {0, 0, 0};
  out->sizes = 0;
  for (int a = 0; a < function->arguments; a++) {
    const sdg_argument_t *argument = &function->argument[a];
    bool address = sdg_argument_is_address(argument);
    if (!address && argument->members) {
      record_pass(argument, &used);
    } else if (!address && argument->number[0].kind == 'f') {
      float_pass(&used);
    } else {
      int place = integer_place(&used);
      if (!argument->is_size && argument->tensor < 0)
        continue;
      out->size[out->sizes].argument = a;
      out->size[out->sizes++].place = place;
    }
  }
}

void sdg_probe_values(const sdg_probe_layout_t *layout, const char *saved,
                      void **io_value) {
  for (int i = 0; i < layout->sizes; i++)
    io_value[layout->size[i].argument] =
        (void *)(saved + layout->size[i].place);
}

bool sdg_probe_agrees(const sdg_function_t *function,
                      const sdg_probe_layout_t *layout, void *const *a,
                      void *const *b) {
  for (int i = 0; i < layout->sizes; i++) {
    int index = layout->size[i].argument;
    const sdg_argument_t *argument = &function->argument[index];
    bool address = sdg_argument_is_address(argument);
    size_t bytes = address ? sizeof(void *) : (size_t)argument->number[0].bytes;
    if (memcmp(a[index], b[index], bytes) != 0)
      return false;
  }
  return true;
}
