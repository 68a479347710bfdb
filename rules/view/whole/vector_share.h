/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: which elements of a call's vectors each rank computes a value
 * of, where the vectors are in pieces. Pure. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_VECTOR_SHARE_H
#define SDG_RULES_VIEW_WHOLE_VECTOR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/vendor/vector.h"
#include "src/geometry/buffer.h"

enum { SDG_VECTOR_BLOCKS = 48, SDG_VECTOR_DIMS = SDG_AXES_MAX + 1 };

/* Elements of a vector, at regular distances: those with the numbers first + i0
 * * step[0] + i1 * step[1] + ..., 0 <= i < extent. The last step is 1. Numbers
 * count from the element with the lowest address, whatever the increment.
 * Example: rows 4 to 7 of every channel of a packed tensor with 3 channels of
 * 10 rows and 6 columns: first 24, extents 3 and 24, steps 60 and 1. */
typedef struct sdg_vector_block {
  int64_t first;
  int dims;
  int64_t extent[SDG_VECTOR_DIMS], step[SDG_VECTOR_DIMS];
} sdg_vector_block_t;

/* What one rank computes. Each element of the vectors is in a block of exactly
 * one of the ranks along `axes`, and is up to date there. */
typedef struct sdg_vector_share {
  sdg_axes_t axes; /* the axes that cut the vectors */
  /* Hashes the vectors' lengths, increments and types, and where the tensors
   * are in them: equal on all ranks that make the same call. */
  uint64_t hash;
  int64_t count; /* elements of all blocks; 0: this rank has none */
  int blocks;
  sdg_vector_block_t block[SDG_VECTOR_BLOCKS];
} sdg_vector_share_t;

/* Returns false if the vectors are not in pieces, or if no such share exists:
 * two vectors that are cut in different places or run in opposite directions, a
 * cut inside an element, tensors that lie in one another's gaps. Decides by
 * what is the same on every rank. `self` is this rank. */
bool sdg_vector_share_make(const sdg_buffers_t *table,
                           const sdg_vector_t *vector, const sdg_mesh_t *mesh,
                           int self, sdg_vector_share_t *out);

#endif
