// SPDX-License-Identifier: Apache-2.0
// The values of `a =`, `b =` and `c =`: where the matrices of a product are.
#include <string.h>

#include "rules/rulesvalue.h"

static const char *const matrix_names[SDG_MATRICES] = {"a", "b", "c"};

// The two dimensions of each matrix; all have BATCH.
static const sdg_dim_t matrix_dims[SDG_MATRICES][2] = {
    [SDG_MATRIX_A] = {SDG_DIM_M, SDG_DIM_K},
    [SDG_MATRIX_B] = {SDG_DIM_K, SDG_DIM_N},
    [SDG_MATRIX_C] = {SDG_DIM_M, SDG_DIM_N},
};

static sdg_axes_t axes_of(const sdg_rule_split_t *split, int count,
                          sdg_dim_t dim) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < count; i++)
    if (dim == SDG_DIM_COUNT || split[i].dim == dim)
      axes |= split[i].axes;
  return axes;
}

// Sums over K's axes are made in pieces of a dimension that is not split yet.
static sdg_status_t sums_check(const sdg_place_t *place,
                               const sdg_section_t *section) {
  const sdg_rule_matrix_t *c = &section->matrix[SDG_MATRIX_C];
  sdg_axes_t sums = axes_of(section->split, section->splits, SDG_DIM_K);
  if (c->splits > 0 && !sums)
    return sdg_place_fail(place, SDG_E_RULES_VALUE,
                          "'c' is where sums over K are, which is not split");
  if (c->splits > 0 && axes_of(c->split, c->splits, SDG_DIM_COUNT) != sums)
    return sdg_place_fail(place, SDG_E_RULES_VALUE,
                          "'c' has to be split over the axes of K");
  for (int i = 0; i < c->splits; i++)
    if (axes_of(section->split, section->splits, c->split[i].dim))
      return sdg_place_fail(place, SDG_E_RULES_TWICE,
                            "%s is split by 'split' and by 'c'",
                            sdg_dim_name(c->split[i].dim));
  return SDG_OK;
}

sdg_status_t sdg_matrix_parse(const sdg_place_t *place, const char *text,
                              const sdg_mesh_t *mesh, int matrix,
                              sdg_section_t *section) {
  sdg_rule_matrix_t *out = &section->matrix[matrix];
  sdg_section_t said = {.splits = 0};
  if (!sdg_section_multiplies(section))
    return sdg_place_fail(place, SDG_E_RULES_VALUE,
                          "'%s' is a matrix of a product, and the section is "
                          "about none: it names neither M nor K nor op matmul",
                          matrix_names[matrix]);
  if (strcmp(text, "replicated") != 0)
    SDG_TRY(sdg_split_parse(place, text, mesh, &said));
  for (int i = 0; i < said.splits; i++) {
    sdg_dim_t dim = said.split[i].dim;
    if (dim != matrix_dims[matrix][0] && dim != matrix_dims[matrix][1] &&
        dim != SDG_DIM_BATCH)
      return sdg_place_fail(place, SDG_E_RULES_VALUE,
                            "%s is no dimension of '%s', which has %s, %s and "
                            "BATCH",
                            sdg_dim_name(dim), matrix_names[matrix],
                            sdg_dim_name(matrix_dims[matrix][0]),
                            sdg_dim_name(matrix_dims[matrix][1]));
    if (said.split[i].axes & ~sdg_section_axes(section))
      return sdg_place_fail(place, SDG_E_RULES_VALUE,
                            "'%s' is split over an axis that 'split' does not "
                            "name",
                            matrix_names[matrix]);
  }
  out->said = true;
  out->splits = said.splits;
  memcpy(out->split, said.split, sizeof out->split);
  return matrix == SDG_MATRIX_C ? sums_check(place, section) : SDG_OK;
}
