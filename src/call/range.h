/* SPDX-License-Identifier: Apache-2.0 */
/* What the program said of memory (sundog_tag_range): how products of matrices
 * that are written there are split. Any thread. */
#ifndef SDG_SRC_CALL_RANGE_H
#define SDG_SRC_CALL_RANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"
#include "src/call/tag.h"

/* Tags `bytes` bytes from `at` on, in place of what was said of any of them;
 * NULL takes that off. SDG_E_TAG for no memory. After an error what was said
 * holds. */
sdg_status_t sdg_range_set(const void *at, size_t bytes,
                           const sdg_tag_label_t *label) SDG_MUST_CHECK;
/* Of what is written from this address on; NULL if nothing was said. No lock
 * while no memory is tagged. */
const sdg_tag_label_t *sdg_range_label(const void *at);
/* True once memory was tagged. */
bool sdg_range_any(void);

#endif
