/* SPDX-License-Identifier: Apache-2.0 */
/* Which libraries the process has loaded. */
#ifndef SDG_INTERPOSE_LOADED_H
#define SDG_INTERPOSE_LOADED_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a library is loaded whose file name begins with one of `prefixes`
 * (the list ends with NULL); out_name, `bytes` large, is its file name.
 * Searches only if something was loaded since *io_seen, which starts as 0;
 * otherwise false. Takes some hundred nanoseconds, under a lock of the dynamic
 * linker. */
bool sdg_loaded_find(const char *const *prefixes, unsigned long long *io_seen,
                     char *out_name, size_t bytes);

/* Whether the program or library with this address in it contains the text;
 * out_name, `bytes` large, is its file name. Reads all of its segments. */
bool sdg_loaded_contains(const void *address, const char *text, char *out_name,
                         size_t bytes);

#endif
