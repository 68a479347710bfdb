/* SPDX-License-Identifier: Apache-2.0 */
/* The program's device memory: what is allocated, and, in the whole view, which
 * distributed tensors are in it. Any thread. */
#ifndef SDG_RULES_MEMORY_MEMORY_H
#define SDG_RULES_MEMORY_MEMORY_H

#include "src/call/call.h"
#include "src/geometry/buffer.h"

void sdg_memory_allocated(const void *at, size_t bytes);
void sdg_memory_freed(const void *at);

/* Whether inputs of the program are noted (rules/memory/uploads.h): in the
 * whole view, unless SUNDOG_COMPARE says otherwise. */
bool sdg_memory_notes_inputs(void);

/* All of it is gone. */
void sdg_memory_forget(void);

/* Whether this is memory of an allocation that was seen. */
bool sdg_memory_holds(const void *at);

/* How many bytes of it there are from `at` on; false if it was not seen. */
bool sdg_memory_room(const void *at, size_t *out_bytes);

/* Whether a library is loaded of which the name begins with one of `prefixes`,
 * and was not when *io_seen was as it is; of the dynamic linker, given before
 * the first call. */
typedef bool sdg_loaded_find_t(const char *const *prefixes,
                               unsigned long long *io_seen, char *out_name,
                               size_t bytes);
void sdg_memory_set_loaded(sdg_loaded_find_t *find);

/* SDG_E_UNSEEN_LIBRARY if the program has loaded a library that works on device
 * memory by calls which sundog does not intercept. With the lock held. */
sdg_status_t sdg_memory_survey(const char *entry_name) SDG_MUST_CHECK;

/* SDG_E_SMALL_MEMORY where the tensor of an operand goes on beyond the end of
 * the allocation that holds its first element. Of memory that was not seen
 * allocated nothing is known: *out_seen (may be NULL). With the lock held. */
sdg_status_t sdg_memory_fits(const sdg_call_t *call,
                             const sdg_operand_t *operand,
                             bool *out_seen) SDG_MUST_CHECK;
/* The same for all tensors and filters of a call; takes the lock. */
sdg_status_t sdg_memory_fits_all(const sdg_call_t *call) SDG_MUST_CHECK;

/* Whether a library is loaded that writes memory, alike on every rank, by calls
 * that are not seen. */
bool sdg_memory_unseen_writes(void);

/* For calls that the ranks share. Between lock and unlock nothing else looks at
 * the table. */
sdg_buffers_t *sdg_memory_lock(void);
void sdg_memory_unlock(void);
/* With the lock held. */
sdg_buffers_t *sdg_memory_table(void);

#endif
