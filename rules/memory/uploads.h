/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: which of the program's device memory holds inputs that no tagged
 * call has read yet. Any thread. */
#ifndef SDG_RULES_MEMORY_UPLOADS_H
#define SDG_RULES_MEMORY_UPLOADS_H

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/call/memory_access.h"
#include "src/geometry/buffer.h"

/* Memory was allocated, and nothing of it is written; is freed. */
void sdg_uploads_allocated(sdg_span_t span);
void sdg_uploads_freed(sdg_span_t span);
/* A call is about to write into device memory. Makes a number of what it copies
 * from host memory that can be read now to where tagged calls have read. */
void sdg_uploads_note(const sdg_memory_access_t *memory);
/* A tagged call wrote this tensor, or the ranks compared it: it is no new
 * input. */
void sdg_uploads_made(const sdg_operand_t *operand);
/* All of it is gone. */
void sdg_uploads_forget(void);

typedef enum sdg_upload {
  SDG_UPLOAD_NONE,  /* it was made by tagged calls, or compared; or nobody has
                       written it */
  SDG_UPLOAD_FIRST, /* an input that is read for the first time */
  SDG_UPLOAD_AGAIN, /* compared once, and copied to since */
} sdg_upload_t;
/* What of an operand's memory is an input. AGAIN: mixes the numbers of what was
 * copied there into *io_digest, once. `always`: whatever is written is FIRST.
 */
sdg_upload_t sdg_uploads_of(const sdg_operand_t *operand, bool always,
                            uint64_t *io_digest);

/* True if this is memory of cudaMallocManaged, whose reads and writes by the
 * program nobody sees. */
bool sdg_uploads_managed(const void *at);

#endif
