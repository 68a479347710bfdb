/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of loaded objects, found without dlsym. */
#ifndef SDG_INTERPOSE_SYMBOL_H
#define SDG_INTERPOSE_SYMBOL_H

/* The address of function `name` in the first object behind libsundog.so in
 * load order that exports it; NULL if none does. Calls no function at all: it
 * runs before libc, or a sanitizer that wraps libc, may have been
 * initialised. */
void *sdg_symbol_next(const char *name);

#endif
