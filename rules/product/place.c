// SPDX-License-Identifier: Apache-2.0
// The placements of a product's matrices, which follow from the split of the
// product.
#include "rules/product/rule.h"

#include <string.h>

#include "rules/place/product_sizes.h"

// The placement of the product itself.
static const sdg_placement_t *split_of(const sdg_tagging_t *tagging) {
  return &tagging->placement[0];
}

static int pieces_of(const sdg_placement_t *placement, int dim) {
  return placement->split[dim].axes ? placement->part[dim].pieces : 1;
}

// The dimension of the product that a name of a rules file stands for.
static int product_dim(sdg_dim_t dim) {
  return sdg_dim_index(SDG_FAMILY_MATMUL, dim, SDG_PRODUCT_DIMS);
}

static int64_t whole_extent(const sdg_tagging_t *tagging, int dim) {
  return dim < split_of(tagging)->dims
             ? sdg_placement_extent(split_of(tagging), dim)
             : 1;
}

// Places a matrix as the product's split implies: each dimension of the matrix
// is cut like the same dimension of the product.
static sdg_status_t implied(const sdg_tagging_t *tagging,
                            const sdg_matrix_t *matrix, sdg_placement_t *out) {
  int64_t extent[3];
  int from[3];
  const sdg_placement_t *product = split_of(tagging);
  for (int d = 0; d < matrix->dims; d++) {
    extent[d] = whole_extent(tagging, matrix->dim[d]);
    from[d] = matrix->dim[d] < product->dims ? matrix->dim[d] : -1;
  }
  return sdg_placement_like(matrix->dims, extent, tagging->mesh, product, from,
                            out);
}

static void axes_list(sdg_axes_t axes, sdg_split_t *out) {
  for (int a = 0; a < SDG_AXES_MAX; a++)
    if (axes >> a & 1)
      out->axis[out->axes++] = a;
}

// The parts that a rules file states for a dimension in which only a matrix is
// cut. In the shard view the ranks' calls may state the pieces.
static sdg_status_t said_part(const sdg_product_parts_t *m,
                              const sdg_rules_split_t *said, int64_t extent,
                              sdg_part_t *out) {
  const sdg_section_t *section = m->tagging->section;
  int dim = product_dim(said->dim);
  bool by_matrix;
  if (section->view == SDG_VIEW_SHARD &&
      section->sizes[dim] == SDG_SIZES_PIECE &&
      sdg_sizes_cut(section, dim, &by_matrix) == said->axes)
    return sdg_sizes_part(m->call, dim, said->axes, out);
  if (strcmp(said->parts, "agree") == 0)
    return sdg_part_divide(extent, said->pieces, SDG_PART_EVEN, 1, out);
  return sdg_part_parse(said->parts, extent, said->pieces, out);
}

static sdg_status_t said_split(const sdg_product_parts_t *m,
                               const sdg_matrix_t *matrix,
                               const sdg_rules_split_t *said,
                               sdg_placement_t *out) {
  const sdg_tagging_t *tagging = m->tagging;
  const sdg_placement_t *product = split_of(tagging);
  int p = product_dim(said->dim), d = 0;
  while (d < matrix->dims && matrix->dim[d] != p)
    d++;
  if (d == matrix->dims && p == SDG_BATCH) // one matrix for the whole batch
    return SDG_OK;
  if (d == matrix->dims)
    return sdg_fail(SDG_E_SPLIT_DIMENSION,
                    "section '%s' splits matrix %s in %s, which is not a "
                    "dimension of it in this call",
                    tagging->section->name, sdg_role_name(matrix->role),
                    sdg_dim_name(said->dim));
  sdg_split_t split = {.axes = 0};
  axes_list(said->axes, &split);
  bool as_product = p < product->dims && split.axes == product->split[p].axes &&
                    memcmp(split.axis, product->split[p].axis,
                           (size_t)split.axes * sizeof split.axis[0]) == 0;
  if (as_product)
    return sdg_placement_split(out, tagging->mesh, d, &split,
                               &product->part[p]);
  sdg_part_t part;
  SDG_TRY(said_part(m, said, whole_extent(tagging, p), &part));
  return sdg_placement_take(out, tagging->mesh, d, &split, &part);
}

// Places a factor as the rules state, otherwise cut like the product.
static sdg_status_t factor_place(const sdg_product_parts_t *m,
                                 const sdg_matrix_t *matrix,
                                 sdg_placement_t *out) {
  const sdg_tagging_t *tagging = m->tagging;
  const sdg_rules_matrix_t *said =
      &tagging->section
           ->matrix[matrix->role == SDG_ROLE_A ? SDG_MATRIX_A : SDG_MATRIX_B];
  if (tagging->section->view == SDG_VIEW_WHOLE || !said->said)
    return implied(tagging, matrix, out);
  int64_t extent[3];
  for (int d = 0; d < matrix->dims; d++)
    extent[d] = whole_extent(tagging, matrix->dim[d]);
  SDG_TRY(sdg_placement_init(matrix->dims, extent, out));
  for (int i = 0; i < said->splits; i++) {
    sdg_status_t status = said_split(m, matrix, &said->split[i], out);
    if (status != SDG_OK) {
      sdg_placement_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

// The elements of a dimension that are 16 bytes or more of every matrix: where
// pieces begin at multiples, engines load as fast as from the whole matrix, and
// use tensor cores.
static int64_t unit_of(const sdg_product_t *product) {
  enum { LOAD_BYTES = 16 };
  int64_t unit = 1;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    const sdg_matrix_t *matrix = &product->matrix[i];
    int bytes = matrix->there ? sdg_product_type_bytes(matrix->type) : 0;
    if (bytes > 0 && LOAD_BYTES / bytes > unit)
      unit = LOAD_BYTES / bytes;
  }
  return unit;
}

// Cuts each piece of dimension d again, evenly, over further axes, at multiples
// of `unit` if each piece gets that many. Example: 10 = 6+4 over x, then each
// piece over 2 along y: 3+3+2+2; 80 = 48+32 over x, over 4 along y with unit 8:
// 16+16+8+8+8+8+8+8.
static sdg_status_t subdivide(const sdg_tagging_t *tagging, int d,
                              sdg_axes_t axes, int64_t unit,
                              sdg_placement_t *out) {
  sdg_split_t split = out->split[d];
  axes_list(axes, &split);
  int pieces = pieces_of(out, d), each = 1;
  for (int a = 0; a < SDG_AXES_MAX; a++)
    each *= axes >> a & 1 ? tagging->mesh->size[a] : 1;
  int64_t size[SDG_RANKS_MAX];
  for (int i = 0; i < pieces; i++) {
    sdg_part_t even;
    int64_t own = sdg_part_size(&out->part[d], i);
    SDG_TRY(sdg_part_divide(own, each, SDG_PART_EVEN,
                            own < each * unit ? 1 : unit, &even));
    for (int k = 0; k < each; k++)
      size[i * each + k] = sdg_part_size(&even, k);
    sdg_part_fini(&even);
  }
  sdg_part_t part;
  SDG_TRY(sdg_part_from_sizes(pieces * each, size, &part));
  return sdg_placement_take(out, tagging->mesh, d, &split, &part);
}

// Decides which rank computes which sums: as `c =` says, otherwise even pieces
// of the outer dimension, or of the inner one if the outer has too few
// elements.
static sdg_status_t pieces_place(const sdg_product_parts_t *m,
                                 sdg_placement_t *out) {
  const sdg_tagging_t *tagging = m->tagging;
  const sdg_matrix_t *result = &m->product.matrix[SDG_RESULT];
  const sdg_rules_matrix_t *said = &tagging->section->matrix[SDG_MATRIX_C];
  sdg_status_t status = SDG_OK;
  SDG_TRY(implied(tagging, result, out));
  if (!m->sum_axes)
    return SDG_OK;
  for (int i = 0; i < said->splits; i++)
    SDG_TRY_GOTO(said_split(m, result, &said->split[i], out), fail);
  if (said->splits > 0)
    return SDG_OK;
  int d = result->outer;
  if (result->inner >= 0 &&
      sdg_placement_extent(out, d) < (int64_t)tagging->ranks)
    d = result->inner;
  SDG_TRY_GOTO(subdivide(tagging, d, m->sum_axes, unit_of(&m->product), out),
               fail);
  return SDG_OK;
fail:
  sdg_placement_fini(out);
  return status;
}

// The dimension of a matrix that is dimension `product` of the product; -1 if
// the matrix does not have it.
static int dim_of(const sdg_matrix_t *matrix, int product) {
  for (int d = 0; d < matrix->dims; d++)
    if (matrix->dim[d] == product)
      return d;
  return -1;
}

// The source has the old values of the result. It is placed like the result,
// but may have other strides in memory.
static sdg_status_t source_place(const sdg_product_parts_t *m,
                                 sdg_placement_t *out) {
  const sdg_matrix_t *result = &m->product.matrix[SDG_RESULT],
                     *source = &m->product.matrix[SDG_SOURCE];
  const sdg_placement_t *placed = &m->matrix[SDG_RESULT];
  int64_t extent[3];
  int from[3];
  for (int d = 0; d < source->dims; d++) {
    from[d] = dim_of(result, source->dim[d]);
    extent[d] = sdg_placement_extent(placed, from[d]);
  }
  return sdg_placement_like(source->dims, extent, m->tagging->mesh, placed,
                            from, out);
}

sdg_status_t sdg_product_open(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_product_parts_t *out) {
  memset(out, 0, sizeof *out);
  out->call = call;
  out->tagging = tagging;
  sdg_product_make(call->args, &out->product);
  const sdg_placement_t *product = split_of(tagging);
  sdg_axes_t terms = 0;
  if (pieces_of(product, SDG_K) > 1)
    terms = sdg_split_all_axes(&product->split[SDG_K]);
  out->sum_axes = terms & tagging->section->sum_axes;
  if (out->sum_axes && out->sum_axes != terms)
    return sdg_fail(SDG_E_SPLIT_DIMENSION,
                    "K of %s is split over axes, but 'sum' of section '%s' "
                    "names only some of them",
                    call->entry_name, tagging->section->name);
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < SDG_RESULT; i++)
    if (out->product.matrix[i].there && i != SDG_SOURCE)
      SDG_TRY_GOTO(factor_place(out, &out->product.matrix[i], &out->matrix[i]),
                   fail);
  if (out->product.matrix[SDG_ADDEND].there)
    SDG_TRY_GOTO(implied(tagging, &out->product.matrix[SDG_ADDEND],
                         &out->matrix[SDG_ADDEND]),
                 fail);
  SDG_TRY_GOTO(pieces_place(out, &out->pieces), fail);
  out->stays = tagging->section->matrix[SDG_MATRIX_C].splits > 0;
  status = out->stays
               ? sdg_placement_copy(&out->pieces, &out->matrix[SDG_RESULT])
               : implied(tagging, &out->product.matrix[SDG_RESULT],
                         &out->matrix[SDG_RESULT]);
  if (status == SDG_OK && out->product.matrix[SDG_SOURCE].there)
    status = source_place(out, &out->matrix[SDG_SOURCE]);
fail:
  if (status != SDG_OK)
    sdg_product_fini(out);
  return status;
}

void sdg_product_fini(sdg_product_parts_t *m) {
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    sdg_placement_fini(&m->matrix[i]);
  sdg_placement_fini(&m->pieces);
}

sdg_box_t sdg_product_own_box(const sdg_product_parts_t *m, int rank) {
  sdg_box_t box =
      sdg_placement_box(split_of(m->tagging), m->tagging->mesh, rank);
  for (; box.dims < SDG_PRODUCT_DIMS; box.dims++)
    box.dim[box.dims] = (sdg_range_t){0, 1};
  return box;
}

sdg_box_t sdg_product_need(const sdg_product_parts_t *m, int matrix, int rank) {
  sdg_box_t box = sdg_product_own_box(m, rank);
  sdg_box_t of_result = box;
  of_result.dim[SDG_K] = (sdg_range_t){0, 1};
  // A rank that computes nothing needs nothing, even in dimensions that the
  // split does not cut.
  if (sdg_box_empty(&of_result))
    memset(box.dim, 0, sizeof box.dim);
  return sdg_matrix_box(&m->product.matrix[matrix], &box);
}

sdg_box_t sdg_product_piece(const sdg_product_parts_t *m, int rank) {
  return sdg_placement_box(&m->pieces, m->tagging->mesh, rank);
}

sdg_box_t sdg_product_old(const sdg_product_parts_t *m, int rank) {
  const sdg_matrix_t *result = &m->product.matrix[SDG_RESULT],
                     *source = &m->product.matrix[SDG_SOURCE];
  sdg_box_t piece = sdg_product_piece(m, rank);
  if (!source->there)
    return piece;
  sdg_box_t box = {.dims = source->dims};
  for (int d = 0; d < source->dims; d++)
    box.dim[d] = piece.dim[dim_of(result, source->dim[d])];
  return box;
}

bool sdg_product_partners(const sdg_product_parts_t *m, int a, int b) {
  sdg_box_t of_a = sdg_product_need(m, SDG_RESULT, a);
  sdg_box_t of_b = sdg_product_need(m, SDG_RESULT, b);
  return !sdg_box_empty(&of_a) && sdg_box_equal(&of_a, &of_b);
}
