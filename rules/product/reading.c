// SPDX-License-Identifier: Apache-2.0
// Shard view: which placements the ranks' memory allows for the factors of a
// product, if the section does not state them.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "rules/place/place.h"
#include "rules/product/check.h"

static const sdg_product_cut_t as_said[2] = {{.implied = true, .dim = -1},
                                             {.implied = true, .dim = -1}};

enum { CUTS_MAX = 2 + 3 * SDG_SPLITS_MAX };

// Whether a candidate cuts a dimension that the section does not cut.
static bool is_new(const sdg_product_check_t *c, const sdg_product_cut_t *cut) {
  bool by_matrix;
  return !cut->implied && cut->dim >= 0 &&
         !sdg_sizes_cut(c->m->tagging->section, cut->dim, &by_matrix);
}

int64_t sdg_product_check_stated(const sdg_product_check_t *c, int member,
                                 int dim) {
  return dim < c->vector->dims
             ? c->vector->extent[member * c->vector->dims + dim]
             : 1;
}

// The full extent of a dimension of the product, with these cuts of the
// factors.
static int64_t whole_of(const sdg_product_check_t *c,
                        const sdg_product_cut_t *cut, int member, int dim) {
  const sdg_placement_t *product = &c->m->tagging->placement[0];
  int64_t whole = dim < product->dims ? sdg_placement_extent(product, dim) : 1;
  for (int f = 0; f < 2; f++)
    if (cut[f].dim == dim && is_new(c, &cut[f]) &&
        c->m->tagging->section->sizes[dim] == SDG_SIZES_PIECE)
      return sdg_product_check_stated(c, member, dim) *
             sdg_sizes_pieces(cut[f].axes);
  return whole;
}

// The extent of dimension `dim` that factor `which` has on a rank, if it is cut
// by cut[which].
static int64_t cut_size(const sdg_product_check_t *c,
                        const sdg_product_cut_t *cut, int which, int member,
                        int dim) {
  int64_t whole = whole_of(c, cut, member, dim);
  int rank = c->group->rank[member];
  bool by_matrix;
  if (cut[which].dim != dim)
    return whole;
  if (c->m->tagging->section->sizes[dim] == SDG_SIZES_PIECE &&
      (is_new(c, &cut[which]) || sdg_sizes_cut(c->m->tagging->section, dim,
                                               &by_matrix) == cut[which].axes))
    return sdg_product_check_stated(c, member, dim);
  sdg_split_t split = sdg_sizes_split(cut[which].axes);
  int64_t pieces = sdg_sizes_pieces(cut[which].axes);
  int piece = sdg_split_piece(&split, sdg_job_mesh(), rank);
  return whole / pieces + (piece < whole % pieces);
}

void sdg_product_check_extents(const sdg_product_check_t *c,
                               const sdg_product_cut_t *cut, int matrix,
                               int member, int64_t *out) {
  const sdg_matrix_t *of = &c->m->product.matrix[matrix];
  const sdg_placement_t *placed = &c->m->matrix[matrix];
  sdg_box_t box =
      sdg_placement_box(placed, c->m->tagging->mesh, c->group->rank[member]);
  int which = of->role == SDG_ROLE_A ? 0 : of->role == SDG_ROLE_B ? 1 : -1;
  if (!cut)
    cut = as_said;
  for (int d = 0; d < of->dims; d++)
    if (which >= 0 && !cut[which].implied)
      out[d] = cut_size(c, cut, which, member, of->dim[d]);
    else if (placed->split[d].axes > 0)
      out[d] = sdg_box_length(&box, d);
    else
      out[d] = whole_of(c, cut, member, of->dim[d]);
}

// Whether every rank's memory has room for the matrices with these cuts.
static bool fits(const sdg_product_check_t *c, const sdg_product_cut_t *cut) {
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    const sdg_matrix_t *matrix = &c->m->product.matrix[i];
    for (int r = 0; matrix->there && r < c->vector->ranks; r++) {
      int64_t extent[3];
      sdg_product_room_t room = sdg_product_room_of(c->m, i, r);
      sdg_product_check_extents(c, cut, i, r, extent);
      if (!sdg_product_room_holds(&room, matrix, extent, c->apart[i]))
        return false;
    }
  }
  return true;
}

static int factor_of(const sdg_product_check_t *c, int which) {
  sdg_role_t role = which ? SDG_ROLE_B : SDG_ROLE_A;
  return c->m->product.matrix[SDG_FACTOR_1].role == role ? SDG_FACTOR_1
                                                         : SDG_FACTOR_2;
}

// Whether the section states or implies this cut of a matrix: in dimension d
// over `axes`, and in no other dimension. d < 0: in none.
static bool is_implied(const sdg_product_check_t *c, int matrix, int d,
                       sdg_axes_t axes) {
  const sdg_placement_t *placed = &c->m->matrix[matrix];
  for (int k = 0; k < placed->dims; k++) {
    sdg_split_t want = {.axes = 0};
    if (k == d)
      want = sdg_sizes_split(axes);
    if (!sdg_place_same(&placed->split[k], &want, 1))
      return false;
  }
  return true;
}

// Lists how a factor may be cut. The first entry is what the section states or
// implies; returns the number of entries.
static int cuts_list(const sdg_product_check_t *c, int which,
                     sdg_product_cut_t *out) {
  const sdg_section_t *section = c->m->tagging->section;
  int matrix = factor_of(c, which), count = 0;
  out[count++] = (sdg_product_cut_t){.implied = true, .dim = -1};
  if (section->matrix[which].said)
    return count;
  if (!is_implied(c, matrix, -1, 0))
    out[count++] = (sdg_product_cut_t){.dim = -1};
  for (int i = 0; i < section->splits; i++)
    for (int d = 0; d < c->m->product.matrix[matrix].dims; d++)
      if (!is_implied(c, matrix, d, section->split[i].axes))
        out[count++] =
            (sdg_product_cut_t){.dim = c->m->product.matrix[matrix].dim[d],
                                .axes = section->split[i].axes};
  return count;
}

// ---- messages --------------------------------------------------------------

void sdg_product_text_add(sdg_product_text_t *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (text->used < sizeof text->at)
    text->used += (size_t)vsnprintf(text->at + text->used,
                                    sizeof text->at - text->used, format, list);
  va_end(list);
}

const char *sdg_product_text_dim(int dim) {
  return sdg_dim_name(sdg_dim_at(SDG_FAMILY_MATMUL, dim, SDG_PRODUCT_DIMS));
}

// "M:x+y"
static void text_axes(sdg_product_text_t *text, int dim, sdg_axes_t axes) {
  const char *between = ":";
  sdg_product_text_add(text, "%s", sdg_product_text_dim(dim));
  for (int a = 0; a < SDG_AXES_MAX; a++)
    if (axes >> a & 1) {
      sdg_product_text_add(text, "%s%s", between, sdg_job_mesh()->name[a]);
      between = "+";
    }
}

void sdg_product_text_extents(sdg_product_text_t *text,
                              const sdg_matrix_t *matrix,
                              const int64_t *extent) {
  for (int d = matrix->dims - 1; d >= 0; d--)
    sdg_product_text_add(text, "%s%s %" PRId64,
                         d == matrix->dims - 1 ? "" : " x ",
                         sdg_product_text_dim(matrix->dim[d]), extent[d]);
}

// Adds text like "'b = N:y' (K 24 x N 20 on rank 0)".
static void cut_write(sdg_product_text_t *text, const sdg_product_check_t *c,
                      const sdg_product_cut_t *cut, int which) {
  int matrix = factor_of(c, which);
  const sdg_matrix_t *of = &c->m->product.matrix[matrix];
  const sdg_placement_t *placed = &c->m->matrix[matrix];
  int64_t extent[3];
  sdg_product_check_extents(c, cut, matrix, 0, extent);
  sdg_product_text_add(text, "'%c = ", 'a' + which);
  bool any = false;
  if (cut[which].implied) {
    for (int d = 0; d < of->dims; d++)
      if (placed->split[d].axes > 0) {
        sdg_product_text_add(text, "%s", any ? ", " : "");
        text_axes(text, of->dim[d], sdg_split_all_axes(&placed->split[d]));
        any = true;
      }
  } else if (cut[which].dim >= 0) {
    text_axes(text, cut[which].dim, cut[which].axes);
    any = true;
  }
  sdg_product_text_add(text, "%s' (", any ? "" : "replicated");
  sdg_product_text_extents(text, of, extent);
  sdg_product_text_add(text, " on rank %d)", c->group->rank[0]);
}

static sdg_status_t readings_fail(const sdg_product_check_t *c,
                                  const sdg_product_cut_t *other) {
  const sdg_section_t *section = c->m->tagging->section;
  sdg_product_text_t text = {.used = 0};
  const char *between = "";
  for (int reading = 0; reading < 2; reading++) {
    const sdg_product_cut_t *cut = reading ? other : as_said;
    for (int which = 0; which < 2; which++)
      if (!section->matrix[which].said) {
        sdg_product_text_add(&text, "%s", between);
        cut_write(&text, c, cut, which);
        between = " and ";
      }
    between = ", or ";
  }
  return sdg_fail(SDG_E_PRODUCT_MATRIX,
                  "%s by section '%s': the matrices can be cut in more than "
                  "one way that fits the ranks' memory; write one into the "
                  "section: %s",
                  c->m->call->entry_name, section->name, text.at);
}

sdg_status_t sdg_product_check_factors(const sdg_product_check_t *c) {
  sdg_product_cut_t list[2][CUTS_MAX], cut[2];
  int count[2];
  for (int which = 0; which < 2; which++)
    count[which] = cuts_list(c, which, list[which]);
  for (int i = 1; i < count[0] * count[1]; i++) {
    cut[0] = list[0][i % count[0]];
    cut[1] = list[1][i / count[0]];
    if (fits(c, cut))
      return readings_fail(c, cut);
  }
  return SDG_OK;
}
