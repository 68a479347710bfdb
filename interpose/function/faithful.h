/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of declared functions in a run that tries them in pieces (SUNDOG_CUTS).
 * What the section says of the arguments may be wrong, so that the program's
 * own call goes on with all its registers and its stack, as the caller left
 * them. Inside this folder only. */
#ifndef SDG_INTERPOSE_FUNCTION_FAITHFUL_H
#define SDG_INTERPOSE_FUNCTION_FAITHFUL_H

#include "rules/cut/cut.h"
#include "rules/file/function/function.h"
#include "src/base/status.h"

/* Makes code for calls of a function: they go first to `declared`, a closure
 * with the section's arguments, which calls sdg_faithful_begin; then to `real`.
 * *out_code lives as long as the process. SDG_E_FUNCTION_UNSEEN. */
sdg_status_t sdg_faithful_make(const sdg_function_t *function,
                               void (*declared)(void), void (*real)(void),
                               void **out_code) SDG_MUST_CHECK;
/* Tries the call that goes to the closure. */
void sdg_faithful_begin(sdg_function_call_t *function);

/* Overwrites the registers of arguments, and the stack below the caller, so
 * that an argument of which the section says nothing is not by chance what the
 * program gave. */
void sdg_faithful_poison(void);

#endif
