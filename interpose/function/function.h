/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program's own, captured through libffi. */
#ifndef SDG_INTERPOSE_FUNCTION_FUNCTION_H
#define SDG_INTERPOSE_FUNCTION_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "rules/function/call.h"
#include "src/base/status.h"

/* The index of a declared function, -1: none has this name. Calls no function
 * of libc. */
int sdg_function_find(const char *name);

/* The program looks function `index` up, whose address this is. Returns the
 * address for the program: that of the stub. */
void *sdg_function_record(int index, void *address);

/* The first call of function `index`: returns where it is to go, and keeps that
 * in the function's slot. Never NULL. */
void *sdg_function_resolve(unsigned index);

/* Describes a function as the program runs (sundog_define): from now on calls
 * of it are captured. Does nothing if nothing is split. The faults of rules,
 * SDG_E_FUNCTION_UNSEEN. */
sdg_status_t sdg_function_define(const char *name,
                                 const char *text) SDG_MUST_CHECK;
/* Whether there is such a function. Takes no lock, and calls nothing: a
 * sanitizer looks functions up before it can follow calls. */
extern atomic_bool sdg_function_defined;
static inline bool sdg_function_any_defined(void) {
  return atomic_load_explicit(&sdg_function_defined, memory_order_acquire);
}
/* The program looks `name` up, whose address this is. Returns the address for
 * the program if it is such a function, else NULL. */
void *sdg_function_redefined(const char *name, void *address);
/* Part of sdg_function_finish, for such functions. */
void sdg_function_defined_finish(void);

/* At exit: writes which of the functions were there and were called. */
void sdg_function_finish(void);

/* A call of declared function `index`, whose registers lie at `saved` as
 * sdg_resolve (interpose/arch.inc) has saved them: returns where it goes, the
 * function itself or the closure that may split it. */
void *sdg_function_probe(unsigned index, const char *saved);

/* Hands a call of a declared function or kernel to the ops. True: it was
 * carried out or, with *out_refused, refused. */
bool sdg_function_capture(sdg_function_call_t *function, bool *out_refused);

/* This process is not a rank: calls go to the program's functions. */
void sdg_function_disarm(void);

#endif
