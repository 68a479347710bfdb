// SPDX-License-Identifier: Apache-2.0
// Keeps allocations as a sorted array, and distributed tensors as a short
// list.
#include "src/geometry/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"

bool sdg_span_overlap(sdg_span_t a, sdg_span_t b) {
  return a.bytes > 0 && b.bytes > 0 && a.at < b.at + b.bytes &&
         b.at < a.at + a.bytes;
}

bool sdg_span_contain(sdg_span_t outer, sdg_span_t inner) {
  return inner.at >= outer.at &&
         inner.at + inner.bytes <= outer.at + outer.bytes;
}

// Returns the FNV-1a hash of splits and parts: equal placements have equal
// hashes.
static uint64_t placement_hash(const sdg_placement_t *placement) {
  uint64_t hash = SDG_HASH_SEED;
#define MIX(value) hash = sdg_hash_word(hash, (uint64_t)(value))
  MIX(placement->dims);
  for (int d = 0; d < placement->dims; d++) {
    MIX(placement->split[d].axes);
    for (int i = 0; i < placement->split[d].axes; i++)
      MIX(placement->split[d].axis[i]);
    for (int i = 0; i <= placement->part[d].pieces; i++)
      MIX(placement->part[d].offset[i]);
  }
#undef MIX
  return hash;
}

// ---- allocations ----------------------------------------------------------

// Returns the index of the first allocation that ends after `at`.
static int allocation_at(const sdg_buffers_t *table, uintptr_t at) {
  int low = 0, high = table->allocations;
  while (low < high) {
    int middle = (low + high) / 2;
    if (table->allocation[middle].at + table->allocation[middle].bytes <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void allocation_remove(sdg_buffers_t *table, int index) {
  sdg_span_t gone = table->allocation[index];
  for (sdg_buffer_t *buffer; (buffer = sdg_buffers_overlap(table, gone, NULL));)
    sdg_buffers_drop(table, buffer);
  table->allocations--;
  memmove(table->allocation + index, table->allocation + index + 1,
          (size_t)(table->allocations - index) * sizeof *table->allocation);
}

sdg_status_t sdg_buffers_allocate(sdg_buffers_t *table, uintptr_t at,
                                  size_t bytes) {
  if (bytes == 0)
    return SDG_OK;
  sdg_span_t span = {at, bytes};
  int index = allocation_at(table, at);
  while (index < table->allocations &&
         sdg_span_overlap(table->allocation[index], span))
    allocation_remove(table, index);
  sdg_span_t *grown = realloc(table->allocation,
                              ((size_t)table->allocations + 1) * sizeof *grown);
  if (!grown)
    return sdg_fail(SDG_E_NO_MEMORY, "%d allocations", table->allocations + 1);
  table->allocation = grown;
  memmove(grown + index + 1, grown + index,
          (size_t)(table->allocations - index) * sizeof *grown);
  grown[index] = span;
  table->allocations++;
  return SDG_OK;
}

void sdg_buffers_release(sdg_buffers_t *table, uintptr_t at) {
  int index = allocation_at(table, at);
  if (index < table->allocations && table->allocation[index].at == at)
    allocation_remove(table, index);
}

bool sdg_buffers_allocation(const sdg_buffers_t *table, uintptr_t at,
                            sdg_span_t *out_span) {
  int index = allocation_at(table, at);
  if (index == table->allocations || table->allocation[index].at > at)
    return false;
  *out_span = table->allocation[index];
  return true;
}

// ---- distributed tensors --------------------------------------------------

sdg_span_t sdg_buffer_span(const sdg_buffer_t *buffer) {
  return (sdg_span_t){buffer->at, sdg_layout_bytes(&buffer->layout)};
}

// Changes the description to `to`; dim[d] is the present dimension that
// becomes d. Dimensions of extent 1 are whole in every box. Returns false,
// without a change, if memory runs out or such a dimension is split.
static bool buffer_describe(sdg_buffer_t *buffer, const sdg_layout_t *to,
                            const int *dim) {
  const sdg_placement_t *now = &buffer->placement;
  sdg_placement_t placement;
  for (int d = 0; d < now->dims; d++)
    if (buffer->layout.extent[d] == 1 && now->split[d].axes > 0)
      return false;
  if (sdg_placement_init(to->dims, to->extent, &placement) != SDG_OK)
    return false;
  for (int d = 0; d < to->dims; d++) {
    if (dim[d] < 0)
      continue;
    placement.split[d] = now->split[dim[d]];
    sdg_part_fini(&placement.part[d]);
    if (sdg_part_copy(&now->part[dim[d]], &placement.part[d]) != SDG_OK) {
      sdg_placement_fini(&placement);
      return false;
    }
  }
  sdg_placement_fini(&buffer->placement);
  buffer->placement = placement;
  buffer->placement_hash = placement_hash(&placement);
  buffer->layout = *to;
  for (int r = 0; r < buffer->ranks; r++)
    for (int i = 0; i < 2; i++) {
      sdg_box_t *box = i ? &buffer->owned[r] : &buffer->valid[r], was = *box;
      *box = sdg_layout_box(to);
      for (int d = 0; d < to->dims; d++)
        if (dim[d] >= 0)
          box->dim[d] = was.dim[dim[d]];
    }
  return true;
}

sdg_buffer_t *sdg_buffers_find(sdg_buffers_t *table, uintptr_t at,
                               const sdg_layout_t *layout) {
  for (int i = 0; i < table->buffers; i++)
    if (table->buffer[i]->at == at &&
        sdg_layout_equal(&table->buffer[i]->layout, layout))
      return table->buffer[i];
  for (int i = 0; i < table->buffers; i++) {
    int dim[SDG_DIMS_MAX];
    if (table->buffer[i]->at == at &&
        sdg_layout_map(&table->buffer[i]->layout, layout, dim) &&
        buffer_describe(table->buffer[i], layout, dim))
      return table->buffer[i];
  }
  return NULL;
}

sdg_buffer_t *sdg_buffers_overlap(const sdg_buffers_t *table, sdg_span_t span,
                                  const sdg_buffer_t *except) {
  for (int i = 0; i < table->buffers; i++)
    if (table->buffer[i] != except &&
        sdg_span_overlap(sdg_buffer_span(table->buffer[i]), span))
      return table->buffer[i];
  return NULL;
}

static void buffer_destroy(sdg_buffer_t *buffer) {
  if (!buffer)
    return;
  sdg_placement_fini(&buffer->placement);
  free(buffer->rank);
  free(buffer->place);
  free(buffer->owned);
  free(buffer->valid);
  free(buffer->lack);
  free(buffer);
}

static void spare_keep(sdg_buffers_t *table, sdg_buffer_t *buffer) {
  sdg_buffer_t **place = &table->spare[table->next_spare++ % SDG_BUFFERS_SPARE];
  buffer_destroy(*place);
  *place = buffer;
}

// Returns a dropped buffer of this placement, reset to its new state; NULL if
// there is no such buffer.
static sdg_buffer_t *spare_take(sdg_buffers_t *table,
                                const sdg_placement_t *placement,
                                const sdg_mesh_t *mesh, int self) {
  uint64_t hash = placement_hash(placement);
  for (int i = 0; i < SDG_BUFFERS_SPARE; i++) {
    sdg_buffer_t *buffer = table->spare[i];
    if (!buffer || buffer->placement_hash != hash ||
        buffer->job_ranks != sdg_mesh_ranks(mesh) ||
        buffer->rank[buffer->me] != self ||
        !sdg_placement_equal(&buffer->placement, placement))
      continue;
    memcpy(buffer->valid, buffer->owned,
           (size_t)buffer->ranks * sizeof *buffer->valid);
    table->spare[i] = NULL;
    return buffer;
  }
  return NULL;
}

void sdg_buffers_drop(sdg_buffers_t *table, sdg_buffer_t *buffer) {
  for (int i = 0; i < table->buffers; i++)
    if (table->buffer[i] == buffer) {
      table->buffers--;
      memmove(table->buffer + i, table->buffer + i + 1,
              (size_t)(table->buffers - i) * sizeof *table->buffer);
      spare_keep(table, buffer);
      return;
    }
}

void sdg_buffers_fini(sdg_buffers_t *table) {
  while (table->buffers > 0)
    sdg_buffers_drop(table, table->buffer[0]);
  for (int i = 0; i < SDG_BUFFERS_SPARE; i++)
    buffer_destroy(table->spare[i]);
  free(table->buffer);
  free(table->allocation);
  *table = (sdg_buffers_t){.buffers = 0};
}

static sdg_buffer_t *buffer_create(const sdg_placement_t *placement,
                                   const sdg_mesh_t *mesh, int self) {
  sdg_buffer_t *buffer = calloc(1, sizeof *buffer);
  if (!buffer)
    return NULL;
  int rank[SDG_RANKS_MAX];
  buffer->ranks = sdg_placement_group(placement, mesh, self, rank);
  size_t count = (size_t)buffer->ranks;
  buffer->axes = sdg_placement_axes(placement);
  buffer->placement_hash = placement_hash(placement);
  buffer->rank = calloc(count, sizeof *buffer->rank);
  buffer->job_ranks = sdg_mesh_ranks(mesh);
  buffer->place = calloc((size_t)buffer->job_ranks, sizeof *buffer->place);
  buffer->owned = calloc(count, sizeof *buffer->owned);
  buffer->valid = calloc(count, sizeof *buffer->valid);
  buffer->lack = calloc(count, sizeof *buffer->lack);
  if (!buffer->rank || !buffer->place || !buffer->owned || !buffer->valid ||
      !buffer->lack ||
      sdg_placement_copy(placement, &buffer->placement) != SDG_OK) {
    buffer_destroy(buffer);
    return NULL;
  }
  for (int r = 0; r < buffer->ranks; r++) {
    buffer->rank[r] = rank[r];
    buffer->owned[r] = buffer->valid[r] =
        sdg_placement_box(placement, mesh, rank[r]);
    buffer->place[rank[r]] = r;
    if (rank[r] == self)
      buffer->me = r;
  }
  for (int r = 0; buffer->ranks < buffer->job_ranks && r < buffer->job_ranks;
       r++) {
    buffer->place[r] = 0;
    (void)sdg_placement_group(placement, mesh, r, rank);
    while (rank[buffer->place[r]] != r)
      buffer->place[r]++;
  }
  return buffer;
}

static bool room_make(sdg_buffers_t *table) {
  if (table->buffers < table->room)
    return true;
  int room = 2 * table->room + 8;
  sdg_buffer_t **grown =
      realloc(table->buffer, (size_t)room * sizeof *table->buffer);
  if (!grown)
    return false;
  table->buffer = grown;
  table->room = room;
  return true;
}

sdg_status_t sdg_buffers_put(sdg_buffers_t *table, uintptr_t at,
                             const sdg_layout_t *layout,
                             const sdg_placement_t *placement,
                             const sdg_mesh_t *mesh, int self) {
  sdg_buffer_t *old = sdg_buffers_find(table, at, layout);
  if (old)
    sdg_buffers_drop(table, old);
  sdg_buffer_t *buffer = spare_take(table, placement, mesh, self);
  if (!buffer)
    buffer = buffer_create(placement, mesh, self);
  if (!buffer || !room_make(table)) {
    buffer_destroy(buffer);
    return sdg_fail(SDG_E_NO_MEMORY, "a distributed tensor");
  }
  buffer->number = ++table->last_number;
  buffer->at = at;
  buffer->layout = *layout;
  table->buffer[table->buffers++] = buffer;
  return SDG_OK;
}

bool sdg_buffer_lack(const sdg_buffer_t *buffer, const sdg_box_t *need,
                     sdg_box_t *out) {
  const int64_t *extent = buffer->layout.extent;
  bool lacks = false;
  sdg_box_t all = sdg_layout_box(&buffer->layout);
  for (int r = 0; r < buffer->ranks; r++)
    out[r] = need ? (sdg_box_t){.dims = buffer->layout.dims} : all;
  for (int r = 0; need && r < buffer->job_ranks; r++)
    out[buffer->place[r]] =
        sdg_ring_hull(&out[buffer->place[r]], &need[r], extent);
  for (int r = 0; r < buffer->ranks; r++) {
    bool has = sdg_ring_contains(&buffer->valid[r], &out[r], extent);
    out[r] = has ? (sdg_box_t){.dims = buffer->layout.dims}
                 : sdg_ring_hull(&buffer->valid[r], &out[r], extent);
    lacks |= !has;
  }
  return lacks;
}

void sdg_buffer_grow(sdg_buffer_t *buffer, const sdg_box_t *sent) {
  for (int r = 0; r < buffer->ranks; r++)
    if (!sdg_box_empty(&sent[r]))
      buffer->valid[r] = sent[r];
}

bool sdg_buffer_grown(const sdg_buffer_t *buffer) {
  for (int r = 0; r < buffer->ranks; r++)
    if (!sdg_box_equal(&buffer->valid[r], &buffer->owned[r]))
      return true;
  return false;
}

bool sdg_buffer_complete(const sdg_buffer_t *buffer) {
  sdg_box_t all = sdg_layout_box(&buffer->layout);
  for (int r = 0; r < buffer->ranks; r++)
    if (!sdg_box_contains(&buffer->valid[r], &all))
      return false;
  return true;
}
