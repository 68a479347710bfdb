/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: whether all ranks pass the same tensors to a call. Inside rules/
 * only.
 *
 * Addresses and the order of allocations may differ from rank to rank where
 * ranks run the same program (allocators reuse memory as the device finishes
 * with it), so ranks compare what is in the memory:
 * - of a distributed tensor its number in the table, which is the same on every
 *   rank, and where in it the operand begins;
 * - of other memory which tagged call read or wrote it last, and as which
 *   operand (src/geometry/hint.h). A write by any other call makes that
 *   unknown, and a rank that does not know equals any: one rank alone may
 *   launch a kernel, which may write anything. */
#ifndef SDG_RULES_VIEW_WHOLE_CONTENTS_H
#define SDG_RULES_VIEW_WHOLE_CONTENTS_H

#include "rules/vendor/vector.h"
#include "src/call/call.h"
#include "src/geometry/buffer.h"

/* A hash of which distributed tensors the call reads; 0: none. It may be
 * compared always. The caller holds the lock of the table. */
uint64_t sdg_contents_pieces(const sdg_call_t *call,
                             const sdg_buffers_t *table);
/* The same for accesses of a call on vectors. */
uint64_t sdg_contents_pieces_of(const sdg_memory_access_t *memory,
                                const sdg_buffers_t *table);

/* Compares what the call reads, after sdg_divergence_check: in ops of its own.
 * SDG_E_DIVERGED, which breaks the job. */
sdg_status_t sdg_contents_compare(const sdg_call_t *call,
                                  const sdg_buffers_t *table) SDG_MUST_CHECK;
/* The same for accesses of a call that is not tagged but the same on every
 * rank, after sdg_divergence_update. */
sdg_status_t sdg_contents_compare_of(const sdg_memory_access_t *memory,
                                     const sdg_buffers_t *table) SDG_MUST_CHECK;
/* The contents of x and y of a value; 0: unknown. */
void sdg_contents_of_vectors(const sdg_vector_t *vector,
                             const sdg_buffers_t *table, uint64_t out[2]);

/* After a tagged call: its outputs have been written. */
void sdg_contents_made(const sdg_call_t *call, const sdg_buffers_t *table);
/* The same for accesses of a call that is the same on every rank. */
void sdg_contents_made_of(const sdg_memory_access_t *memory,
                          const sdg_buffers_t *table);
/* Before any other call: what it may write becomes unknown. */
void sdg_contents_overwritten(const sdg_memory_access_t *memory,
                              const sdg_buffers_t *table);

#endif
