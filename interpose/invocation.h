/* SPDX-License-Identifier: Apache-2.0 */
/* What an invocation of an entry says: the call that ops judge, and what it
 * does to memory. `args` is the struct sdg_args_<entry> of args.h. */
#ifndef SDG_INTERPOSE_INVOCATION_H
#define SDG_INTERPOSE_INVOCATION_H

#include <stdbool.h>

#include "rules/vendor/gemm.h"
#include "src/call/call.h"
#include "src/call/memory_access.h"

/* Reads the descriptors of an op or a product. Returns false if one cannot be
 * read: the real function says what is wrong. `gemm` must live as long as the
 * call; it is written for products only. */
bool sdg_invocation_call(int entry, const void *args, sdg_gemm_t *gemm,
                         sdg_call_t *out_call);

/* What the invocation does to memory, from the table of entries alone. */
void sdg_invocation_access(int entry, const void *args,
                           sdg_memory_access_t *out_memory);
/* The same of copy `index` of those that the invocation makes; false: it makes
 * no more. Copies in three dimensions and batches are read exactly, where their
 * arguments tell where they write. */
bool sdg_invocation_copy(int entry, const void *args, size_t index,
                         sdg_memory_access_t *out_memory);
/* If a descriptor of the call says how long a tensor is, the call uses nothing
 * behind it. */
void sdg_invocation_trim(const sdg_call_t *call,
                         sdg_memory_access_t *io_memory);

#endif
