// SPDX-License-Identifier: Apache-2.0
// Keeps the spans in a sorted array.
#include "src/geometry/spans.h"

#include <stdlib.h>
#include <string.h>

static uintptr_t end_of(sdg_span_t span) {
  return span.at + span.bytes;
}

// Returns the first span that ends at or after `at`.
static size_t first_from(const sdg_spans_t *spans, uintptr_t at) {
  size_t low = 0, high = spans->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (end_of(spans->span[middle]) < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void sdg_spans_fini(sdg_spans_t *spans) {
  free(spans->span);
  *spans = (sdg_spans_t){.count = 0};
}

void sdg_spans_clear(sdg_spans_t *spans) {
  spans->count = 0;
}

// Replaces spans [first, last) by the `count` spans `with`.
static bool replace(sdg_spans_t *spans, size_t first, size_t last,
                    const sdg_span_t *with, size_t count) {
  size_t after = spans->count - last, total = first + count + after;
  if (total > spans->room) {
    size_t room = 2 * total + 8;
    sdg_span_t *grown = realloc(spans->span, room * sizeof *grown);
    if (!grown)
      return false;
    spans->span = grown;
    spans->room = room;
  }
  if (after > 0)
    memmove(spans->span + first + count, spans->span + last,
            after * sizeof *spans->span);
  for (size_t i = 0; i < count; i++)
    spans->span[first + i] = with[i];
  spans->count = total;
  return true;
}

bool sdg_spans_add(sdg_spans_t *spans, sdg_span_t span) {
  if (span.bytes == 0)
    return true;
  size_t first = first_from(spans, span.at), last = first;
  uintptr_t at = span.at, end = end_of(span);
  for (; last < spans->count && spans->span[last].at <= end_of(span); last++) {
    if (spans->span[last].at < at)
      at = spans->span[last].at;
    if (end_of(spans->span[last]) > end)
      end = end_of(spans->span[last]);
  }
  sdg_span_t joined = {at, end - at};
  return replace(spans, first, last, &joined, 1);
}

bool sdg_spans_remove(sdg_spans_t *spans, sdg_span_t span) {
  if (span.bytes == 0)
    return true;
  size_t first = first_from(spans, span.at), last = first, kept = 0;
  sdg_span_t rest[2];
  for (; last < spans->count && spans->span[last].at < end_of(span); last++) {
    sdg_span_t old = spans->span[last];
    if (old.at < span.at)
      rest[kept++] = (sdg_span_t){
          old.at, span.at - old.at < old.bytes ? span.at - old.at : old.bytes};
    if (end_of(old) > end_of(span))
      rest[kept++] = (sdg_span_t){end_of(span), end_of(old) - end_of(span)};
  }
  if (last == first || replace(spans, first, last, rest, kept))
    return true;
  (void)replace(spans, first, last, NULL, 0);
  return false;
}

bool sdg_spans_contain(const sdg_spans_t *spans, sdg_span_t span) {
  size_t i = first_from(spans, span.at + 1);
  return i < spans->count && sdg_span_contain(spans->span[i], span);
}

bool sdg_spans_overlap(const sdg_spans_t *spans, sdg_span_t span) {
  size_t i = first_from(spans, span.at + 1);
  return i < spans->count && sdg_span_overlap(spans->span[i], span);
}
