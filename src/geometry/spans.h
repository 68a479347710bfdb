/* SPDX-License-Identifier: Apache-2.0 */
/* A set of bytes of memory, as disjoint ascending spans. Pure. Not
 * thread-safe. */
#ifndef SDG_SRC_GEOMETRY_SPANS_H
#define SDG_SRC_GEOMETRY_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/geometry/buffer.h"

typedef struct sdg_spans {
  sdg_span_t *span; /* owned; none touches the next */
  size_t count, room;
} sdg_spans_t;
void sdg_spans_fini(sdg_spans_t *spans);

/* False without memory: nothing has changed. */
bool sdg_spans_add(sdg_spans_t *spans, sdg_span_t span);
/* False without memory: more than `span` has gone. */
bool sdg_spans_remove(sdg_spans_t *spans, sdg_span_t span);
void sdg_spans_clear(sdg_spans_t *spans);
/* Whether all bytes of a span are there; whether any is. Nothing of an empty
 * one. */
bool sdg_spans_contain(const sdg_spans_t *spans, sdg_span_t span);
bool sdg_spans_overlap(const sdg_spans_t *spans, sdg_span_t span);

#endif
