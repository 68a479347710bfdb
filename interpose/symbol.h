/* SPDX-License-Identifier: Apache-2.0 */
/* Finds symbols of loaded objects without dlsym. */
#ifndef SDG_INTERPOSE_SYMBOL_H
#define SDG_INTERPOSE_SYMBOL_H

/* The address of function `name` in the first object after libsundog.so in load
 * order that exports it; NULL if none does. Calls no function at all, because
 * it runs before libc, or a sanitizer that wraps libc, may be initialised. */
void *sdg_symbol_next(const char *name);

#endif
