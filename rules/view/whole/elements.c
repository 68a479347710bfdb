// SPDX-License-Identifier: Apache-2.0
// Which element-by-element calls leave distributed tensors where they are.
#include "rules/view/whole/elements.h"

#include <stdlib.h>

// Every rank makes the program's call for all elements. Elements that are
// computed from outdated ones are outdated, too, and the table says so.

static sdg_span_t span_of(const sdg_access_t *access) {
  return (sdg_span_t){access->at, access->width};
}

// The accesses that are vectors: `written`, and `read` or NULL. False if there
// are more.
static bool vectors_get(const sdg_memory_access_t *memory,
                        const sdg_access_t **written,
                        const sdg_access_t **read) {
  *written = *read = NULL;
  for (int i = 0; i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
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

// Whether each rank has at least its piece of y up to date in x, and x lies in
// its vector where y lies in its own.
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

static bool update_stays(const sdg_buffers_t *table,
                         const sdg_memory_access_t *memory) {
  const sdg_access_t *written, *read;
  if (!vectors_get(memory, &written, &read))
    return false;
  sdg_buffer_t *y = sdg_buffers_overlap(table, span_of(written), NULL);
  if (!y || !elements_match(y, written, memory->elementwise))
    return false;
  sdg_buffer_t *x =
      read ? sdg_buffers_overlap(table, span_of(read), NULL) : NULL;
  if (x)
    return !sdg_buffers_overlap(table, span_of(written), y) &&
           !sdg_buffers_overlap(table, span_of(read), x) &&
           covers(x, read, y, written);
  // Other tensors in the written vector must have the same elements.
  for (int i = 0; i < table->buffers; i++)
    if (sdg_span_overlap(sdg_buffer_span(table->buffer[i]), span_of(written)) &&
        !elements_match(table->buffer[i], written, memory->elementwise))
      return false;
  return true;
}

// ---- elements that are moved -----------------------------------------------

// Both vectors of a copy, an exchange or a rotation; x is the one that is only
// read, if there is one.
static bool pair_get(const sdg_memory_access_t *memory, const sdg_access_t **x,
                     const sdg_access_t **y) {
  *x = *y = NULL;
  for (int i = 0; i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
    if (access->width == 0)
      continue;
    if (*x && *y)
      return false;
    *(*x ? y : x) = access;
  }
  return *x && *y && (*y)->writes &&
         !sdg_span_overlap(span_of(*x), span_of(*y));
}

static bool writes_both(const sdg_memory_access_t *memory) {
  return memory->elements == SDG_ELEMENTS_SWAP ||
         memory->elements == SDG_ELEMENTS_ROTATE;
}

// How many distributed tensors share bytes with the vector, and how many of
// them lie in it from their first element to their last.
static int tensors_in(const sdg_buffers_t *table, const sdg_access_t *vector,
                      int *out_contained) {
  int count = 0;
  *out_contained = 0;
  for (int i = 0; i < table->buffers; i++) {
    sdg_span_t span = sdg_buffer_span(table->buffer[i]);
    count += sdg_span_overlap(span, span_of(vector));
    *out_contained += sdg_span_contain(span_of(vector), span);
  }
  return count;
}

static bool is_seen(const sdg_buffers_t *table, const sdg_access_t *vector) {
  sdg_span_t allocation;
  return sdg_buffers_allocation(table, vector->at, &allocation) &&
         sdg_span_contain(allocation, span_of(vector));
}

// Whether the tensors in x move to y as they are and, if both are written,
// those in y to x: each lies in its vector as a whole, and nothing of the old
// ones remains.
static bool moves(const sdg_buffers_t *table, const sdg_memory_access_t *memory,
                  const sdg_access_t *x, const sdg_access_t *y) {
  int x_contained, y_contained;
  int of_x = tensors_in(table, x, &x_contained);
  int of_y = tensors_in(table, y, &y_contained);
  bool both = memory->elements == SDG_ELEMENTS_SWAP;
  return memory->elements != SDG_ELEMENTS_ROTATE && !memory->gaps &&
         of_x == x_contained && of_y == y_contained &&
         of_x + (both ? of_y : 0) > 0 && is_seen(table, y) &&
         (!both || is_seen(table, x));
}

static bool pair_stays(const sdg_buffers_t *table,
                       const sdg_memory_access_t *memory) {
  const sdg_access_t *x, *y;
  int contained;
  bool both = writes_both(memory);
  if (!pair_get(memory, &x, &y))
    return false;
  if (moves(table, memory, x, y))
    return true;
  if (memory->elements == SDG_ELEMENTS_BYTES)
    return false;
  int of_x = tensors_in(table, x, &contained);
  int of_y = tensors_in(table, y, &contained);
  // Values that every rank has may overwrite a part of a tensor in pieces.
  if (of_x == 0 && !both)
    return of_y > 0 && (memory->gaps || contained < of_y);
  if (of_x != 1 || of_y != 1)
    return false;
  const sdg_buffer_t *a = sdg_buffers_overlap(table, span_of(x), NULL);
  const sdg_buffer_t *b = sdg_buffers_overlap(table, span_of(y), NULL);
  return elements_match(a, x, memory->elementwise) && covers(a, x, b, y) &&
         (!both || covers(b, y, a, x));
}

bool sdg_elements_stay(const sdg_buffers_t *table,
                       const sdg_memory_access_t *memory) {
  if (!memory->elementwise)
    return false;
  return memory->elements == SDG_ELEMENTS_UPDATE ? update_stays(table, memory)
                                                 : pair_stays(table, memory);
}

// ---- the table after the call ----------------------------------------------

// Replaces the entry of a written tensor: each rank has its own piece up to
// date, but no longer halos or other fetched elements.
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

// The same for all tensors in the vector, in the order of their numbers. New
// entries have larger numbers than `last`.
static sdg_status_t vector_renew(sdg_buffers_t *table,
                                 const sdg_access_t *vector, uint64_t last,
                                 const sdg_mesh_t *mesh, int self) {
  for (int i = 0; i < table->buffers;) {
    sdg_buffer_t *buffer = table->buffer[i];
    bool due = buffer->number <= last &&
               sdg_span_overlap(sdg_buffer_span(buffer), span_of(vector));
    if (due)
      SDG_TRY(renew(table, buffer, mesh, self));
    i = due ? 0 : i + 1;
  }
  return SDG_OK;
}

// A tensor that moves from one vector to the other.
typedef struct moved {
  uintptr_t at;
  sdg_layout_t layout;
  sdg_placement_t placement;
} moved_t;

// Lists the tensors in `from` with the addresses that they get in `to`.
static sdg_status_t moved_add(const sdg_buffers_t *table,
                              const sdg_access_t *from, const sdg_access_t *to,
                              moved_t *moved, int *count) {
  for (int i = 0; i < table->buffers; i++) {
    const sdg_buffer_t *buffer = table->buffer[i];
    moved_t *next = &moved[*count];
    if (!sdg_span_overlap(sdg_buffer_span(buffer), span_of(from)))
      continue;
    next->at = buffer->at - from->at + to->at;
    next->layout = buffer->layout;
    SDG_TRY(sdg_placement_copy(&buffer->placement, &next->placement));
    ++*count;
  }
  return SDG_OK;
}

static void vector_drop(sdg_buffers_t *table, const sdg_access_t *vector) {
  sdg_buffer_t *buffer;
  while ((buffer = sdg_buffers_overlap(table, span_of(vector), NULL)))
    sdg_buffers_drop(table, buffer);
}

static sdg_status_t pair_move(sdg_buffers_t *table, bool both,
                              const sdg_access_t *x, const sdg_access_t *y,
                              const sdg_mesh_t *mesh, int self) {
  int count = 0;
  moved_t *moved;
  SDG_TRY(SDG_ALLOCATE(moved, table->buffers + 1, "for tensors that move"));
  sdg_status_t status = moved_add(table, x, y, moved, &count);
  if (status == SDG_OK && both)
    status = moved_add(table, y, x, moved, &count);
  if (status == SDG_OK) {
    vector_drop(table, y);
    if (both)
      vector_drop(table, x);
  }
  for (int i = 0; i < count; i++) {
    if (status == SDG_OK)
      status = sdg_buffers_put(table, moved[i].at, &moved[i].layout,
                               &moved[i].placement, mesh, self);
    sdg_placement_fini(&moved[i].placement);
  }
  free(moved);
  return status;
}

sdg_status_t sdg_elements_note(sdg_buffers_t *table,
                               const sdg_memory_access_t *memory,
                               const sdg_mesh_t *mesh, int self) {
  const sdg_access_t *x, *y;
  uint64_t last = table->last_number;
  if (memory->elements == SDG_ELEMENTS_UPDATE)
    return vectors_get(memory, &y, &x)
               ? vector_renew(table, y, last, mesh, self)
               : SDG_OK;
  if (!pair_get(memory, &x, &y))
    return SDG_OK;
  bool both = writes_both(memory);
  if (moves(table, memory, x, y))
    return pair_move(table, both, x, y, mesh, self);
  SDG_TRY(vector_renew(table, y, last, mesh, self));
  return both ? vector_renew(table, x, last, mesh, self) : SDG_OK;
}
