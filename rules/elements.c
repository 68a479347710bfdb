// SPDX-License-Identifier: Apache-2.0
// Which element-by-element calls leave distributed tensors where they are.
#include "rules/elements.h"

// Every rank makes the program's call, of all elements: where the operands are
// not right here, neither is the result, and nobody takes it for that.

static sdg_span_t span_of(const sdg_access_t *access) {
  return (sdg_span_t){access->at, access->width};
}

// The accesses that are vectors: `written`, and `read` where there is another.
static bool vectors_get(const sdg_touch_t *touch, const sdg_access_t **written,
                        const sdg_access_t **read) {
  *written = *read = NULL;
  for (int i = 0; i < touch->accesses; i++) {
    const sdg_access_t *access = &touch->access[i];
    if (access->width == 0)
      continue;
    const sdg_access_t **to = access->writes ? written : read;
    if (*to)
      return false;
    *to = access;
  }
  return *written;
}

static bool elements_match(const sdg_buffer_t *buffer, const sdg_access_t *at,
                           size_t elem_bytes) {
  return (size_t)buffer->layout.elem_bytes == elem_bytes &&
         (intptr_t)(buffer->at - at->at) % (intptr_t)elem_bytes == 0;
}

// Whether what a rank has of y's tensor it has of x's, which lies in its vector
// where y's does.
static bool covers(const sdg_buffer_t *x, const sdg_access_t *read,
                   const sdg_buffer_t *y, const sdg_access_t *written) {
  if (x->at - read->at != y->at - written->at || x->axes != y->axes ||
      x->ranks != y->ranks || !sdg_layout_equal(&x->layout, &y->layout) ||
      x->layout.dims != y->layout.dims)
    return false;
  for (int d = 0; d < x->layout.dims; d++)
    if (x->layout.extent[d] != y->layout.extent[d])
      return false;
  for (int r = 0; r < y->ranks; r++)
    for (int d = 0; d < y->layout.dims && !sdg_box_empty(&y->owned[r]); d++)
      if (x->valid[r].dim[d].lo > y->owned[r].dim[d].lo ||
          x->valid[r].dim[d].hi < y->owned[r].dim[d].hi)
        return false;
  return true;
}

bool sdg_elements_stay(const sdg_buffers_t *table, const sdg_touch_t *touch) {
  const sdg_access_t *written, *read;
  if (!touch->elementwise || !vectors_get(touch, &written, &read))
    return false;
  sdg_buffer_t *y = sdg_buffers_overlap(table, span_of(written), NULL);
  if (!y || !elements_match(y, written, touch->elementwise))
    return false;
  sdg_buffer_t *x =
      read ? sdg_buffers_overlap(table, span_of(read), NULL) : NULL;
  if (x)
    return !sdg_buffers_overlap(table, span_of(written), y) &&
           !sdg_buffers_overlap(table, span_of(read), x) &&
           covers(x, read, y, written);
  // Others that lie in what is written have to be of the same elements.
  for (int i = 0; i < table->buffers; i++)
    if (sdg_span_overlap(sdg_buffer_span(table->buffer[i]), span_of(written)) &&
        !elements_match(table->buffer[i], written, touch->elementwise))
      return false;
  return true;
}

// Written anew: halos and what else was brought are another's again.
static sdg_status_t renew(sdg_buffers_t *table, const sdg_buffer_t *buffer,
                          const sdg_mesh_t *mesh, int self) {
  sdg_placement_t placement;
  sdg_layout_t layout = buffer->layout;
  uintptr_t at = buffer->at;
  SDG_TRY(sdg_placement_copy(&buffer->placement, &placement));
  sdg_status_t status =
      sdg_buffers_put(table, at, &layout, &placement, mesh, self);
  sdg_placement_fini(&placement);
  return status;
}

sdg_status_t sdg_elements_note(sdg_buffers_t *table, const sdg_touch_t *touch,
                               const sdg_mesh_t *mesh, int self) {
  const sdg_access_t *written, *read;
  uint64_t last = table->last_number;
  if (!vectors_get(touch, &written, &read))
    return SDG_OK;
  // In the order of their numbers; new ones have larger numbers.
  for (int i = 0; i < table->buffers;) {
    sdg_buffer_t *buffer = table->buffer[i];
    bool due = buffer->number <= last &&
               sdg_span_overlap(sdg_buffer_span(buffer), span_of(written));
    if (due)
      SDG_TRY(renew(table, buffer, mesh, self));
    i = due ? 0 : i + 1;
  }
  return SDG_OK;
}
