/* SPDX-License-Identifier: Apache-2.0 */
/* Code that captures calls of one function. Inside this folder only. */
#ifndef SDG_INTERPOSE_FUNCTION_CLOSURE_H
#define SDG_INTERPOSE_FUNCTION_CLOSURE_H

#include <stdatomic.h>

#include "rules/file/function/function.h"

/* Makes code to call in place of `real`, which `function` describes; both are
 * never freed, nor is *out_called, which becomes true at the first call.
 * SDG_E_FUNCTION_UNSEEN if the system forbids executable memory. */
sdg_status_t
sdg_function_closure(const sdg_function_t *function, void *real,
                     void **out_code,
                     const atomic_bool **out_called) SDG_MUST_CHECK;

#endif
