// SPDX-License-Identifier: Apache-2.0
// Reads the keys `match`, `op`, `wrap`, `window` and `values` of a section.
#include "rules/file/value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

sdg_status_t sdg_dim_parse(const sdg_location_t *location, sdg_word_t word,
                           sdg_dim_t *out_dim) {
  const char *names[SDG_DIM_COUNT];
  for (int i = 0; i < SDG_DIM_COUNT; i++) {
    names[i] = sdg_dim_name((sdg_dim_t)i);
    if (sdg_word_is(word, names[i]))
      return *out_dim = (sdg_dim_t)i, SDG_OK;
  }
  return sdg_word_fail(location, word, "dimension", names, SDG_DIM_COUNT);
}

static sdg_status_t term_parse(const sdg_location_t *location,
                               const sdg_extents_t *extents, sdg_word_t word,
                               sdg_term_t *out_term) {
  static const struct {
    const char *sign;
    sdg_compare_t compare;
  } signs[] = {
      {">=", SDG_COMPARE_GE}, {"<=", SDG_COMPARE_LE}, {"==", SDG_COMPARE_EQ},
      {">", SDG_COMPARE_GT},  {"<", SDG_COMPARE_LT},  {"=", SDG_COMPARE_EQ},
  };
  sdg_term_t term = {.dim = SDG_DIM_COUNT, .compare = SDG_COMPARE_EQ};
  if (isdigit((unsigned char)word.at[0])) {
    if (!sdg_word_number(word, &term.value))
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%.*s' is not an extent", word.length, word.at);
    *out_term = term;
    return SDG_OK;
  }
  int name = 0;
  while (name < word.length && !strchr("<>=", word.at[name]))
    name++;
  SDG_TRY(sdg_dim_parse(location, (sdg_word_t){word.at, name}, &term.dim));
  term.compare = SDG_COMPARE_ANY;
  if (name < word.length) {
    int sign_bytes = 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs && !sign_bytes; i++) {
      int n = (int)strlen(signs[i].sign);
      if (n <= word.length - name &&
          memcmp(word.at + name, signs[i].sign, (size_t)n) == 0) {
        sign_bytes = n;
        term.compare = signs[i].compare;
      }
    }
    int at = name + sign_bytes;
    sdg_word_t extent = {word.at + at, word.length - at};
    bool named = extent.length > 0 && isalpha((unsigned char)*extent.at);
    if (!named && !sdg_word_number(extent, &term.value))
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%.*s' should be like H>=64: a number must "
                               "follow the sign, without a space",
                               word.length, word.at);
    if (named)
      SDG_TRY(sdg_extents_find(location, extents, extent, &term.value));
  }
  *out_term = term;
  return SDG_OK;
}

sdg_status_t sdg_match_parse(const sdg_location_t *location, const char *text,
                             const sdg_extents_t *extents,
                             sdg_section_t *section) {
  const char *whole = text;
  unsigned seen = 0;
  bool twice = false;
  sdg_word_t word;
  section->terms = 0;
  section->listed = false;
  while (sdg_word_next(&text, " \t", &word)) {
    if (section->terms == SDG_TERMS_MAX)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "a pattern can have at most %d terms",
                               SDG_TERMS_MAX);
    sdg_term_t *term = &section->term[section->terms++];
    SDG_TRY(term_parse(location, extents, word, term));
    if (term->dim == SDG_DIM_COUNT) {
      section->listed = true;
    } else {
      twice |= seen >> term->dim & 1;
      seen |= 1u << term->dim;
    }
  }
  if (section->listed && twice)
    return sdg_location_fail(
        location, SDG_E_RULES_TWICE,
        "'%s' has a number without a dimension, so it lists all dimensions in "
        "order, but it names one twice",
        whole);
  if (section->listed && section->terms > SDG_DIMS_MAX)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "a tensor can have at most %d dimensions",
                             SDG_DIMS_MAX);
  // A listed name at another position could never match.
  for (int i = 0; section->listed && i < section->terms; i++) {
    sdg_dim_t dim = section->term[i].dim;
    if (dim <= SDG_DIM_W && !sdg_dim_may_be_at(dim, i, section->terms))
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "%s cannot be dimension %d of %d in '%s'",
                               sdg_dim_name(dim), i + 1, section->terms, whole);
  }
  return SDG_OK;
}

// True if the glob can match a family.
static bool glob_names_family(const char *glob, const char **families) {
  sdg_section_t probe = {.globs = 1};
  snprintf(probe.glob[0], SDG_GLOB_BYTES, "%s", glob);
  probe.is_local = true;
  for (int f = 0; f < SDG_FAMILY_OTHER; f++) {
    families[f] = sdg_family_name((sdg_family_t)f);
    if (sdg_section_match(&probe, (sdg_family_t)f, "", NULL, 0))
      return true;
  }
  return false;
}

sdg_status_t sdg_op_parse(const sdg_location_t *location, const char *text,
                          bool (*is_function)(const void *user,
                                              const char *glob),
                          const void *user, sdg_section_t *section) {
  const char *families[SDG_FAMILY_COUNT];
  sdg_word_t word;
  section->globs = 0;
  while (sdg_word_next(&text, " \t", &word)) {
    if (section->globs == SDG_GLOBS_MAX || word.length >= SDG_GLOB_BYTES)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "op can have at most %d words of at most %d characters",
          SDG_GLOBS_MAX, SDG_GLOB_BYTES - 1);
    char *glob = section->glob[section->globs++];
    snprintf(glob, SDG_GLOB_BYTES, "%.*s", word.length, word.at);
    // sdg_rules_check_entries checks the entries.
    if (strncmp(glob, "cudnn", 5) != 0 && strncmp(glob, "cublas", 6) != 0 &&
        !glob_names_family(glob, families) && !sdg_glob_names_product(glob) &&
        !is_function(user, glob))
      return sdg_word_fail(location, word, "op", families, SDG_FAMILY_OTHER);
  }
  return SDG_OK;
}

sdg_status_t sdg_wrap_parse(const sdg_location_t *location, const char *text,
                            sdg_section_t *section) {
  sdg_word_t word;
  section->wrap = 0;
  while (sdg_word_next(&text, " \t,", &word)) {
    sdg_dim_t dim;
    SDG_TRY(sdg_dim_parse(location, word, &dim));
    if (dim < SDG_DIM_D || dim > SDG_DIM_W)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "%s cannot be periodic; only D, H and W can",
                               sdg_dim_name(dim));
    section->wrap |= 1u << dim;
  }
  return SDG_OK;
}

sdg_status_t sdg_window_parse(const sdg_location_t *location, const char *text,
                              sdg_section_t *section) {
  if (!isdigit((unsigned char)*text)) {
    SDG_TRY(sdg_key_check(location, text, SDG_KEY_WINDOW, "value of window"));
    section->window =
        strcmp(text, "global") == 0 ? SDG_WINDOW_GLOBAL : SDG_WINDOW_LOCAL;
    return SDG_OK;
  }
  const char *rest = text;
  sdg_word_t left, right, more;
  if (!sdg_word_next(&rest, ",", &left) || !sdg_word_next(&rest, ",", &right) ||
      sdg_word_next(&rest, ",", &more) ||
      !sdg_word_number(left, &section->window_left) ||
      !sdg_word_number(right, &section->window_right))
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'%s' is not a window, as in 512,512", text);
  section->window = SDG_WINDOW_SIZES;
  return SDG_OK;
}

sdg_status_t sdg_lengths_parse(const sdg_location_t *location, const char *text,
                               sdg_section_t *section) {
  SDG_TRY(sdg_key_check(location, text, SDG_KEY_LENGTHS, "value of lengths"));
  section->lengths =
      strcmp(text, "whole") == 0 ? SDG_SIZES_WHOLE : SDG_SIZES_PIECE;
  return SDG_OK;
}

sdg_status_t sdg_piece_values_parse(const sdg_location_t *location,
                                    const char *text, sdg_section_t *section) {
  int values;
  SDG_TRY(sdg_key_choose(location, text, SDG_KEY_VALUES,
                         SDG_OPTION_PIECE_VALUES, "value of values", &values));
  section->values = (sdg_piece_values_t)values;
  return SDG_OK;
}
