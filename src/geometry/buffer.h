/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer table of the whole view: which device memory there is, and which
 * tensors in it are distributed: right here in a box only. Pure: no I/O, no
 * CUDA.
 *
 * Memory that no distributed tensor covers is the same on every rank. All ranks
 * of one program keep the same table, up to addresses: what one rank knows of
 * another's boxes is what that rank knows of its own. */
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

/* [at, at + bytes) of device memory. */
typedef struct sdg_span {
  uintptr_t at;
  size_t bytes;
} sdg_span_t;
bool sdg_span_overlap(sdg_span_t a, sdg_span_t b);
bool sdg_span_contain(sdg_span_t outer, sdg_span_t inner);

/* A distributed tensor. Arrays have an element for each of the `ranks` of its
 * communicator. */
typedef struct sdg_buffer {
  uint64_t number; /* the same on every rank, never used again */
  uintptr_t at;
  sdg_layout_t layout;
  sdg_placement_t placement; /* who gives what */
  uint64_t placement_hash;
  sdg_axes_t axes;
  int ranks, me;
  int *rank; /* of the job, in the communicator's order */
  int job_ranks;
  int *place;       /* of each rank of the job in its own communicator: ranks of
                       one place have the same boxes */
  sdg_box_t *owned; /* the placement's */
  sdg_box_t *valid; /* contains `owned`: what is right at each rank, which may
                       go around the end of a dimension (src/geometry/ring.h) */
  sdg_box_t *lack;  /* room for what sdg_buffer_lack finds */
} sdg_buffer_t;

enum { SDG_BUFFERS_SPARE = 32 };

typedef struct sdg_buffers {
  sdg_span_t *allocation; /* ascending, disjoint */
  int allocations;
  sdg_buffer_t **buffer; /* spans may overlap only where elements do not */
  int buffers, room;
  uint64_t last_number;
  /* The last ones dropped: programs write the same tensors step by step, and
   * then nothing is allocated. */
  sdg_buffer_t *spare[SDG_BUFFERS_SPARE];
  unsigned next_spare;
} sdg_buffers_t;
void sdg_buffers_fini(sdg_buffers_t *table);

/* An allocation was made; an older one there is gone. */
sdg_status_t sdg_buffers_allocate(sdg_buffers_t *table, uintptr_t at,
                                  size_t bytes) SDG_MUST_CHECK;
/* The allocation that begins at `at` is freed, with what lies in it. */
void sdg_buffers_release(sdg_buffers_t *table, uintptr_t at);
/* The allocation that holds this address; false if none does. */
bool sdg_buffers_allocation(const sdg_buffers_t *table, uintptr_t at,
                            sdg_span_t *out_span);

sdg_span_t sdg_buffer_span(const sdg_buffer_t *buffer);
/* The buffer that is this tensor; NULL if there is none. One that was noted by
 * another description of the same elements, of other dimensions of extent 1 or
 * in another order, has this one from now on. */
sdg_buffer_t *sdg_buffers_find(sdg_buffers_t *table, uintptr_t at,
                               const sdg_layout_t *layout);
/* The first buffer, in order of their numbers, that shares bytes with `span`,
 * but not `except`; NULL if there is none. */
sdg_buffer_t *sdg_buffers_overlap(const sdg_buffers_t *table, sdg_span_t span,
                                  const sdg_buffer_t *except);
void sdg_buffers_drop(sdg_buffers_t *table, sdg_buffer_t *buffer);

/* The tensor has been written: each rank of the job has right what the
 * placement gives it; `self` is this rank. Replaces the buffer that is the same
 * tensor. Copies its arguments. */
sdg_status_t sdg_buffers_put(sdg_buffers_t *table, uintptr_t at,
                             const sdg_layout_t *layout,
                             const sdg_placement_t *placement,
                             const sdg_mesh_t *mesh, int self) SDG_MUST_CHECK;

/* What has to be sent so that every rank r of the job has need[r] right (NULL:
 * everything), which may go around the end of a dimension: for a rank that
 * lacks some of it the hull of what it has and what it needs, for the others an
 * empty box. False if no rank of the job lacks anything: ranks of one place all
 * get what one of them needs, so that every communicator sends, and the ranks
 * keep the same table. out has buffer->ranks boxes. */
bool sdg_buffer_lack(const sdg_buffer_t *buffer, const sdg_box_t *need,
                     sdg_box_t *out);
/* What was sent is right from now on; `sent` as from sdg_buffer_lack. */
void sdg_buffer_grow(sdg_buffer_t *buffer, const sdg_box_t *sent);
/* True if some rank has right more than the placement gives it. */
bool sdg_buffer_grown(const sdg_buffer_t *buffer);
/* True if every rank has everything right: no buffer need be kept. */
bool sdg_buffer_complete(const sdg_buffer_t *buffer);

/* FNV-1a of splits and parts: equal placements have equal numbers. */
uint64_t sdg_placement_hash(const sdg_placement_t *placement);

#endif
