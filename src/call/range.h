/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of memory ranges (sundog_tag_range): how to split the matrix products
 * that write there. Any thread. */
#ifndef SDG_SRC_CALL_RANGE_H
#define SDG_SRC_CALL_RANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"
#include "src/call/tag.h"

/* Tags `bytes` bytes from `at` on; replaces earlier tags of any of them. A
 * NULL label removes the tag. SDG_E_TAG if memory runs out. After an error the
 * earlier tags hold. */
sdg_status_t sdg_range_set(const void *at, size_t bytes,
                           const sdg_tag_label_t *label) SDG_MUST_CHECK;
/* Returns the label for data written from this address on; NULL if it has
 * none. Takes no lock while no memory is tagged. */
const sdg_tag_label_t *sdg_range_label(const void *at);
/* Returns true once memory was tagged. */
bool sdg_range_any(void);

#endif
