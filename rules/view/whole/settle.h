/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: tracks what calls do to the distributed tensors in the program's
 * memory. Any thread may call this. Calls that need other ranks hold the lock
 * of rules/memory, so that their order is the same on all ranks. */
#ifndef SDG_RULES_VIEW_WHOLE_SETTLE_H
#define SDG_RULES_VIEW_WHOLE_SETTLE_H

#include <cuda_runtime_api.h>

#include "rules/memory/memory.h"
#include "src/call/memory_access.h"
#include "src/observe/report.h"

/* A copy to the host of at most so many bytes gives every rank the same bytes,
 * so that decisions of the program are the same on every rank: elements of a
 * tensor in pieces are those of the rank that computed them, others are the
 * first rank's. */
enum { SDG_HOST_READ_BYTES = 4096 };

/* To be called before a call that no op shares: brings all memory that it may
 * read or write in part up to date in full on every rank, and removes what it
 * overwrites from the table, because every rank will have it in full.
 * SDG_E_THREAD; any failure breaks the job. */
sdg_status_t sdg_whole_access(const sdg_memory_access_t *memory) SDG_MUST_CHECK;

/* Makes the calling thread the only one of the rank that makes tagged calls:
 * the order of two threads' calls could differ from rank to rank. The job is
 * joined and the caller holds the lock. The errors of sdg_thread_claim_only. */
sdg_status_t sdg_whole_own(const char *entry_name) SDG_MUST_CHECK;

/* Whether the calling thread is this thread. */
bool sdg_whole_owned(void);

/* The stream of a call. *out_capturing: the stream is being captured; the call
 * runs when the graph is launched, which may use any memory. */
sdg_status_t sdg_whole_stream(const sdg_memory_access_t *memory,
                              cudaStream_t *out_stream,
                              bool *out_capturing) SDG_MUST_CHECK;
/* With the lock held: brings the box need[rank] of a buffer up to date on each
 * rank of the job; `need` NULL: the whole buffer. Collective. */
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
