// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a graph with a product are: each dimension is cut as
// that of the product, or has one element.
#include "rules/graph/product/product.h"

#include <string.h>

#include "rules/place/tagging.h"
#include "src/call/tag.h"
#include "src/job/job.h"

// ---- dimensions ------------------------------------------------------------

int sdg_graph_product_dim(const sdg_graph_pattern_t *pattern,
                          sdg_graph_level_t level, int d) {
  static const int matrix[SDG_GRAPH_LEVELS][2] = {
      [SDG_GRAPH_LEVEL_X] = {SDG_M, SDG_K},
      [SDG_GRAPH_LEVEL_Y] = {SDG_M, SDG_N},
      [SDG_GRAPH_LEVEL_W] = {SDG_K, SDG_N}};
  int in_matrix = d - pattern->spatial;
  return in_matrix >= 0 ? matrix[level][in_matrix] : d == 0 ? SDG_BATCH : -1;
}

const char *sdg_graph_product_name(const sdg_graph_pattern_t *pattern,
                                   sdg_graph_level_t level, int d) {
  int dim = sdg_graph_product_dim(pattern, level, d);
  return dim < 0 ? "a dimension of the batch"
                 : sdg_dim_name(sdg_dim_at(SDG_FAMILY_MATMUL_GRAPH, dim,
                                           SDG_PRODUCT_DIMS));
}

static const sdg_graph_pattern_t *pattern_of(const sdg_call_t *call) {
  return sdg_graph_call_execution(call)->pattern;
}

static const sdg_placement_t *product_of(const sdg_call_t *call,
                                         const sdg_tagging_t *tagging) {
  return &tagging->placement[sdg_graph_product_index(pattern_of(call))];
}

// ---- readings --------------------------------------------------------------

// The extent of an operand on member r of the group, if the ranks have agreed
// on it; in the whole view all have the same.
static int64_t extent_on(const sdg_call_t *call, int index, int r, int d) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  return vector ? vector->extent[(size_t)r * (size_t)vector->dims + (size_t)d]
                : operand->extent[d];
}

typedef enum reading {
  WHOLE,  // every rank has all, or the same one element
  PIECES, // as the product
  NEITHER,
} reading_t;

// What the ranks' extents say of dimension d of a tensor on a level. With one
// element in each rank's piece a tensor that has one element there may be in
// pieces, too, and counts as that: it is not compared. A reduction counts as
// one, which is asked for where it matters (rules/graph/sums.c).
static reading_t reading_of(const sdg_call_t *call,
                            const sdg_placement_t *product, int index,
                            sdg_graph_level_t level, int d, int *out_rank) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  int dim = sdg_graph_product_dim(p, level, d);
  int at = sdg_graph_product_index(p);
  bool cut = dim >= 0 && product->split[dim].axes > 0;
  bool ones = true, pieces = true, same = true;
  *out_rank = 0;
  for (int r = 0; r < sdg_job_group()->count; r++) {
    int64_t extent = extent_on(call, index, r, d);
    bool piece = cut && extent == extent_on(call, at, r, dim);
    bool alike = extent == extent_on(call, index, 0, d);
    if (!(cut ? piece : alike))
      *out_rank = r;
    ones &= extent == 1;
    pieces &= piece;
    same &= alike;
  }
  if (!cut)
    return same ? WHOLE : NEITHER;
  if (ones && call->operand[index].role == SDG_ROLE_TOTAL)
    return WHOLE;
  return pieces ? PIECES : ones ? WHOLE : NEITHER;
}

static sdg_status_t neither_fail(const sdg_call_t *call, int index,
                                 sdg_graph_level_t level, int d, int r) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  int dim = sdg_graph_product_dim(p, level, d);
  const char *role = sdg_role_name(call->operand[index].role);
  const char *name = sdg_graph_product_name(p, level, d);
  int rank = sdg_job_group()->rank[r];
  long long has = (long long)extent_on(call, index, r, d);
  if (dim < 0)
    return sdg_fail(SDG_E_OPERANDS_DIFFER,
                    "%s: %s of %s is not the same on all ranks: %lld on rank "
                    "%d",
                    call->entry_name, name, role, has, rank);
  return sdg_fail(
      SDG_E_OPERANDS_DIFFER,
      "%s: %s of %s is %lld on rank %d, where the product has %lld: it has to "
      "be the product's on every rank, or 1 on every rank",
      call->entry_name, name, role, has, rank,
      (long long)extent_on(call, sdg_graph_product_index(p), r, dim));
}

// Which dimension of the product each of an operand's is cut as; -1: none.
static sdg_status_t cuts_find(const sdg_call_t *call,
                              const sdg_placement_t *product, int index,
                              sdg_graph_level_t level, int *out_from) {
  for (int d = 0; d < call->operand[index].dims; d++) {
    int r;
    reading_t reading = reading_of(call, product, index, level, d, &r);
    if (reading == NEITHER)
      return neither_fail(call, index, level, d, r);
    out_from[d] = reading == PIECES
                      ? sdg_graph_product_dim(pattern_of(call), level, d)
                      : -1;
  }
  return SDG_OK;
}

// ---- placements ------------------------------------------------------------

static sdg_status_t tensor_place(const sdg_tagging_t *tagging,
                                 const sdg_placement_t *product, int dims,
                                 const int64_t *own, const int *from,
                                 sdg_placement_t *out) {
  int64_t extent[SDG_DIMS_MAX];
  for (int d = 0; d < dims; d++)
    extent[d] = from[d] < 0 ? own[d] : sdg_placement_extent(product, from[d]);
  return sdg_placement_like(dims, extent, tagging->mesh, product, from, out);
}

static sdg_status_t operand_place(const sdg_call_t *call,
                                  sdg_tagging_t *tagging, int index) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  const sdg_placement_t *product = product_of(call, tagging);
  const sdg_operand_t *operand = &call->operand[index];
  int from[SDG_GRAPH_LEVELS][SDG_DIMS_MAX], first = -1;
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++) {
    if (!(p->tensor_levels[p->operand[index]] >> level & 1))
      continue;
    SDG_TRY(
        cuts_find(call, product, index, (sdg_graph_level_t)level, from[level]));
    if (first < 0)
      first = level;
    if (memcmp(from[first], from[level],
               sizeof **from * (size_t)operand->dims) != 0)
      return sdg_fail(SDG_E_NO_RULE,
                      "%s: %s is read in two places, in which it would be cut "
                      "in different dimensions",
                      call->entry_name, sdg_role_name(operand->role));
  }
  return tensor_place(tagging, product, operand->dims, operand->extent,
                      from[first], &tagging->placement[index]);
}

sdg_status_t sdg_graph_product_result(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_placement_t *out) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  const sdg_graph_tensor_t *c = &p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_Y]];
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < c->rank; d++)
    from[d] = sdg_graph_product_dim(p, SDG_GRAPH_LEVEL_Y, d);
  return tensor_place(tagging, product_of(call, tagging), c->rank, c->dim, from,
                      out);
}

// Where the section says that a factor is cut otherwise than the product, or
// the sums are to be scattered.
static sdg_status_t matrices_check(const sdg_call_t *call,
                                   const sdg_section_t *section) {
  static const int others[] = {[SDG_MATRIX_A] = SDG_N, [SDG_MATRIX_B] = SDG_M};
  static const char *const keys[] = {"a", "b", "c"};
  for (int m = 0; m < SDG_MATRICES; m++) {
    const sdg_rules_matrix_t *matrix = &section->matrix[m];
    int due = 0, found = 0;
    for (int i = 0; m != SDG_MATRIX_C && i < section->splits; i++) {
      const sdg_rules_split_t *split = &section->split[i];
      if (sdg_dim_index(call->family, split->dim, SDG_PRODUCT_DIMS) ==
          others[m])
        continue;
      due++;
      for (int k = 0; k < matrix->splits; k++)
        found += matrix->split[k].dim == split->dim &&
                 matrix->split[k].axes == split->axes;
    }
    if (matrix->said && (found != due || matrix->splits != due))
      return sdg_fail(SDG_E_NO_RULE,
                      "%s, a graph, by section '%s' with '%s =': the matrices "
                      "of a graph are cut as its product is",
                      call->entry_name, section->name, keys[m]);
  }
  return SDG_OK;
}

sdg_status_t sdg_graph_product_place(const sdg_call_t *call,
                                     sdg_tagging_t *tagging) {
  SDG_TRY(matrices_check(call, tagging->section));
  for (int i = 0; i < pattern_of(call)->operands; i++)
    SDG_TRY(operand_place(call, tagging, i));
  return SDG_OK;
}

sdg_common_t sdg_graph_product_common(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging, int index) {
  const sdg_placement_t *placement = &tagging->placement[index];
  sdg_common_t common = {.axes =
                             tagging->axes & ~sdg_placement_axes(placement)};
  memcpy(common.extent, call->operand[index].extent, sizeof common.extent);
  for (int d = 0; d < placement->dims; d++)
    common.whole[d] = sdg_placement_extent(placement, d);
  return common;
}

// ---- the whole view --------------------------------------------------------

// Whether a tensor, which every rank has in full, is shared out in dimension d.
static bool is_shared(const sdg_graph_pattern_t *p,
                      const sdg_placement_t *product,
                      const sdg_graph_tensor_t *tensor, sdg_graph_level_t level,
                      int d) {
  int dim = sdg_graph_product_dim(p, level, d);
  return dim >= 0 && product->split[dim].axes > 0 &&
         tensor->dim[d] == sdg_placement_extent(product, dim);
}

// Whether a part of the tensor may have no address: its elements share bytes,
// or have an unknown size.
static bool is_indivisible(const sdg_graph_tensor_t *tensor) {
  return !tensor->is_virtual && !tensor->is_by_value &&
         (sdg_graph_type_is_half(tensor->type) ||
          sdg_graph_type_bytes(tensor->type) == 0);
}

bool sdg_graph_product_can(const sdg_call_t *call,
                           const sdg_tagging_t *tagging) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  const sdg_placement_t *product = product_of(call, tagging);
  for (int t = 0; t < p->graph->tensor_count; t++) {
    const sdg_graph_tensor_t *tensor = &p->graph->tensor[t];
    for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
      for (int d = 0; (p->tensor_levels[t] >> level & 1) && d < tensor->rank;
           d++) {
        int dim = sdg_graph_product_dim(p, (sdg_graph_level_t)level, d);
        if (dim >= 0 && product->split[dim].axes > 0 && tensor->dim[d] != 1 &&
            (is_indivisible(tensor) ||
             !is_shared(p, product, tensor, (sdg_graph_level_t)level, d)))
          return false;
      }
  }
  return true;
}

sdg_graph_boxes_t sdg_graph_product_boxes(const sdg_graph_pattern_t *p,
                                          const sdg_tagging_t *tagging,
                                          int rank) {
  const sdg_placement_t *product =
      &tagging->placement[sdg_graph_product_index(p)];
  sdg_box_t own = sdg_placement_box(product, tagging->mesh, rank);
  sdg_graph_boxes_t out;
  memset(&out, 0, sizeof out);
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++) {
    const sdg_graph_tensor_t *tensor = &p->graph->tensor[p->tensor[level]];
    sdg_box_t *box = &out.level[level];
    box->dims = tensor->rank;
    for (int d = 0; d < tensor->rank && !sdg_box_empty(&own); d++)
      box->dim[d] =
          is_shared(p, product, tensor, (sdg_graph_level_t)level, d)
              ? own.dim[sdg_graph_product_dim(p, (sdg_graph_level_t)level, d)]
              : (sdg_range_t){0, tensor->dim[d]};
  }
  out.read = out.level[SDG_GRAPH_LEVEL_X];
  return out;
}
