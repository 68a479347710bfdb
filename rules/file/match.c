// SPDX-License-Identifier: Apache-2.0
// Names of dimensions and families, and whether a section is about a tensor.
#include "rules/file/file.h"

#include <fnmatch.h>
#include <string.h>

const char *sdg_dim_name(sdg_dim_t dim) {
  static const char *const names[SDG_DIM_COUNT] = {
      "N", "C", "D", "H", "W", "SEQ", "HEAD", "BATCH", "M", "K", "HEADS",
  };
  return dim < SDG_DIM_COUNT ? names[dim] : "?";
}

// What a product is called in short, by its entry.
static const char *const product_words[] = {"matmul", "gemm", "gemv"};
enum { PRODUCT_WORDS = sizeof product_words / sizeof product_words[0] };

// NULL if the entry has no short name besides its family's.
static const char *product_word(const char *entry) {
  if (strstr(entry, "gemm") || strstr(entry, "Gemm"))
    return "gemm";
  return strstr(entry, "gemv") ? "gemv" : NULL;
}

bool sdg_glob_names_product(const char *glob) {
  for (int i = 0; i < PRODUCT_WORDS; i++)
    if (fnmatch(glob, product_words[i], 0) == 0)
      return true;
  return false;
}

int sdg_dim_index(sdg_family_t family, sdg_dim_t dim, int dims) {
  sdg_family_dims_t names = sdg_family_dims(family);
  if ((names == SDG_FAMILY_SEQUENCE || names == SDG_FAMILY_HEADS) &&
      dim == SDG_DIM_N)
    dim = SDG_DIM_BATCH;
  for (int i = 0; i < dims; i++)
    if (dim != SDG_DIM_COUNT && sdg_dim_at(family, i, dims) == dim)
      return i;
  return -1;
}

sdg_dim_t sdg_dim_at(sdg_family_t family, int index, int dims) {
  static const sdg_dim_t product[] = {SDG_DIM_M, SDG_DIM_N, SDG_DIM_K,
                                      SDG_DIM_BATCH};
  // Time, batch, beam, and a vector of all heads' elements.
  static const sdg_dim_t sequence[] = {SDG_DIM_SEQ, SDG_DIM_BATCH,
                                       SDG_DIM_COUNT, SDG_DIM_HEAD};
  static const sdg_dim_t heads[] = {SDG_DIM_BATCH, SDG_DIM_HEADS, SDG_DIM_SEQ,
                                    SDG_DIM_HEAD};
  if (index < 0 || index >= dims)
    return SDG_DIM_COUNT;
  switch (sdg_family_dims(family)) {
  case SDG_FAMILY_SEQUENCE:
    return dims == 4 ? sequence[index] : SDG_DIM_COUNT;
  case SDG_FAMILY_PRODUCT:
    return index < 4 ? product[index] : SDG_DIM_COUNT;
  case SDG_FAMILY_HEADS:
    return dims == 4 ? heads[index] : SDG_DIM_COUNT;
  case SDG_FAMILY_IMAGE:
    break;
  }
  if (index < 2)
    return index == 0 ? SDG_DIM_N : SDG_DIM_C;
  int from_last = dims - 1 - index;
  return from_last < 3 ? (sdg_dim_t)(SDG_DIM_W - from_last) : SDG_DIM_COUNT;
}

bool sdg_dim_may_be_at(sdg_dim_t dim, int index, int dims) {
  for (int f = 0; f < SDG_FAMILY_COUNT; f++)
    if (sdg_dim_at((sdg_family_t)f, index, dims) == dim)
      return true;
  return false;
}

static bool compare_holds(const sdg_term_t *term, int64_t extent) {
  switch (term->compare) {
  case SDG_COMPARE_ANY:
    return true;
  case SDG_COMPARE_GE:
    return extent >= term->value;
  case SDG_COMPARE_LE:
    return extent <= term->value;
  case SDG_COMPARE_GT:
    return extent > term->value;
  case SDG_COMPARE_LT:
    return extent < term->value;
  case SDG_COMPARE_EQ:
    return extent == term->value;
  }
  return false;
}

bool sdg_section_multiplies(const sdg_section_t *section) {
  for (int i = 0; i < section->terms; i++)
    if (section->term[i].dim == SDG_DIM_M || section->term[i].dim == SDG_DIM_K)
      return true;
  for (int i = 0; i < section->splits; i++)
    if (section->split[i].dim == SDG_DIM_M ||
        section->split[i].dim == SDG_DIM_K)
      return true;
  for (int i = 0; i < section->globs; i++)
    if (strcmp(section->glob[i], "*") != 0 &&
        (sdg_glob_names_product(section->glob[i]) ||
         strncmp(section->glob[i], "cublas", 6) == 0))
      return true;
  return false;
}

bool sdg_rules_multiply(const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++)
    if (!rules->section[s].is_local &&
        sdg_section_multiplies(&rules->section[s]))
      return true;
  return false;
}

static bool op_matches(const sdg_section_t *section, sdg_family_t family,
                       const char *entry) {
  const char *word = sdg_family_word(family);
  if (sdg_family_is_product(family)) {
    if (!sdg_section_multiplies(section))
      return false;
    if (sdg_family_is(family, SDG_FAMILY_STATED))
      word = product_word(entry);
  }
  for (int i = 0; i < section->globs; i++)
    if ((word && fnmatch(section->glob[i], word, 0) == 0) ||
        fnmatch(section->glob[i], sdg_family_name(family), 0) == 0 ||
        fnmatch(section->glob[i], entry, 0) == 0)
      return true;
  return section->globs == 0;
}

typedef enum verdict { VERDICT_NO, VERDICT_YES, VERDICT_DEPENDS } verdict_t;

// Judges a section's pattern and splits without using the dimensions in
// `hidden` (bit 1 << index); DEPENDS if a term names one of them.
static verdict_t tensor_judge(const sdg_section_t *section, sdg_family_t family,
                              const int64_t *extent, int dims,
                              unsigned hidden) {
  verdict_t verdict = VERDICT_YES;
  if (section->listed && section->terms != dims)
    return VERDICT_NO;
  for (int i = 0; i < section->terms; i++) {
    const sdg_term_t *term = &section->term[i];
    int index = section->listed ? i : sdg_dim_index(family, term->dim, dims);
    if (index < 0)
      return VERDICT_NO;
    if (section->listed && term->dim != SDG_DIM_COUNT &&
        sdg_dim_at(family, index, dims) != term->dim)
      return VERDICT_NO;
    if (term->compare == SDG_COMPARE_ANY)
      continue;
    if (hidden >> index & 1)
      verdict = VERDICT_DEPENDS;
    else if (!compare_holds(term, extent[index]))
      return VERDICT_NO;
  }
  for (int i = 0; i < section->splits; i++)
    if (sdg_dim_index(family, section->split[i].dim, dims) < 0)
      return VERDICT_NO;
  return verdict;
}

bool sdg_section_match(const sdg_section_t *section, sdg_family_t family,
                       const char *entry, const int64_t *extent, int dims) {
  return op_matches(section, family, entry) &&
         tensor_judge(section, family, extent, dims, 0) == VERDICT_YES;
}

// The dimensions that a section splits or, for a product, that its matrices do.
static unsigned section_hides(const sdg_section_t *section, sdg_family_t family,
                              int dims) {
  unsigned hidden = 0;
  for (int m = -1; m < SDG_MATRICES; m++) {
    const sdg_rules_split_t *split =
        m < 0 ? section->split : section->matrix[m].split;
    int splits = m < 0 ? section->splits : section->matrix[m].splits;
    for (int i = 0; i < splits; i++) {
      int index = sdg_dim_index(family, split[i].dim, dims);
      if (index >= 0)
        hidden |= 1u << index;
    }
  }
  return hidden;
}

// Whether a [shard] section may be the first to match; with any_op also one for
// other ops.
static bool shard_may_match(const sdg_rules_t *rules, sdg_family_t family,
                            const char *entry, const int64_t *local_extent,
                            int dims, bool any_op) {
  unsigned hidden = 0;
  for (int s = 0; s < rules->sections; s++)
    hidden |= section_hides(&rules->section[s], family, dims);
  for (int s = 0; s < rules->sections; s++) {
    const sdg_section_t *section = &rules->section[s];
    bool about = op_matches(section, family, entry);
    verdict_t verdict =
        tensor_judge(section, family, local_extent, dims, hidden);
    if (section->is_local && about && verdict == VERDICT_YES)
      return false;
    if (!section->is_local && (about || any_op) && verdict != VERDICT_NO)
      return true;
  }
  return false;
}

bool sdg_rules_may_match(const sdg_rules_t *rules, sdg_family_t family,
                         const char *entry, const int64_t *local_extent,
                         int dims) {
  return shard_may_match(rules, family, entry, local_extent, dims, false);
}

bool sdg_rules_leave_out(const sdg_rules_t *rules, sdg_family_t family,
                         const char *entry, const int64_t *local_extent,
                         int dims) {
  return shard_may_match(rules, family, entry, local_extent, dims, true) &&
         !shard_may_match(rules, family, entry, local_extent, dims, false);
}
