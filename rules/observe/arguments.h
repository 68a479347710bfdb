/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_INSPECT: the integers and addresses that functions of the program's
 * libraries get, for `sundog inspect`. */
#ifndef SDG_RULES_OBSERVE_ARGUMENTS_H
#define SDG_RULES_OBSERVE_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/call/call.h"

enum {
  SDG_ARGUMENTS_LIBRARY_BYTES = 128,
  SDG_ARGUMENTS_SEEN = 24, /* places of arguments that are not floating */
  SDG_ARGUMENTS_KERNELS =
      256, /* kernels, whose numbers follow the functions' */
};

/* Function `index`, below SDG_WATCHED_MAX, or kernel `index` - SDG_WATCHED_MAX,
 * below SDG_ARGUMENTS_KERNELS, is this one. `name` must stay, and
 * so must `calls`, which counts its calls. */
void sdg_arguments_name(unsigned index, const char *name, const char *library,
                        const _Atomic(uint64_t) *calls);

/* A call of it: what is in the registers of arguments, and behind them on the
 * stack. The function may have fewer arguments. A launch has exactly these. */
typedef struct sdg_arguments {
  int registers, count;
  uint64_t value[SDG_ARGUMENTS_SEEN];
  /* The number of bytes from an address to the end of its allocation in device
   * memory; false: it is not there. */
  bool (*room)(uint64_t address, size_t *out_bytes);
  /* Reads an integer at an address that may be none; false: it is none. */
  bool (*read)(uint64_t address, int32_t *out);
} sdg_arguments_t;

/* The types of a kernel's arguments as words of C, "*" for an address, "?" if
 * they are not known, with blanks between; the text must stay. */
void sdg_arguments_types(unsigned index, const char *types);

/* Any thread, not in a signal handler that interrupts this. */
void sdg_arguments_note(unsigned index, const sdg_arguments_t *arguments);

/* A tensor of a recorded call lies here. */
void sdg_arguments_tensor(const sdg_operand_t *operand);

/* Writes what was noted of functions that got addresses in device memory and of
 * kernels, one line {"function":...} for each. */
void sdg_arguments_finish(void);

/* In a forked child: drops what was noted. Allocates nothing and does not wait.
 */
void sdg_arguments_drop(void);

#endif
