/* SPDX-License-Identifier: Apache-2.0 */
/* What `sundog inspect` can find out about a value that may be an address. */
#ifndef SDG_INTERPOSE_FUNCTION_WATCH_H
#define SDG_INTERPOSE_FUNCTION_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sdg_arguments_t.room */
bool sdg_watch_room(uint64_t address, size_t *out_bytes);

/* Whether the n-th call of a function is looked at: the first ones, then one of
 * many. */
bool sdg_watch_looks(uint64_t calls);

/* A launch of this kernel, with the arguments of cudaLaunchKernel. */
void sdg_watch_kernel(const void *kernel, void *const *value);

#endif
