// SPDX-License-Identifier: Apache-2.0
// Reads the values of a section's keys; messages say where the fault is.
#include "rules/file/value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sdg_status_t dim_parse(const sdg_location_t *location, sdg_word_t word,
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
  SDG_TRY(dim_parse(location, (sdg_word_t){word.at, name}, &term.dim));
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
                          sdg_section_t *section) {
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
        !glob_names_family(glob, families) && !sdg_glob_names_product(glob))
      return sdg_word_fail(location, word, "op", families, SDG_FAMILY_OTHER);
  }
  return SDG_OK;
}

static sdg_status_t axis_add(const sdg_location_t *location, sdg_word_t word,
                             const sdg_mesh_t *mesh, sdg_axes_t *used,
                             sdg_rules_split_t *split) {
  const char *names[SDG_AXES_MAX];
  for (int a = 0; a < mesh->axes; a++) {
    names[a] = mesh->name[a];
    if (!sdg_word_is(word, names[a]))
      continue;
    if (*used >> a & 1)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "axis '%s' is used twice", names[a]);
    if (split->axes >> a)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "the axes of %s must be in the mesh's order",
                               sdg_dim_name(split->dim));
    *used |= 1u << a;
    split->axes |= 1u << a;
    split->pieces *= mesh->size[a];
    return SDG_OK;
  }
  return sdg_word_fail(location, word, "axis of the mesh", names, mesh->axes);
}

sdg_status_t sdg_split_parse(const sdg_location_t *location, const char *text,
                             const sdg_mesh_t *mesh, sdg_section_t *section) {
  sdg_axes_t used = 0;
  sdg_word_t item;
  while (sdg_word_next(&text, ",", &item)) {
    if (section->splits == SDG_SPLITS_MAX)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "at most %d dimensions can be split",
                               SDG_SPLITS_MAX);
    sdg_rules_split_t *split = &section->split[section->splits++];
    *split = (sdg_rules_split_t){.pieces = 1};
    const char *colon = memchr(item.at, ':', (size_t)item.length);
    int name = colon ? (int)(colon - item.at) : item.length;
    while (name > 0 && isspace((unsigned char)item.at[name - 1]))
      name--;
    SDG_TRY(dim_parse(location, (sdg_word_t){item.at, name}, &split->dim));
    for (int i = 0; i < section->splits - 1; i++)
      if (section->split[i].dim == split->dim)
        return sdg_location_fail(location, SDG_E_RULES_TWICE,
                                 "%s is split twice", sdg_dim_name(split->dim));
    if (!colon) {
      if (mesh->axes > 1)
        return sdg_location_fail(
            location, SDG_E_RULES_VALUE,
            "the mesh has %d axes: say which of them splits %s, as in %s:%s",
            mesh->axes, sdg_dim_name(split->dim), sdg_dim_name(split->dim),
            mesh->name[0]);
      SDG_TRY(axis_add(location,
                       (sdg_word_t){mesh->name[0], (int)strlen(mesh->name[0])},
                       mesh, &used, split));
      continue;
    }
    char axes[256];
    int bytes = item.length - (int)(colon + 1 - item.at);
    if (bytes >= (int)sizeof axes)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "too many axes for %s",
                               sdg_dim_name(split->dim));
    snprintf(axes, sizeof axes, "%.*s", bytes, colon + 1);
    const char *rest = axes;
    sdg_word_t axis;
    while (sdg_word_next(&rest, "+", &axis))
      SDG_TRY(axis_add(location, axis, mesh, &used, split));
    if (split->axes == 0)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "no axis follows '%s:'",
                               sdg_dim_name(split->dim));
  }
  return SDG_OK;
}

void sdg_split_axes(const char *text, void (*each)(void *user, sdg_word_t axis),
                    void *user) {
  sdg_word_t item;
  while (sdg_word_next(&text, ",", &item)) {
    const char *at = memchr(item.at, ':', (size_t)item.length);
    const char *end = item.at + item.length;
    while (at && at < end) {
      const char *start = ++at;
      while (at < end && *at != '+')
        at++;
      const char *stop = at;
      while (start < stop && isspace((unsigned char)*start))
        start++;
      while (stop > start && isspace((unsigned char)stop[-1]))
        stop--;
      if (stop > start)
        each(user, (sdg_word_t){start, (int)(stop - start)});
    }
  }
}

// Names the nearest way to divide. Besides the words: even/ALIGN, with the
// text's own number.
static sdg_status_t method_fail(const sdg_location_t *location,
                                sdg_word_t text) {
  sdg_key_words_t words;
  const char *valid[SDG_KEY_WORDS_MAX + 1];
  char aligned[32] = "even/32";
  const char *slash = memchr(text.at, '/', (size_t)text.length);
  int64_t align;
  if (slash &&
      sdg_word_number(
          (sdg_word_t){slash + 1, (int)(text.at + text.length - slash - 1)},
          &align))
    snprintf(aligned, sizeof aligned, "even/%lld", (long long)align);
  sdg_key_words(SDG_KEY_PARTS, &words);
  memcpy(valid, words.at, sizeof words.at);
  valid[words.count] = aligned;
  return sdg_word_fail(location, text, "value of parts", valid,
                       words.count + (slash != NULL));
}

// One way to divide, without spaces: "agree", "even", "even/32", "chunk",
// "3,2,2".
static sdg_status_t method_check(const sdg_location_t *location,
                                 const char *text,
                                 const sdg_rules_split_t *split) {
  sdg_word_t whole = {text, (int)strlen(text)}, word;
  int64_t value;
  if (sdg_key_takes(SDG_KEY_PARTS, text))
    return SDG_OK;
  if (strncmp(text, "even/", 5) == 0) {
    if (sdg_word_number((sdg_word_t){text + 5, whole.length - 5}, &value) &&
        value > 0)
      return SDG_OK;
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'%s': a number above 0 must follow 'even/'",
                             text);
  }
  if (!isdigit((unsigned char)*text) && *text != '-' && *text != '+')
    return method_fail(location, whole);
  int count = 0;
  bool number = true;
  const char *rest = text;
  while (sdg_word_next(&rest, ",", &word)) {
    number = number && sdg_word_number(word, &value);
    count++;
  }
  if (!number || text[whole.length - 1] == ',')
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'%s' is not a list of sizes, as in 300,212",
                             text);
  if (count != split->pieces)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "%d sizes are given for the %d parts of %s", count,
                             split->pieces, sdg_dim_name(split->dim));
  return SDG_OK;
}

// Gives a split its own checked copy.
static sdg_status_t parts_set(const sdg_location_t *location, sdg_word_t word,
                              sdg_rules_split_t *split) {
  char *text = malloc((size_t)word.length + 1);
  if (!text)
    return sdg_fail(SDG_E_NO_MEMORY, "for the rules");
  int n = 0;
  for (int i = 0; i < word.length; i++)
    if (!isspace((unsigned char)word.at[i]))
      text[n++] = word.at[i];
  text[n] = '\0';
  free(split->parts);
  split->parts = text;
  return method_check(location, text, split);
}

// The i-th split of the section and its matrices.
static sdg_rules_split_t *split_at(sdg_section_t *section, int i) {
  if (i < section->splits)
    return &section->split[i];
  i -= section->splits;
  for (int m = 0; m < SDG_MATRICES; m++) {
    if (i < section->matrix[m].splits)
      return &section->matrix[m].split[i];
    i -= section->matrix[m].splits;
  }
  return NULL;
}

sdg_status_t sdg_parts_parse(const sdg_location_t *location, const char *text,
                             sdg_section_t *section) {
  sdg_word_t word, whole = {text, (int)strlen(text)};
  bool per_dim = strchr(text, ':') != NULL;
  sdg_rules_split_t *split;
  // Dimensions that a list does not name are agreed. So are matrices if sizes
  // are listed, because the sizes are those of the product.
  bool listed = isdigit((unsigned char)*text) != 0;
  for (int i = 0; (split = split_at(section, i)); i++)
    SDG_TRY(parts_set(location,
                      per_dim || (listed && i >= section->splits)
                          ? (sdg_word_t){"agree", 5}
                          : whole,
                      split));
  while (per_dim && sdg_word_next(&text, " \t", &word)) {
    const char *colon = memchr(word.at, ':', (size_t)word.length);
    sdg_dim_t dim;
    if (!colon)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%.*s' should be like H:300,212 (no spaces)",
                               word.length, word.at);
    SDG_TRY(dim_parse(location, (sdg_word_t){word.at, (int)(colon - word.at)},
                      &dim));
    bool found = false;
    int bytes = word.length - (int)(colon + 1 - word.at);
    for (int i = 0; (split = split_at(section, i)); i++) {
      if (split->dim != dim)
        continue;
      found = true;
      SDG_TRY(parts_set(location, (sdg_word_t){colon + 1, bytes}, split));
    }
    if (!found)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "parts are given for %s, which is not split",
                               sdg_dim_name(dim));
  }
  return SDG_OK;
}

sdg_status_t sdg_wrap_parse(const sdg_location_t *location, const char *text,
                            sdg_section_t *section) {
  sdg_word_t word;
  section->wrap = 0;
  while (sdg_word_next(&text, " \t,", &word)) {
    sdg_dim_t dim;
    SDG_TRY(dim_parse(location, word, &dim));
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

sdg_status_t sdg_piece_values_parse(const sdg_location_t *location,
                                    const char *text, sdg_section_t *section) {
  int values;
  SDG_TRY(sdg_key_choose(location, text, SDG_KEY_VALUES,
                         SDG_OPTION_PIECE_VALUES, "value of values", &values));
  section->values = (sdg_piece_values_t)values;
  return SDG_OK;
}
