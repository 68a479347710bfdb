/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer table of the whole view: the allocations of device memory, and
 * the distributed tensors in them. A distributed tensor is up to date on this
 * rank only inside a box. Pure: no I/O, no CUDA.
 *
 * Memory outside distributed tensors is the same on every rank. All ranks of
 * one program keep the same table, except for addresses: each rank computes
 * the other ranks' boxes as they compute them themselves. */
#ifndef SDG_SRC_GEOMETRY_BUFFER_H
#define SDG_SRC_GEOMETRY_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/box.h"
#include "src/geometry/layout.h"
#include "src/geometry/mesh.h"
#include "src/geometry/placement.h"
#include "src/geometry/ring.h"

/* The device memory [at, at + bytes). */
typedef struct sdg_span {
  uintptr_t at;
  size_t bytes;
} sdg_span_t;
bool sdg_span_overlap(sdg_span_t a, sdg_span_t b);
bool sdg_span_contain(sdg_span_t outer, sdg_span_t inner);

/* A distributed tensor. Its arrays have one element for each of the `ranks`
 * ranks of its communicator, unless stated otherwise. */
typedef struct sdg_buffer {
  uint64_t number; /* the same on every rank, never reused */
  uintptr_t at;
  sdg_layout_t layout;
  sdg_placement_t placement; /* says which rank owns which part */
  uint64_t placement_hash;
  sdg_axes_t axes;
  int ranks, me;
  int *rank; /* ranks of the job, in the communicator's order */
  int job_ranks;
  /* [job_ranks]: each rank's index in its own communicator; ranks with the
   * same index have the same boxes */
  int *place;
  sdg_box_t *owned; /* from the placement */
  /* The box that is up to date on each rank; contains `owned`, may cross the
   * end of a periodic dimension (src/geometry/ring.h). */
  sdg_box_t *valid;
  sdg_box_t *lack; /* working memory for sdg_buffer_lack */
} sdg_buffer_t;

enum { SDG_BUFFERS_SPARE = 32 };

typedef struct sdg_buffers {
  sdg_span_t *allocation; /* ascending, disjoint */
  int allocations;
  /* Spans may overlap only if they have no element in common. */
  sdg_buffer_t **buffer;
  int buffers, room;
  uint64_t last_number;
  /* The buffers dropped last. A program that writes the same tensors in each
   * step reuses them, so nothing is allocated. */
  sdg_buffer_t *spare[SDG_BUFFERS_SPARE];
  unsigned next_spare;
} sdg_buffers_t;
void sdg_buffers_fini(sdg_buffers_t *table);

/* Adds an allocation; removes an older one at the same addresses. */
sdg_status_t sdg_buffers_allocate(sdg_buffers_t *table, uintptr_t at,
                                  size_t bytes) SDG_MUST_CHECK;
/* Removes the allocation that begins at `at`, with the tensors in it. */
void sdg_buffers_release(sdg_buffers_t *table, uintptr_t at);
/* Finds the allocation that contains this address; false if none does. */
bool sdg_buffers_allocation(const sdg_buffers_t *table, uintptr_t at,
                            sdg_span_t *out_span);

sdg_span_t sdg_buffer_span(const sdg_buffer_t *buffer);
/* Returns the buffer of this tensor; NULL if it has none. If the buffer was
 * stored with another description of the same elements (other dimensions of
 * extent 1, or another order of dimensions), its description becomes this
 * one. */
sdg_buffer_t *sdg_buffers_find(sdg_buffers_t *table, uintptr_t at,
                               const sdg_layout_t *layout);
/* Returns the buffer with the lowest number that shares bytes with `span`,
 * ignoring `except`; NULL if none does. */
sdg_buffer_t *sdg_buffers_overlap(const sdg_buffers_t *table, sdg_span_t span,
                                  const sdg_buffer_t *except);
void sdg_buffers_drop(sdg_buffers_t *table, sdg_buffer_t *buffer);

/* Call when the tensor has been written: on each rank of the job the part that
 * the placement gives it is up to date. `self` is this rank. Replaces the
 * buffer of the same tensor. Copies its arguments. */
sdg_status_t sdg_buffers_put(sdg_buffers_t *table, uintptr_t at,
                             const sdg_layout_t *layout,
                             const sdg_placement_t *placement,
                             const sdg_mesh_t *mesh, int self) SDG_MUST_CHECK;

/* Computes what to send so that need[r] (NULL: everything) is up to date on
 * every rank r of the job. A need may cross the end of a periodic dimension.
 * out has buffer->ranks boxes: for a rank whose need is not covered, the hull
 * of its valid box and its need; for the other ranks an empty box. Returns
 * false if every need is covered. Ranks with the same index in their
 * communicators all get what any one of them needs, so that every communicator
 * sends and all ranks keep the same table. */
bool sdg_buffer_lack(const sdg_buffer_t *buffer, const sdg_box_t *need,
                     sdg_box_t *out);
/* Call after the exchange: what was sent is up to date; `sent` as from
 * sdg_buffer_lack. */
void sdg_buffer_grow(sdg_buffer_t *buffer, const sdg_box_t *sent);
/* Returns true if on some rank more is up to date than the placement gives
 * it. */
bool sdg_buffer_grown(const sdg_buffer_t *buffer);
/* Returns true if everything is up to date on every rank: the buffer is no
 * longer needed. */
bool sdg_buffer_complete(const sdg_buffer_t *buffer);

#endif
