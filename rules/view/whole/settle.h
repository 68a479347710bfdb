/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: what calls do to the distributed tensors in the program's memory.
 * Any thread; in calls that need the other ranks the lock of rules/memory is
 * held, so that there is one order of them. */
#ifndef SDG_RULES_VIEW_WHOLE_SETTLE_H
#define SDG_RULES_VIEW_WHOLE_SETTLE_H

#include <cuda_runtime_api.h>

#include "rules/memory/memory.h"
#include "src/call/memory_access.h"
#include "src/observe/report.h"

/* Host reads up to this size take the first rank's bytes, so that what a
 * program decides by them it decides alike on every rank. */
enum { SDG_HOST_READ_BYTES = 4096 };

/* Before a call that no op shares: what it may read or write is brought up to
 * date in full on every rank, what it overwrites is forgotten; afterwards it is
 * the same everywhere. SDG_E_THREAD; any failure breaks the job. */
sdg_status_t sdg_whole_access(const sdg_memory_access_t *memory) SDG_MUST_CHECK;

/* Makes this the one thread of the rank that makes tagged calls: two would keep
 * the table in an order that other ranks' do not have. The job is joined, the
 * lock held. SDG_E_VIEW_WHOLE, and those of sdg_thread_claim. */
sdg_status_t sdg_whole_own(const char *entry_name) SDG_MUST_CHECK;

/* Whether the calling thread is that. */
bool sdg_whole_owned(void);

/* The stream of a call; *out_capturing: it is captured, and the call runs when
 * the graph is launched, which touches everything. */
sdg_status_t sdg_whole_stream(const sdg_memory_access_t *memory,
                              cudaStream_t *out_stream,
                              bool *out_capturing) SDG_MUST_CHECK;
/* With the lock held: brings a buffer up to date for need[rank of the job],
 * NULL: in full. */
sdg_status_t sdg_whole_update(sdg_buffer_t *buffer, const sdg_box_t *need,
                              const char *cause, cudaStream_t stream,
                              sdg_report_row_t *row) SDG_MUST_CHECK;
/* With the lock held: as sdg_whole_access, for one access; `except` (may be
 * NULL) is left as it is. */
sdg_status_t sdg_whole_settle(const sdg_access_t *access,
                              const sdg_buffer_t *except, const char *cause,
                              cudaStream_t stream,
                              sdg_report_row_t *row) SDG_MUST_CHECK;

#endif
