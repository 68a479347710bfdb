// SPDX-License-Identifier: Apache-2.0
// Where results of pieces are stored, and their weights.
#include "rules/pool/pieces.h"

static const sdg_placement_t *x_of(const sdg_pool_pieces_t *of) {
  return &of->tagging->placement[of->pool->x];
}

// Number of non-empty pieces before `piece`.
static int64_t pieces_before(const sdg_part_t *part, int piece) {
  int64_t count = 0;
  for (int i = 0; i < piece; i++)
    count += sdg_part_size(part, i) > 0;
  return count;
}

int64_t sdg_pool_pieces_elements(const sdg_pool_pieces_t *of, int d) {
  const sdg_part_t *part = &x_of(of)->part[d];
  return pieces_before(part, part->pieces);
}

sdg_box_t sdg_pool_pieces_part(const sdg_pool_pieces_t *of, int rank) {
  const sdg_placement_t *x = x_of(of);
  sdg_box_t box = sdg_placement_box(x, of->tagging->mesh, rank);
  for (int d = 2; d < box.dims && !sdg_box_empty(&box); d++) {
    int64_t first = pieces_before(
        &x->part[d], sdg_split_piece(&x->split[d], of->tagging->mesh, rank));
    box.dim[d] = of->pool->spec.everyones[d]
                     ? (sdg_range_t){first, first + 1}
                     : (sdg_range_t){0, of->pool->op.dim[d].y_extent};
  }
  return box;
}

sdg_box_t sdg_pool_pieces_parts(const sdg_pool_pieces_t *of, int rank) {
  sdg_box_t box =
      sdg_placement_box(&of->pool->op.y_placement, of->tagging->mesh, rank);
  for (int d = 2; d < box.dims && !sdg_box_empty(&box); d++)
    if (of->pool->spec.everyones[d])
      box.dim[d].hi = sdg_pool_pieces_elements(of, d);
  return box;
}

double sdg_pool_pieces_weight(const sdg_pool_pieces_t *of, const sdg_box_t *x,
                              double *out_rest) {
  double weight = 1;
  *out_rest = 1;
  for (int d = 2; d < x->dims; d++) {
    const sdg_part_t *part = &x_of(of)->part[d];
    int64_t max = 0;
    if (!of->pool->spec.everyones[d])
      continue;
    for (int i = 0; i < part->pieces; i++)
      if (sdg_part_size(part, i) > max)
        max = sdg_part_size(part, i);
    weight *= (double)(x->dim[d].hi - x->dim[d].lo) / (double)max;
    *out_rest *= (double)(sdg_pool_pieces_elements(of, d) * max) /
                 (double)sdg_part_extent(part);
  }
  return weight;
}
