/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sizes and tensors among the arguments of a call where its caller
 * has put them, in registers and on the stack, so that a call that is not split
 * goes to the function without libffi. */
#ifndef SDG_INTERPOSE_FUNCTION_PROBE_H
#define SDG_INTERPOSE_FUNCTION_PROBE_H

#include <stdbool.h>

#include "rules/file/function/function.h"

/* The places of arguments, in bytes from the registers that sdg_resolve
 * (interpose/arch.inc) has saved. */
typedef struct sdg_probe_layout {
  int sizes;
  struct {
    int argument, place;
  } size[SDG_ARGUMENTS_MAX];
} sdg_probe_layout_t;

/* By the calling convention of the processor: System V for x86-64, AAPCS64. */
void sdg_probe_layout(const sdg_function_t *function, sdg_probe_layout_t *out);

/* Where each size and each tensor's address lies; others stay as they are. */
void sdg_probe_values(const sdg_probe_layout_t *layout, const char *saved,
                      void **io_value);
/* Whether two ways to find them have found the same. */
bool sdg_probe_agrees(const sdg_function_t *function,
                      const sdg_probe_layout_t *layout, void *const *a,
                      void *const *b);

#endif
