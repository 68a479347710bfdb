/* SPDX-License-Identifier: Apache-2.0 */
/* Code that captures calls of one function. Inside this folder only. */
#ifndef SDG_INTERPOSE_FUNCTION_CLOSURE_H
#define SDG_INTERPOSE_FUNCTION_CLOSURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "rules/file/function/function.h"

/* What a call may return: an integer or address, or a number. On x86-64 it is
 * returned in a register of each kind, so that it is right for both. */
typedef struct sdg_returned {
  uint64_t integer;
  double number;
} sdg_returned_t;

/* Makes code to call in place of `real`, which `function` describes; both are
 * never freed, nor is *out_called, which becomes true at the first call.
 * SDG_E_FUNCTION_UNSEEN if the system forbids executable memory. */
sdg_status_t
sdg_function_closure(const sdg_function_t *function, void *real,
                     void **out_code,
                     const atomic_bool **out_called) SDG_MUST_CHECK;
/* The same for the function behind stub `index`, once. */
sdg_status_t sdg_function_closure_at(unsigned index,
                                     const sdg_function_t *function, void *real,
                                     void **out_code) SDG_MUST_CHECK;

#endif
