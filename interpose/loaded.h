/* SPDX-License-Identifier: Apache-2.0 */
/* Which libraries the process has loaded. */
#ifndef SDG_INTERPOSE_LOADED_H
#define SDG_INTERPOSE_LOADED_H

#include <stdbool.h>
#include <stddef.h>

/* True if a library is loaded of which the file name begins with one of
 * `prefixes` (NULL ends them); out_name, `bytes` large, is its file name. Looks
 * only where something was loaded since *io_seen, which begins as 0; false
 * otherwise. Some hundred nanoseconds, under a lock of the dynamic linker. */
bool sdg_loaded_find(const char *const *prefixes, unsigned long long *io_seen,
                     char *out_name, size_t bytes);

#endif
