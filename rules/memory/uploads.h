/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: which device memory holds inputs of the program that no tagged
 * call has read yet. Any thread may call these functions. */
#ifndef SDG_RULES_MEMORY_UPLOADS_H
#define SDG_RULES_MEMORY_UPLOADS_H

#include <stdbool.h>

#include <stdint.h>

#include "src/call/call.h"
#include "src/call/memory_access.h"
#include "src/geometry/buffer.h"

/* _allocated: memory was allocated and not written yet. _freed: it is freed. */
void sdg_uploads_allocated(sdg_span_t span);
void sdg_uploads_freed(sdg_span_t span);
/* Call this before a call writes device memory. Computes a digest of what the
 * call copies from host memory that is readable now, if tagged calls have read
 * the destination. */
void sdg_uploads_note(const sdg_memory_access_t *memory);
/* A tagged call wrote this tensor, or the ranks compared it, so it is no new
 * input. */
void sdg_uploads_made(const sdg_operand_t *operand);
/* Forgets everything. */
void sdg_uploads_forget(void);

typedef enum sdg_upload {
  SDG_UPLOAD_NONE,  /* made by tagged calls, or compared, or never written */
  SDG_UPLOAD_FIRST, /* an input that is read for the first time */
  SDG_UPLOAD_AGAIN, /* compared once, and copied to since */
} sdg_upload_t;
/* Which kind of input an operand's memory is. AGAIN: mixes the digests of what
 * was copied there into *io_digest, once. `always`: whatever was written is
 * FIRST. */
sdg_upload_t sdg_uploads_of(const sdg_operand_t *operand, bool always,
                            uint64_t *io_digest);

/* True for memory of cudaMallocManaged: sundog does not see when the program
 * reads and writes it. */
bool sdg_uploads_managed(const void *at);

#endif
