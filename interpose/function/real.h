/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the program's functions behind the stubs. */
#ifndef SDG_INTERPOSE_FUNCTION_REAL_H
#define SDG_INTERPOSE_FUNCTION_REAL_H

#include <stdbool.h>
#include <stddef.h>

/* The function `name` in a loaded library whose file name matches `pattern`
 * (empty: in any). Fails with NULL and SDG_E_FUNCTION_UNSEEN if no library has
 * it, if several have one, or if calls of it do not go through the linker. */
void *sdg_function_real(const char *name, const char *pattern);

/* Whether a loaded library has it, seen or not. */
bool sdg_function_exists(const char *name, const char *pattern);

/* The first one in any loaded library, and that library's file name; NULL if no
 * library has it. Never fails with an error. */
void *sdg_function_look(const char *name, char *out_file, size_t file_bytes);

#endif
