// SPDX-License-Identifier: Apache-2.0
// Reads the keys that divide tensors over axes of the mesh: `split`, `parts`,
// `sum` and `same`; and labels of tensors.
#include "rules/file/value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    SDG_TRY(sdg_dim_parse(location, (sdg_word_t){item.at, name}, &split->dim));
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
    SDG_TRY(sdg_dim_parse(location,
                          (sdg_word_t){word.at, (int)(colon - word.at)}, &dim));
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

sdg_axes_t sdg_section_axes(const sdg_section_t *section) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < section->splits; i++)
    axes |= section->split[i].axes;
  return axes;
}

// Parses a list of axes separated by `between`, all from `allowed`. `words` of
// them may be given instead.
static sdg_status_t axes_parse(const sdg_location_t *location, const char *text,
                               const char *between, const sdg_mesh_t *mesh,
                               sdg_axes_t allowed, const char *const *instead,
                               int words, sdg_axes_t *out) {
  const char *names[SDG_AXES_MAX + SDG_KEY_WORDS_MAX];
  sdg_word_t word;
  int count = 0;
  for (; count < words; count++)
    names[count] = instead[count];
  for (int a = 0; a < mesh->axes; a++)
    if (allowed >> a & 1)
      names[count++] = mesh->name[a];
  *out = 0;
  while (sdg_word_next(&text, between, &word)) {
    sdg_axes_t axis = 0;
    for (int a = 0; a < mesh->axes; a++)
      if ((allowed >> a & 1) && sdg_word_is(word, mesh->name[a]))
        axis = (sdg_axes_t)1 << a;
    if (!axis)
      return sdg_word_fail(location, word, "axis for this key", names, count);
    *out |= axis;
  }
  return SDG_OK;
}

sdg_status_t sdg_sum_parse(const sdg_location_t *location, const char *text,
                           const sdg_mesh_t *mesh, sdg_section_t *section) {
  sdg_key_words_t words;
  sdg_key_words(SDG_KEY_SUM, &words);
  sdg_axes_t all = sdg_section_axes(section);
  bool yes = strcmp(text, "yes") == 0;
  section->sum_axes = yes ? all : 0;
  if (yes || strcmp(text, "no") == 0)
    return SDG_OK;
  return axes_parse(location, text, "+", mesh, all, words.at, words.count,
                    &section->sum_axes);
}

sdg_status_t sdg_label_parse(const sdg_location_t *location, const char *text,
                             const sdg_mesh_t *mesh, sdg_section_t *section) {
  char splits[256] = "", pending[256] = "";
  size_t used = 0;
  sdg_word_t item;
  for (const char *rest = text; sdg_word_next(&rest, ",", &item);) {
    bool max = strncmp(item.at, "max:", 4) == 0;
    if (max || strncmp(item.at, "sum:", 4) == 0) {
      if (*pending)
        return sdg_location_fail(location, SDG_E_RULES_TWICE,
                                 "'sum:' or 'max:' is twice in '%s'", text);
      snprintf(pending, sizeof pending, "%.*s", item.length - 4, item.at + 4);
      section->pending_max = max;
    } else if (used < sizeof splits) {
      used += (size_t)snprintf(splits + used, sizeof splits - used, "%s%.*s",
                               used ? "," : "", item.length, item.at);
    }
  }
  SDG_TRY(sdg_split_parse(location, splits, mesh, section));
  sdg_axes_t free_axes = ((sdg_axes_t)1 << mesh->axes) - 1;
  free_axes &= ~sdg_section_axes(section);
  SDG_TRY(axes_parse(location, pending, "+", mesh, free_axes, NULL, 0,
                     &section->pending));
  if (section->splits == 0 && !section->pending)
    return sdg_location_fail(location, SDG_E_RULES_EMPTY, "'%s' splits nothing",
                             text);
  return SDG_OK;
}

sdg_status_t sdg_same_parse(const sdg_location_t *location, const char *text,
                            const sdg_mesh_t *mesh, sdg_axes_t split,
                            sdg_axes_t *out) {
  sdg_axes_t all = ((sdg_axes_t)1 << mesh->axes) - 1, same;
  SDG_TRY(axes_parse(location, text, ", \t", mesh, all, NULL, 0, &same));
  for (int a = 0; a < mesh->axes; a++)
    if ((same & split) >> a & 1)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "'same' names %s, but a section splits over this axis, so its ranks "
          "compute different parts",
          mesh->name[a]);
  *out = same;
  return SDG_OK;
}
