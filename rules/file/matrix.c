// SPDX-License-Identifier: Apache-2.0
// The values of `a =`, `b =`, `c =` and `sizes =`: where the matrices of a
// product are, and what its sizes mean.
#include <stdio.h>
#include <string.h>

#include "rules/file/value.h"
#include "src/call/tag.h"

static const char *const matrix_names[SDG_MATRICES] = {"a", "b", "c"};

// The two dimensions of each matrix; all have BATCH.
static const sdg_dim_t matrix_dims[SDG_MATRICES][2] = {
    [SDG_MATRIX_A] = {SDG_DIM_M, SDG_DIM_K},
    [SDG_MATRIX_B] = {SDG_DIM_K, SDG_DIM_N},
    [SDG_MATRIX_C] = {SDG_DIM_M, SDG_DIM_N},
};

static sdg_axes_t axes_of(const sdg_rules_split_t *split, int count,
                          sdg_dim_t dim) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < count; i++)
    if (dim == SDG_DIM_COUNT || split[i].dim == dim)
      axes |= split[i].axes;
  return axes;
}

// Checks `c =`: sums over K's axes are left in pieces of a dimension that is
// not split yet.
static sdg_status_t sums_check(const sdg_location_t *location,
                               const sdg_section_t *section) {
  const sdg_rules_matrix_t *c = &section->matrix[SDG_MATRIX_C];
  sdg_axes_t sums = axes_of(section->split, section->splits, SDG_DIM_K);
  if (c->splits > 0 && !sums)
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "'c' says which rank has which sums over K, but K is not split");
  if (c->splits > 0 && axes_of(c->split, c->splits, SDG_DIM_COUNT) != sums)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'c' must be split over the axes of K");
  for (int i = 0; i < c->splits; i++)
    if (axes_of(section->split, section->splits, c->split[i].dim))
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "%s is split by 'split' and by 'c'",
                               sdg_dim_name(c->split[i].dim));
  return SDG_OK;
}

sdg_status_t sdg_matrix_parse(const sdg_location_t *location, const char *text,
                              const sdg_mesh_t *mesh, int matrix,
                              sdg_section_t *section) {
  sdg_rules_matrix_t *out = &section->matrix[matrix];
  sdg_section_t said = {.splits = 0};
  if (!sdg_section_multiplies(section))
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "'%s' is a matrix of a product, but the section is not for products: "
        "it names neither M nor K nor op matmul",
        matrix_names[matrix]);
  if (!sdg_key_takes((sdg_rules_key_t)(SDG_KEY_A + matrix), text))
    SDG_TRY(sdg_split_parse(location, text, mesh, &said));
  for (int i = 0; i < said.splits; i++) {
    sdg_dim_t dim = said.split[i].dim;
    if (dim != matrix_dims[matrix][0] && dim != matrix_dims[matrix][1] &&
        dim != SDG_DIM_BATCH)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "%s is not a dimension of '%s', which has %s, %s and BATCH",
          sdg_dim_name(dim), matrix_names[matrix],
          sdg_dim_name(matrix_dims[matrix][0]),
          sdg_dim_name(matrix_dims[matrix][1]));
    if (said.split[i].axes & ~sdg_section_axes(section))
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "'%s' is split over an axis that 'split' does not "
          "name",
          matrix_names[matrix]);
  }
  out->said = true;
  out->splits = said.splits;
  memcpy(out->split, said.split, sizeof out->split);
  return matrix == SDG_MATRIX_C ? sums_check(location, section) : SDG_OK;
}

// The axes over which a matrix cuts a dimension that `split` does not cut.
// Fails if two matrices cut it over different axes, because a call states one
// piece.
static sdg_status_t pieces_check(const sdg_location_t *location,
                                 const sdg_section_t *section, sdg_dim_t dim) {
  sdg_axes_t axes = 0;
  if (axes_of(section->split, section->splits, dim))
    return SDG_OK;
  for (int m = 0; m < SDG_MATRICES; m++) {
    const sdg_rules_matrix_t *matrix = &section->matrix[m];
    sdg_axes_t its = axes_of(matrix->split, matrix->splits, dim);
    if (its && axes && its != axes)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "two matrices cut %s over different axes, so the size %s of a call "
          "cannot be the piece of both; it can be the whole (sizes = whole)",
          sdg_dim_name(dim), sdg_dim_name(dim));
    axes |= its;
  }
  return SDG_OK;
}

static bool is_cut(const sdg_section_t *section, sdg_word_t word, int bytes) {
  for (int d = 0; d < SDG_SIZES_DIMS; d++) {
    sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_MATMUL, d, SDG_SIZES_DIMS);
    if (!sdg_word_is((sdg_word_t){word.at, bytes}, sdg_dim_name(dim)))
      continue;
    sdg_axes_t axes = axes_of(section->split, section->splits, dim);
    for (int m = 0; m < SDG_MATRICES; m++)
      axes |= axes_of(section->matrix[m].split, section->matrix[m].splits, dim);
    return axes != 0;
  }
  return false;
}

sdg_status_t sdg_sizes_parse(const sdg_location_t *location, const char *text,
                             sdg_section_t *section) {
  sdg_word_t word;
  if (!sdg_section_multiplies(section))
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "'sizes' is for products, but the section is not: it "
        "names neither M nor K nor op matmul");
  while (sdg_word_next(&text, " \t,", &word)) {
    char value[32];
    const char *colon = memchr(word.at, ':', (size_t)word.length);
    int name = colon ? (int)(colon - word.at) : 0;
    bool any = false;
    snprintf(value, sizeof value, "%.*s", word.length - name - (colon != NULL),
             colon ? colon + 1 : word.at);
    SDG_TRY(sdg_key_check(location, value, SDG_KEY_SIZES, "value of sizes"));
    bool whole = strcmp(value, "whole") == 0;
    for (int d = 0; d < SDG_SIZES_DIMS; d++) {
      sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_MATMUL, d, SDG_SIZES_DIMS);
      if (colon && !sdg_word_is((sdg_word_t){word.at, name}, sdg_dim_name(dim)))
        continue;
      any = true;
      if (section->sizes[d])
        return sdg_location_fail(location, SDG_E_RULES_TWICE,
                                 "the sizes of %s are given twice",
                                 sdg_dim_name(dim));
      section->sizes[d] = whole ? SDG_SIZES_WHOLE : SDG_SIZES_PIECE;
      if (!whole)
        SDG_TRY(pieces_check(location, section, dim));
    }
    if (colon && any && !is_cut(section, word, name))
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "sizes are given for %.*s, which is not cut",
                               name, word.at);
    if (!any)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%.*s' names no dimension of a product: these "
                               "are M, N, K and BATCH, as in M:piece",
                               word.length, word.at);
  }
  return SDG_OK;
}

// Items such as "a = M:y". Those that need the matrices are kept as text.
enum { ITEM_SUM = SDG_MATRICES, ITEM_SIZES, ITEM_PARTS, ITEM_VALUES, ITEMS };
typedef struct items {
  unsigned said; // bits of the keys read so far
  bool sum;
  char sizes[SDG_TAG_LABEL_BYTES], parts[SDG_TAG_LABEL_BYTES];
} items_t;

static sdg_status_t item_parse(const sdg_location_t *location, sdg_word_t item,
                               const sdg_mesh_t *mesh, sdg_section_t *section,
                               items_t *io) {
  static const char *const keys[ITEMS] = {"a",     "b",     "c",     "sum",
                                          "sizes", "parts", "values"};
  char text[SDG_TAG_LABEL_BYTES], key[SDG_TAG_LABEL_BYTES];
  snprintf(text, sizeof text, "%.*s", item.length, item.at);
  const char *rest = text;
  sdg_word_t name, value;
  int which;
  if (!sdg_word_next(&rest, "=", &name) || !sdg_word_next(&rest, "", &value))
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s' should be like 'c = N:y'", text);
  snprintf(key, sizeof key, "%.*s", name.length, name.at);
  SDG_TRY(
      sdg_choice_parse(location, key, "key of a product", keys, ITEMS, &which));
  if (io->said >> which & 1)
    return sdg_location_fail(location, SDG_E_RULES_TWICE, "'%s' is given twice",
                             key);
  io->said |= 1u << which;
  if (which < SDG_MATRICES)
    return sdg_matrix_parse(location, value.at, mesh, which, section);
  if (which == ITEM_VALUES)
    return sdg_piece_values_parse(location, value.at, section);
  if (which != ITEM_SUM) {
    snprintf(which == ITEM_SIZES ? io->sizes : io->parts, sizeof io->sizes,
             "%s", value.at);
    return SDG_OK;
  }
  SDG_TRY(sdg_key_check(location, value.at, SDG_KEY_SUM, "value of sum"));
  io->sum = strcmp(value.at, "yes") == 0;
  return SDG_OK;
}

sdg_status_t sdg_rules_product(const sdg_rules_t *rules,
                               const sdg_options_t *options, const char *text,
                               sdg_section_t *out_section) {
  sdg_location_t location = {"sundog_tag_range", 0};
  sdg_section_t *section = out_section;
  const char *rest = text;
  sdg_word_t item;
  items_t items = {.sum = true, .parts = "agree"};
  *section = (sdg_section_t){
      .is_local = strcmp(text, "local") == 0, .globs = 1, .glob = {"matmul"}};
  snprintf(section->name, sizeof section->name, "range %.40s", text);
  if (rules->view == SDG_VIEW_WHOLE)
    return sdg_location_fail(&location, SDG_E_VIEW_WHOLE,
                             "tags need the shard view");
  if (section->is_local)
    return SDG_OK;
  section->view = SDG_VIEW_SHARD;
  section->strategy = (sdg_strategy_t)options->strategy;
  section->values = (sdg_piece_values_t)options->piece_values;
  if (sdg_word_next(&rest, ";", &item)) {
    char split[SDG_TAG_LABEL_BYTES];
    snprintf(split, sizeof split, "%.*s", item.length, item.at);
    SDG_TRY(sdg_split_parse(&location, split, &rules->mesh, section));
  }
  if (section->splits == 0)
    return sdg_location_fail(&location, SDG_E_RULES_EMPTY,
                             "'%s' splits nothing", text);
  for (int i = 0; i < section->splits; i++)
    if (sdg_dim_index(SDG_FAMILY_MATMUL, section->split[i].dim, 4) < 0)
      return sdg_location_fail(&location, SDG_E_RULES_VALUE,
                               "%s is not a dimension of a product",
                               sdg_dim_name(section->split[i].dim));
  while (sdg_word_next(&rest, ";", &item))
    SDG_TRY(item_parse(&location, item, &rules->mesh, section, &items));
  SDG_TRY(sdg_sizes_parse(&location, items.sizes, section));
  SDG_TRY(sdg_parts_parse(&location, items.parts, section));
  if (!items.sum && section->matrix[SDG_MATRIX_C].splits > 0)
    return sdg_location_fail(&location, SDG_E_RULES_VALUE,
                             "'c' says which rank has which sums over K, but "
                             "'sum = no' leaves the sums to the program");
  return sdg_sum_parse(&location, items.sum ? "yes" : "no", &rules->mesh,
                       section);
}
