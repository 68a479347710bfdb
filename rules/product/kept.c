// SPDX-License-Identifier: Apache-2.0
// Which factors of products are kept.
#include "rules/product/kept.h"

#include <string.h>

#include "rules/memory/kept_slot.h"
#include "rules/product/check.h"
#include "src/base/hash.h"

// Further kinds of products are not distinguished, and keep nothing.
enum { KINDS_MAX = 1024 };

// The state of one calling thread.
typedef struct state {
  // Products by number, in the order of their first occurrence.
  uint64_t kind[KINDS_MAX];
  int kinds;
} state_t;
static state_t states[SDG_CHANNEL_THREADS]; // by the thread's channel

static state_t *state_get(void) {
  return &states[sdg_channel_get()];
}

// ---- what is left ----------------------------------------------------------

// Operand 0 is the product itself; its factors follow.
static int operand_of(int factor) {
  return factor + 1;
}

// Whether both factors are at one address. Nothing is kept then, because slots
// are found by their address.
static bool is_one(const sdg_product_t *product) {
  return product->matrix[SDG_FACTOR_1].data ==
         product->matrix[SDG_FACTOR_2].data;
}

void sdg_product_kept_look(const sdg_product_t *product, int64_t *out) {
  for (int f = 0; f < SDG_PRODUCT_KEPTS; f++) {
    const sdg_matrix_t *matrix = &product->matrix[f];
    const sdg_kept_slot_t *is = sdg_kept_slot_look(
        operand_of(f), matrix->there && !is_one(product) ? matrix->data : NULL);
    out[f] = is ? (int64_t)(is->number & INT32_MAX) : 0;
  }
}

// Whether all ranks reported the same.
static bool all_have(const sdg_tag_vector_t *vector, int at) {
  for (int r = 0; r < vector->ranks; r++)
    if (vector->extent[r * vector->dims + at] != vector->extent[at])
      return false;
  return vector->extent[at] != 0;
}

// Finds what all ranks have of a factor; false if they differ.
static bool found(const sdg_call_t *call, int factor, sdg_kept_slot_t *out) {
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(call->op_descriptor, call->op_generation);
  return vector && vector->dims == SDG_ROOMS + SDG_PRODUCT_KEPTS &&
         all_have(vector, SDG_ROOMS + factor) &&
         sdg_kept_slot_seen(operand_of(factor), out) &&
         out->number + SDG_KEPT_SLOTS > sdg_kept_slot_number() + SDG_HELD_MAX;
}

void sdg_product_kept_found(const sdg_call_t *call, uint64_t *out) {
  for (int f = 0; f < SDG_PRODUCT_KEPTS; f++) {
    sdg_kept_slot_t is;
    out[f] = found(call, f, &is)
                 ? sdg_hash_bytes(is.what, &is.order, sizeof is.order) | 1
                 : 0;
  }
}

// ---- what becomes of a factor ----------------------------------------------

// Hashes what determines, on all ranks, which elements go where and in which
// order.
static uint64_t factor_hash(const sdg_product_parts_t *m, int factor,
                            const sdg_box_t *need) {
  const sdg_matrix_t *matrix = &m->product.matrix[factor];
  const sdg_tagging_t *tagging = m->tagging;
  uint64_t hash = SDG_HASH_SEED;
  hash = sdg_hash_bytes(hash, &matrix->type, sizeof matrix->type);
  hash = sdg_hash_bytes(hash, &matrix->outer, sizeof matrix->outer);
  hash = sdg_hash_bytes(hash, &matrix->inner, sizeof matrix->inner);
  hash = sdg_hash_bytes(hash, tagging->rank_list,
                        (size_t)tagging->ranks * sizeof tagging->rank_list[0]);
  for (int i = 0; i < tagging->ranks; i++) {
    sdg_box_t own = sdg_placement_box(&m->matrix[factor], tagging->mesh,
                                      tagging->rank_list[i]);
    sdg_product_room_t room = sdg_product_room_of(m, factor, i);
    for (int d = 0; d < matrix->dims; d++) {
      const int64_t number[] = {own.dim[d].lo, own.dim[d].hi, need[i].dim[d].lo,
                                need[i].dim[d].hi, room.stride[d]};
      hash = sdg_hash_bytes(hash, number, sizeof number);
    }
  }
  return hash;
}

static sdg_axes_t axes_of(const sdg_placement_t *placement, int dim) {
  sdg_axes_t axes = 0;
  const sdg_split_t *split = &placement->split[dim];
  for (int i = 0; i < split->axes; i++)
    axes |= (sdg_axes_t)1 << split->axis[i];
  return axes;
}

// Whether the factor is gathered along K.
static bool sums_over(const sdg_product_parts_t *m, int factor) {
  const sdg_matrix_t *matrix = &m->product.matrix[factor];
  for (int d = 0; d < matrix->dims; d++)
    if (matrix->dim[d] == SDG_K)
      return axes_of(&m->matrix[factor], d) &
             ~axes_of(&m->tagging->placement[0], SDG_K);
  return false;
}

// The product's number in the order of first occurrences; 0: too many products.
// All ranks plan a new kind of product at the same call.
static uint64_t order_of(uint64_t kind) {
  state_t *state = state_get();
  for (int i = 0; i < state->kinds; i++)
    if (state->kind[i] == kind)
      return (uint64_t)i + 1;
  if (state->kinds == KINDS_MAX)
    return 0;
  state->kind[state->kinds++] = kind;
  return (uint64_t)state->kinds;
}

// Hashes what all ranks know of a product, and the factor.
static uint64_t kind_of(const sdg_product_parts_t *m, int factor,
                        uint64_t token) {
  const sdg_placement_t *product = &m->tagging->placement[0];
  const char *section = m->tagging->section->name;
  uint64_t hash = sdg_hash_bytes(token, &factor, sizeof factor);
  hash = sdg_hash_bytes(hash, m->product.op, sizeof m->product.op);
  hash = sdg_hash_bytes(hash, section, strlen(section));
  for (int d = 0; d < product->dims; d++) {
    int64_t extent = sdg_placement_extent(product, d);
    hash = sdg_hash_bytes(hash, &extent, sizeof extent);
  }
  return hash;
}

sdg_product_keep_t sdg_product_keep(const sdg_product_parts_t *m, int factor,
                                    const sdg_box_t *need) {
  const sdg_section_t *section = m->tagging->section;
  sdg_product_keep_t keep = {.leaves = false};
  if (!section->keeps_x && !section->keeps_dy)
    return keep;
  bool sum = sums_over(m, factor);
  uint64_t hash = factor_hash(m, factor, need) & ~(uint64_t)1;
  sdg_kept_slot_t is;
  keep.token = hash | sum;
  keep.order = order_of(kind_of(m, factor, keep.token));
  if (keep.order == 0)
    return keep;
  keep.takes = (sum ? section->keeps_x : section->keeps_dy) &&
               found(m->call, factor, &is) && is.what == (hash | !sum) &&
               is.order < keep.order;
  keep.leaves = !keep.takes && (sum ? section->keeps_dy : section->keeps_x);
  return keep;
}
