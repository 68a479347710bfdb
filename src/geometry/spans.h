/* SPDX-License-Identifier: Apache-2.0 */
/* A set of memory bytes, as disjoint ascending spans. Pure. Not thread-safe. */
#ifndef SDG_SRC_GEOMETRY_SPANS_H
#define SDG_SRC_GEOMETRY_SPANS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/geometry/buffer.h"

typedef struct sdg_spans {
  sdg_span_t *span; /* owned; consecutive spans do not touch */
  size_t count, room;
} sdg_spans_t;
void sdg_spans_fini(sdg_spans_t *spans);

/* Returns false, without a change, if memory runs out. */
bool sdg_spans_add(sdg_spans_t *spans, sdg_span_t span);
/* Returns false if memory runs out; then more than `span` has been removed. */
bool sdg_spans_remove(sdg_spans_t *spans, sdg_span_t span);
void sdg_spans_clear(sdg_spans_t *spans);
/* contain: returns true if all bytes of the span are in the set; overlap: if
 * any is. Both return false for an empty span. */
bool sdg_spans_contain(const sdg_spans_t *spans, sdg_span_t span);
bool sdg_spans_overlap(const sdg_spans_t *spans, sdg_span_t span);

#endif
