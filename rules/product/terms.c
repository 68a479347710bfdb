// SPDX-License-Identifier: Apache-2.0
// Cuts a product in K instead of M or N, if the ranks then send fewer bytes:
// sums instead of factors.

#include "rules/product/rule.h"

// The epilogue is part of a multiplication, and the vendor cannot multiply
// matrices with K = 0. So every rank must have a part of K.
bool sdg_product_can_follow(const sdg_product_parts_t *m,
                            const sdg_part_t *terms) {
  if (m->product.epilogue <= 1)
    return true;
  for (int i = 0; i < terms->pieces; i++)
    if (sdg_part_size(terms, i) == 0)
      return false;
  return true;
}

// The one dimension of a placement that is split; -1: none, or several.
static int split_dim(const sdg_placement_t *placement) {
  int dim = -1;
  for (int d = 0; d < placement->dims; d++)
    if (placement->split[d].axes > 0) {
      if (dim >= 0)
        return -1;
      dim = d;
    }
  return dim;
}

// The part of K, if both factors are cut in K like the product is in M or N,
// and in no other dimension; otherwise NULL.
static const sdg_part_t *terms_of(const sdg_product_parts_t *m) {
  const sdg_placement_t *product = &m->tagging->placement[0];
  const sdg_part_t *part[2];
  int cut = split_dim(product);
  if ((cut != SDG_M && cut != SDG_N) ||
      m->tagging->axes != sdg_placement_axes(product))
    return NULL;
  for (int f = 0; f < 2; f++) {
    int d = split_dim(&m->matrix[f]);
    if (d < 0 || m->product.matrix[f].dim[d] != SDG_K ||
        !sdg_split_equal(&m->matrix[f].split[d], &product->split[cut]))
      return NULL;
    part[f] = &m->matrix[f].part[d];
  }
  return sdg_part_equal(part[0], part[1]) ? part[0] : NULL;
}

// How many bytes of factors all ranks together would receive. Factors that are
// `taken` from an earlier product need no messages.
static int64_t factors_bytes(const sdg_product_parts_t *m, const bool *taken) {
  const sdg_tagging_t *tagging = m->tagging;
  int64_t bytes = 0;
  for (int f = 0; f < 2; f++)
    for (int i = 0; !taken[f] && i < tagging->ranks; i++) {
      sdg_box_t need = sdg_product_need(m, f, tagging->rank_list[i]);
      sdg_box_t own = sdg_placement_box(&m->matrix[f], tagging->mesh,
                                        tagging->rank_list[i]);
      sdg_box_t both = sdg_box_intersect(&need, &own);
      bytes += (sdg_box_count(&need) - sdg_box_count(&both)) *
               sdg_product_type_bytes(m->product.matrix[f].type);
    }
  return bytes;
}

// How many bytes of sums all ranks together would receive: the owner of each
// element of the result receives the terms of all other ranks that have any.
static int64_t sums_bytes(const sdg_product_parts_t *m,
                          const sdg_part_t *terms) {
  const sdg_matrix_t *result = &m->product.matrix[SDG_RESULT];
  int64_t elements = 1, others = -1;
  for (int d = 0; d < result->dims; d++)
    elements *= sdg_placement_extent(&m->matrix[SDG_RESULT], d);
  for (int i = 0; i < terms->pieces; i++)
    others += sdg_part_size(terms, i) > 0;
  return elements * others *
         sdg_product_type_bytes(sdg_product_sum_type(&m->product));
}

// Cuts the product in K instead of its cut dimension; the rest is unchanged.
static sdg_status_t turn(sdg_product_parts_t *m, sdg_tagging_t *tagging,
                         const sdg_part_t *terms) {
  const sdg_placement_t *product = &m->tagging->placement[0];
  int64_t extent[SDG_PRODUCT_DIMS];
  sdg_split_t split = product->split[split_dim(product)];
  for (int d = 0; d < product->dims; d++)
    extent[d] = sdg_placement_extent(product, d);
  *tagging = *m->tagging;
  SDG_TRY(sdg_placement_init(product->dims, extent, &tagging->placement[0]));
  sdg_status_t status = sdg_placement_split(
      &tagging->placement[0], tagging->mesh, SDG_K, &split, terms);
  if (status != SDG_OK) {
    sdg_placement_fini(&tagging->placement[0]);
    return status;
  }
  m->tagging = tagging;
  m->stays = true;
  for (int i = 0; i < split.axes; i++)
    m->sum_axes |= (sdg_axes_t)1 << split.axis[i];
  return SDG_OK;
}

sdg_status_t sdg_product_prefer_sums(sdg_product_parts_t *m, const bool *taken,
                                     sdg_tagging_t *tagging, bool *out_sums) {
  const sdg_section_t *section = m->tagging->section;
  const sdg_part_t *terms = terms_of(m);
  *out_sums = false;
  // With `keep = dy` the product must gather its factors, because a later
  // product may reuse them.
  if (!terms || m->sum_axes || section->keeps_dy || !m->product.sums ||
      m->product.device_scalars || (m->tagging->axes & ~section->sum_axes) ||
      !sdg_product_can_follow(m, terms) ||
      sums_bytes(m, terms) >= factors_bytes(m, taken))
    return SDG_OK;
  SDG_TRY(turn(m, tagging, terms));
  *out_sums = true;
  return SDG_OK;
}
