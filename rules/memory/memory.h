/* SPDX-License-Identifier: Apache-2.0 */
/* The program's device memory: its allocations and, in the whole view, the
 * distributed tensors in it. Any thread may call these functions. */
#ifndef SDG_RULES_MEMORY_MEMORY_H
#define SDG_RULES_MEMORY_MEMORY_H

#include "src/call/call.h"
#include "src/geometry/buffer.h"

void sdg_memory_allocated(const void *at, size_t bytes);
/* The same for memory that the host can write, too: managed, pinned or
 * registered. Only when it is freed is known: no function below finds it. */
void sdg_memory_hosted(const void *at, size_t bytes);
void sdg_memory_freed(const void *at);

/* Whether inputs of the program are tracked (rules/memory/uploads.h): in the
 * whole view, unless SUNDOG_COMPARE says otherwise. */
bool sdg_memory_notes_inputs(void);

/* Forgets everything. */
void sdg_memory_forget(void);

/* Whether the address lies in an allocation that was seen. */
bool sdg_memory_holds(const void *at);

/* The number of bytes from `at` to the end of its allocation; false if that was
 * not seen. */
bool sdg_memory_room(const void *at, size_t *out_bytes);

/* Whether a library is loaded whose name begins with one of `prefixes`, and
 * that was loaded after *io_seen was set. The dynamic linker's part provides
 * this function before the first call. */
typedef bool sdg_loaded_find_t(const char *const *prefixes,
                               unsigned long long *io_seen, char *out_name,
                               size_t bytes);
void sdg_memory_set_loaded(sdg_loaded_find_t *find);

/* SDG_E_UNSEEN_LIBRARY if the program has loaded a library that works on device
 * memory by calls which sundog does not intercept. With the lock held. */
sdg_status_t sdg_memory_survey(const char *entry_name) SDG_MUST_CHECK;

/* Whether sdg_memory_survey() would fail. Takes the lock. */
bool sdg_memory_unseen_library(void);

/* SDG_E_SMALL_MEMORY if the tensor of an operand extends beyond the end of the
 * allocation that holds its first element. *out_seen (may be NULL): false if
 * the allocation is unknown. Call with the lock held. */
sdg_status_t sdg_memory_fits(const sdg_call_t *call,
                             const sdg_operand_t *operand,
                             bool *out_seen) SDG_MUST_CHECK;
/* The same for all tensors and filters of a call; takes the lock. */
sdg_status_t sdg_memory_fits_all(const sdg_call_t *call) SDG_MUST_CHECK;

/* SDG_E_HALO, which breaks the job, if an operand with elements is not in
 * device, managed or pinned memory: no other can be sent to ranks. For memory
 * that no descriptor of a vendor's library vouches for. */
sdg_status_t sdg_memory_sendable(const sdg_call_t *call,
                                 int index) SDG_MUST_CHECK;

/* Whether a library is loaded that writes memory, the same on every rank, by
 * calls that sundog does not see. */
bool sdg_memory_unseen_writes(void);

/* For calls that the ranks share. Between lock and unlock no other thread uses
 * the table. */
sdg_buffers_t *sdg_memory_lock(void);
void sdg_memory_unlock(void);
/* While a function of the program's own runs in a call that the ranks share, it
 * may wait for threads of its own, and those may call the CUDA runtime. So this
 * thread gives up the lock, if it has it, until sdg_memory_take_back().
 * `function` must live until then. */
void sdg_memory_lend(const char *function);
void sdg_memory_take_back(void);
/* Call with the lock held. The function for which another thread has given up
 * the lock; NULL if none has. */
const char *sdg_memory_lent(void);
/* Unlocks it if this thread has locked or lent it: an exception leaves the
 * call. */
void sdg_memory_leave(void);
/* Call with the lock held. */
sdg_buffers_t *sdg_memory_table(void);

#endif
