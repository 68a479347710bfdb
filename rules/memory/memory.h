/* SPDX-License-Identifier: Apache-2.0 */
/* The program's device memory, and, in the whole view, what every call does to
 * the distributed tensors in it. Any thread; in calls that need the other ranks
 * the lock is held, so that there is one order of them. */
#ifndef SDG_RULES_MEMORY_MEMORY_H
#define SDG_RULES_MEMORY_MEMORY_H

#include <cuda_runtime_api.h>

#include "src/call/call.h"
#include "src/call/memory_access.h"
#include "src/geometry/buffer.h"
#include "src/observe/report.h"

/* Host reads up to this size take the first rank's bytes, so that what a
 * program decides by them it decides alike on every rank. */
enum { SDG_HOST_READ_BYTES = 4096 };

void sdg_memory_allocated(const void *at, size_t bytes);
void sdg_memory_freed(const void *at);

/* All of it is gone. */
void sdg_memory_forget(void);

/* Before a call that no rule shares: what it may read or write is brought up to
 * date in full on every rank, what it overwrites is forgotten; afterwards it is
 * the same everywhere. SDG_E_THREAD; any failure breaks the job. */
sdg_status_t sdg_memory_touch(const sdg_touch_t *touch) SDG_MUST_CHECK;

/* Makes this the one thread of the rank that makes tagged calls: two would keep
 * the table in an order that other ranks' do not have. The job is joined, the
 * lock held. SDG_E_VIEW_WHOLE, and those of sdg_thread_claim. */
sdg_status_t sdg_memory_own(const char *entry_name) SDG_MUST_CHECK;

/* Whether the calling thread is that. */
bool sdg_memory_owned(void);
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
/* With the lock held: brings a buffer up to date for need[rank of the job],
 * NULL: in full. */
sdg_status_t sdg_memory_update(sdg_buffer_t *buffer, const sdg_box_t *need,
                               const char *cause, cudaStream_t stream,
                               sdg_report_row_t *row) SDG_MUST_CHECK;
/* With the lock held: as sdg_memory_touch, for one access; `except` (may be
 * NULL) is left as it is. */
sdg_status_t sdg_memory_settle(const sdg_access_t *access,
                               const sdg_buffer_t *except, const char *cause,
                               cudaStream_t stream,
                               sdg_report_row_t *row) SDG_MUST_CHECK;

#endif
